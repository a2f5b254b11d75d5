"""Sliding tiles: put them in order."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import sliding_tiles as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((2, 4, 8), (3, 3, 10), (3, 3, 20), (3, 4, 30), (4, 4, 45))
"""Rows, columns, and the least number of moves that mix the tiles; the most is twice as many."""


class SlidingTiles(PuzzleEnv):
    """Slide tiles into the gap until all are in order.

    Observation: the board. Action: the reply.
    Reward: 1.0 for any moves that do it. End: after one step.
    Levels have boards of 2x4, 3x3, 3x3, 3x4 and 4x4, mixed by 8, 10, 20, 30 and 45 moves or up to
    twice as many.
    """

    verifier = rules.SlidingTiles

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Mix a board in order by moves that never take back the last."""
        height, width, least = _LEVELS[level - 1]
        mixing = int(rng.integers(least, 2 * least + 1))
        goal = [*rules.in_order(height * width)]
        board, moved = goal.copy(), [0]
        while len(moved) <= mixing or board == goal:
            gap = board.index(0)
            near = [n for n in rules.beside(gap, width, len(goal)) if board[n] != moved[-1]]
            at = near[int(rng.integers(len(near)))]
            moved.append(board[at])
            board[gap], board[at] = board[at], 0
        rows = [board[width * row : width * (row + 1)] for row in range(height)]
        drawn = "\n".join(" ".join(str(tile or "_") for tile in row) for row in rows)
        return Puzzle(
            f"Tiles lie on a board of {height} rows, and _ is the gap:\n\n{drawn}\n\n"
            f"A move slides a tile beside the gap into it. Bring the tiles into the order 1 to "
            f"{len(goal) - 1}, row by row, with the gap last. "
            "Give the numbers of the tiles that move, one after the other, parted by commas.",
            {"board": rows},
            ", ".join(map(str, reversed(moved[1:]))),
        )
