"""Subset sum: choose numbers that add up to a target."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import subset_sum as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((5, 20), (7, 50), (10, 100), (14, 300), (20, 1000))
"""How many numbers there are, and the largest."""


class SubsetSum(PuzzleEnv):
    """Choose some of the numbers so that they add up to the target.

    Observation: the numbers and the target. Action: the reply.
    Reward: 1.0 for any choice that does it. End: after one step.
    Levels have 5, 7, 10, 14 and 20 numbers, up to 20, 50, 100, 300 and 1,000.
    """

    verifier = rules.SubsetSum

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw numbers of which about half make the target, and none alone."""
        size, largest = _LEVELS[level - 1]
        target, numbers = 0, [0]
        while target in numbers:
            numbers = [int(n) for n in rng.integers(1, largest + 1, size=size)]
            picked = [numbers[int(n)] for n in rng.permutation(size)[: size // 2]]
            target = sum(picked)
        return Puzzle(
            f"Choose some of the numbers {', '.join(map(str, numbers))}, each at most as often as "
            f"it stands here, that add up to {target}. Give them parted by commas.",
            {"numbers": numbers, "target": target},
            ", ".join(map(str, picked)),
        )
