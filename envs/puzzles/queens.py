"""Queens: complete a board so that no queen attacks another."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import queens as rules
from ..puzzle_env import Puzzle, PuzzleEnv
from ..seeding import several

_LEVELS = ((8, 3), (8, 5), (9, 6), (10, 7), (12, 9))
"""Rows, and how many queens are left to place."""


class Queens(PuzzleEnv):
    """Place the queens that are missing from a board.

    Observation: the squares of some queens. Action: the board with all of them.
    Reward: 1.0 for any placing that keeps those queens and in which none attacks another.
    End: after one step. Every board can be completed, some in several ways.
    Levels: boards of 8, 8, 9, 10 and 12 rows, with 3, 5, 6, 7 and 9 queens to place.
    """

    verifier = rules.Queens

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a solution, less some of its queens."""
        n, missing = _LEVELS[level - 1]
        columns = _solution(rng, n)
        kept = sorted(rng.permutation(n)[: n - missing].tolist())
        placed = [[r + 1, columns[r] + 1] for r in kept]
        stand = "; ".join([f"row {r}, column {c}" for r, c in placed])
        rows = (" ".join("Q" if c == queen else "." for c in range(n)) for queen in columns)
        return Puzzle(
            f"Complete this {n} x {n} board so that it holds {n} queens and no two of them share a "
            f"row, a column or a diagonal. Queens stand already at: {stand}. Rows are counted from "
            "the top and columns from the left, both from 1.\n"
            f"Answer with the whole board: {n} lines of {n} signs with blanks between them, Q for "
            "a queen and . for an empty square.",
            {"n": n, "placed": placed},
            "\n".join(rows),
        )


def _solution(rng: np.random.Generator, n: int) -> list[int]:
    """Draw the columns of a solution, by search through rows.

    All rows try the columns in one random order, each from a place of its own.
    """
    order = 2 * rng.permutation(n).tolist()
    tried = [order[at : at + n] for at in several(rng, n, n)]
    columns: list[int] = []

    def place(row: int, taken: int, rising: int, falling: int) -> bool:
        if row == n:
            return True
        attacked = taken | rising | falling
        for c in tried[row]:
            bit = 1 << c
            if not bit & attacked:
                columns.append(c)
                if place(row + 1, taken | bit, (rising | bit) >> 1, (falling | bit) << 1):
                    return True
                columns.pop()
        return False

    place(0, 0, 0, 0)
    return columns
