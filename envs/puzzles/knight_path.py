"""Knight's paths: move a chess knight from square to square."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import knight_path as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = (
    (6, 4, 3, False),
    (8, 6, 4, False),
    (8, 12, 5, True),
    (8, 24, 6, True),
    (10, 45, 8, True),
)
"""Rows, blocked squares, squares of the shortest way, and whether only such a way passes."""


class KnightPath(PuzzleEnv):
    """Move a knight around blocked squares; from level 3 on in the fewest moves.

    Observation: the board's size, the squares. Action: the reply.
    Reward: 1.0 for any way, from level 3 on for any shortest one. End: after one step.
    Levels have boards of 6, 8, 8, 8 and 10 rows.
    """

    verifier = rules.KnightPath

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw squares until the way is long enough."""
        size, number, least, shortest = _LEVELS[level - 1]
        squares = [f"{letter}{row}" for letter in "abcdefghij"[:size] for row in range(1, size + 1)]
        way: tuple[str, ...] = ()
        while len(way) < least:
            drawn = rng.permutation(size**2)[: number + 2]
            start, goal, *blocked = (squares[int(n)] for n in drawn)
            way = rules.knights_way(start, goal, size, frozenset(blocked))
        blocked.sort()
        closed = f" No move may end on {', '.join(blocked)}." if blocked else ""
        fewest = " in as few moves as possible" if shortest else ""
        return Puzzle(
            f"A chess knight stands on {start} of a board of {size} rows and columns, a1 to "
            f"{squares[-1]}.{closed} Move it to {goal}{fewest}, onto no square twice. "
            f"Give the squares from {start} to {goal}, parted by commas.",
            {"size": size, "start": start, "goal": goal, "blocked": blocked, "shortest": shortest},
            ", ".join(way),
        )
