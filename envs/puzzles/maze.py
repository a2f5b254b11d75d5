"""Maze: find a way from the start to the goal."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import maze as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_SIZES = (3, 4, 6, 8, 10)


class Maze(PuzzleEnv):
    """Walk from ``S`` to ``G``; from level 4 on by one of the shortest ways.

    Observation: the maze. Action: the reply.
    Reward: 1.0 for any walk that leads there, from level 4 on for any shortest one.
    End: after one step. Levels have 3, 4, 6, 8 and 10 rooms on a side.
    """

    verifier = rules.Maze

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw rooms joined by a tree of doors and a few more, with start and goal far apart."""
        size = _SIZES[level - 1]
        rows = _carved(rng, size)
        walk = ""
        while len(walk) < 2 * size:
            grid = _with_ends(rows, rng.permutation(size * size)[:2].tolist(), size)
            walk = rules.shortest_walk(tuple(grid)) or ""
        shortest = level >= 4
        what = "a shortest way" if shortest else "a way"
        drawn = "\n".join(grid)
        return Puzzle(
            f"Find {what} through this maze from S to G. # is a wall, and a dot is open.\n\n"
            f"{drawn}\n\nA move goes one cell up, down, left or right. "
            "Give all moves as one word of the letters U, D, L and R.",
            {"grid": grid, "shortest": shortest},
            walk,
        )


def _with_ends(rows: list[list[str]], ends: list[int], size: int) -> list[str]:
    """Put start and goal into two of the rooms."""
    marked = [row.copy() for row in rows]
    for mark, end in zip("SG", ends, strict=True):
        row, column = divmod(end, size)
        marked[2 * row + 1][2 * column + 1] = mark
    return ["".join(row) for row in marked]


def _carved(rng: np.random.Generator, size: int) -> list[list[str]]:
    """Draw a spanning tree by depth-first search, and some further doors."""
    rows = [["#"] * (2 * size + 1) for _ in range(2 * size + 1)]
    at = int(rng.integers(size)), int(rng.integers(size))
    seen, trail = {at}, [at]
    rows[2 * at[0] + 1][2 * at[1] + 1] = "."
    while trail:
        row, column = trail[-1]
        near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        near = [(r, c) for r, c in near if min(r, c) >= 0 and max(r, c) < size]
        fresh = [cell for cell in near if cell not in seen]
        if not fresh:
            trail.pop()
            continue
        r, c = fresh[int(rng.integers(len(fresh)))]
        rows[2 * r + 1][2 * c + 1] = rows[row + r + 1][column + c + 1] = "."
        seen.add((r, c))
        trail.append((r, c))
    for _ in range(size // 2):  # a second way here and there
        r, c = (int(n) for n in rng.integers(size - 1, size=2))
        rows[2 * r + 1][2 * c + 2] = "."
    return rows
