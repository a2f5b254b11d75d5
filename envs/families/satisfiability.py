"""Satisfiability: find truth values that make every clause true."""

from __future__ import annotations

import numpy as np

from ...verifiers import Satisfiability as SatisfiabilityVerifier
from ...verifiers.families.satisfiability import literal
from .family import Family, Puzzle

_LEVELS = ((3, 6), (4, 12), (6, 22), (8, 32), (12, 50))
"""How many variables and clauses there are; some 4.2 clauses a variable are hardest."""


class Satisfiability(Family):
    """Find truth values for which every clause holds.

    Observation: the clauses, of two or three members. Action: the reply.
    Reward: 1.0 for any values that do it. End: after one step.
    Levels have 3, 4, 6, 8 and 12 variables.
    """

    verifier = SatisfiabilityVerifier

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Clauses that some hidden values make true; each variable is in one at least."""
        size, count = _LEVELS[level - 1]
        values = rng.integers(0, 2, size=size + 1).astype(bool)
        clauses: list[list[int]] = []
        while len(clauses) < count or {abs(m) for c in clauses for m in c} != set(
            range(1, size + 1)
        ):
            members = rng.permutation(size)[: 3 if size > 3 else int(rng.integers(2, 4))] + 1
            signs = rng.integers(0, 2, size=len(members)).astype(bool)
            if (signs == values[members]).any():
                clauses.append(
                    [int(m) if sign else -int(m) for m, sign in zip(members, signs, strict=True)]
                )
        listed = "\n".join(" or ".join(map(literal, clause)) for clause in clauses)
        answer = ", ".join(f"x{n} = {str(bool(values[n])).lower()}" for n in range(1, size + 1))
        return Puzzle(
            f"Find truth values for x1 to x{size} that make all of these true:\n{listed}\n"
            "Give a value to each, parted by commas: x1 = true, x2 = false, ...",
            {"clauses": clauses},
            answer,
        )
