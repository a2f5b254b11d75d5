"""Knapsack: choose what is worth the most and can be carried."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import knapsack as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((4, 10), (6, 15), (9, 20), (13, 40), (20, 60))
"""How many things there are, and the heaviest."""


class Knapsack(PuzzleEnv):
    """Choose the things that are worth the most together and fit.

    Observation: weights, worths and the capacity. Action: the reply.
    Reward: 1.0 for any best choice. End: after one step.
    Levels have 4, 6, 9, 13 and 20 things.
    """

    verifier = rules.Knapsack

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw weights and worths; about half of the weight fits."""
        size, heaviest = _LEVELS[level - 1]
        pairs = rng.integers(1, heaviest + 1, size=(size, 2)).tolist()
        things = {chr(ord("A") + n): pair for n, pair in enumerate(pairs)}
        weights = [weight for weight, _ in pairs]
        capacity = max(min(weights), sum(weights) // 2)
        listed = ", ".join(f"{name} ({w}, {worth})" for name, (w, worth) in things.items())
        return Puzzle(
            f"A bag carries a weight of {capacity}. These things have the weight and the worth in "
            f"brackets: {listed}.\nWhich of them fit into the bag together and are worth the most? "
            "Give their names, parted by commas.",
            {"items": things, "capacity": capacity},
        )
