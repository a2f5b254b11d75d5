"""Topological order: put tasks in an order in which each comes after what it needs."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import topological_order as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((5, 4), (7, 8), (10, 14), (15, 25), (22, 45))
"""Tasks, and how many pairs of them are given."""


class TopologicalOrder(PuzzleEnv):
    """Order tasks so that each comes after all that it needs.

    Observation: which task comes before which. Action: the reply.
    Reward: 1.0 for any order that holds to it. End: after one step.
    Levels have 5, 7, 10, 15 and 22 tasks.
    """

    verifier = rules.TopologicalOrder

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw pairs out of a hidden order; the alphabet does not hold to them all."""
        size, number = _LEVELS[level - 1]
        names = [chr(ord("A") + n) for n in range(size)]
        pairs: list[list[str]] = []
        while all(a < b for a, b in pairs):  # else the names as listed would be an answer
            hidden = [names[int(n)] for n in rng.permutation(size)]
            every = [[a, b] for place, a in enumerate(hidden) for b in hidden[place + 1 :]]
            pairs = [every[int(n)] for n in rng.permutation(len(every))[:number]]
        listed = ", ".join(f"{a} before {b}" for a, b in pairs)
        return Puzzle(
            f"Put the tasks {', '.join(names)} in an order that holds to all of this: {listed}.\n"
            "Give all tasks from first to last, parted by commas.",
            {"vertices": names, "edges": pairs},
            ", ".join(hidden),
        )
