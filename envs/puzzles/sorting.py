"""Sorting: put numbers or words in order."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import sorting as rules
from ..puzzle_env import Puzzle, PuzzleEnv
from ..seeding import below, between

_LENGTHS = (5, 8, 12, 18, 30)
_ORDERS = (
    ("number", "value", "by value"),
    ("word", "alphabet", "alphabetically"),
    ("number", "absolute value", "by absolute value"),
    ("word", "length", "by length"),
    ("word", "last letter", "by last letter"),
)
_LETTERS = ("bcdfghklmnprstvz", "aeiou")


class Sorting(PuzzleEnv):
    """Put numbers or words in order.

    Observation: the items and the order. Action: the reply.
    Reward: 1.0 for the required order; items whose keys tie may stand in any.
    End: after one step. Levels have 5, 8, 12, 18 and 30 items; words come in from level 2 on, as
    do keys such as the length.
    """

    verifier = rules.Sorting

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw items that are not in order."""
        kind, by, how = _ORDERS[below(rng, level)]
        order = "descending" if rng.random() < 0.5 else "ascending"
        make = _word if kind == "word" else _number
        reference: dict[str, object] = {"order": order, "by": by}
        ordered = True
        while ordered:
            items = [make(rng, level) for _ in range(_LENGTHS[level - 1])]
            reference["items"] = items
            ordered = rules.misplaced(items, reference) == 0
        return Puzzle(
            f"Sort these {kind}s {how} in {order} order: {', '.join(map(str, items))}.\n"
            "Give all of them, parted by commas.",
            reference,
        )


def _number(rng: np.random.Generator, level: int) -> int | float:
    largest: int = 10**level
    number = below(rng, 2 * largest) - largest
    return number / 10 if level >= 4 and rng.random() < 0.5 else number


def _word(rng: np.random.Generator, level: int) -> str:
    parts = enumerate(rng.random(between(rng, 3, 8)).tolist())
    return "".join(_LETTERS[n % 2][int(part * len(_LETTERS[n % 2]))] for n, part in parts)
