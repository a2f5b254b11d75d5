"""Satisfiability: find truth values that make every clause true."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import satisfiability as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((3, 6), (4, 12), (6, 22), (8, 32), (12, 50))
"""How many variables and clauses there are; some 4.2 clauses a variable are hardest."""


class Satisfiability(PuzzleEnv):
    """Find truth values for which every clause holds.

    Observation: the clauses, of two or three members. Action: the reply.
    Reward: 1.0 for any values that do it. End: after one step.
    Levels have 3, 4, 6, 8 and 12 variables.
    """

    verifier = rules.Satisfiability

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw clauses that hidden values make true; each variable is in one at least."""
        size, count = _LEVELS[level - 1]
        values = rng.integers(0, 2, size=size + 1).astype(bool)
        clauses: list[list[int]] = []
        missing = set(range(1, size + 1))
        while len(clauses) < count or missing:
            members = rng.permutation(size)[: 3 if size > 3 else int(rng.integers(2, 4))] + 1
            signs = rng.integers(0, 2, size=len(members)).astype(bool)
            if (signs == values[members]).any():
                signed = zip(members.tolist(), signs, strict=True)
                clauses.append([m if sign else -m for m, sign in signed])
                missing -= set(members.tolist())
        listed = "\n".join(" or ".join(map(rules.literal, clause)) for clause in clauses)
        answer = ", ".join(f"x{n} = {str(bool(values[n])).lower()}" for n in range(1, size + 1))
        return Puzzle(
            f"Find truth values for x1 to x{size} that make all of these true:\n{listed}\n"
            "Give a value to each, parted by commas: x1 = true, x2 = false, ...",
            {"clauses": clauses},
            answer,
        )
