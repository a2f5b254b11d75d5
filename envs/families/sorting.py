"""Sorting: put numbers or words in order."""

from __future__ import annotations

import numpy as np

from ...verifiers import Sorting as SortingVerifier
from .family import Family, Puzzle

_LENGTHS = (5, 8, 12, 18, 30)
_ORDERS = (
    ("number", "value", "by value"),
    ("word", "alphabet", "alphabetically"),
    ("number", "absolute value", "by absolute value"),
    ("word", "length", "by length"),
    ("word", "last letter", "by last letter"),
)
_CONSONANTS, _VOWELS = "bcdfghklmnprstvz", "aeiou"


class Sorting(Family):
    """Put numbers or words in order.

    Observation: the items and the order. Action: the reply.
    Reward: 1.0 for the order that is asked for; items whose keys tie may stand in any.
    End: after one step. Levels have 5, 8, 12, 18 and 30 items; words come in from level 2 on, as
    do keys such as the length.
    """

    verifier = SortingVerifier

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Items at random that are not in order."""
        kind, by, told = _ORDERS[int(rng.integers(level))]
        order = ("ascending", "descending")[int(rng.integers(2))]
        verifier = SortingVerifier()
        while True:
            size = _LENGTHS[level - 1]
            items = [_word(rng) if kind == "word" else _number(rng, level) for _ in range(size)]
            reference = {"items": items, "order": order, "by": by}
            if verifier.check_reference(reference) is None:
                break
        return Puzzle(
            f"Sort these {kind}s {told} in {order} order: {', '.join(map(str, items))}.\n"
            "Give all of them, parted by commas.",
            reference,
            verifier.winning_reply(reference) or "",
        )


def _number(rng: np.random.Generator, level: int) -> int | float:
    number = int(rng.integers(-(10**level), 10**level))
    return number / 10 if level >= 4 and rng.integers(2) else number


def _word(rng: np.random.Generator) -> str:
    letters = [
        (_VOWELS if place % 2 else _CONSONANTS)[int(rng.integers(5 if place % 2 else 16))]
        for place in range(int(rng.integers(3, 9)))
    ]
    return "".join(letters)
