"""Coin change: make an amount with the fewest coins."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import coin_change as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((3, 15, 40), (4, 20, 70), (4, 25, 120), (5, 40, 250), (6, 60, 500))
"""How many coins there are beside 1, the largest, and the largest amount."""


class CoinChange(PuzzleEnv):
    """Make an amount with as few coins as possible; taking the largest first may fail.

    Observation: the coins and the amount. Action: the reply.
    Reward: 1.0 for any of the shortest lists of coins. End: after one step.
    Levels have 4, 5, 5, 6 and 7 coins, and amounts up to 40, 70, 120, 250 and 500.
    """

    verifier = rules.CoinChange

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a coin of 1, others, and an amount that is above each of them."""
        number, largest, most = _LEVELS[level - 1]
        coins = [1, *sorted(int(n) + 2 for n in rng.permutation(largest - 1)[:number])]
        amount = int(rng.integers(coins[-1] + 1, most + 1))
        return Puzzle(
            f"There are coins of {', '.join(map(str, coins))}, any number of each. Make "
            f"{amount} with as few coins as possible. Give the coins, each as often "
            "as it is used, parted by commas.",
            {"coins": coins, "amount": amount},
        )
