"""Sorting: put numbers or words in order."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from ...verifiers import Sorting as SortingVerifier
from ..draws import below, between
from .puzzle_env import Puzzle, PuzzleEnv

_LENGTHS = (5, 8, 12, 18, 30)
_ORDERS = (
    ("number", "value", "by value"),
    ("word", "alphabet", "alphabetically"),
    ("number", "absolute value", "by absolute value"),
    ("word", "length", "by length"),
    ("word", "last letter", "by last letter"),
)
_CONSONANTS, _VOWELS = "bcdfghklmnprstvz", "aeiou"


class Sorting(PuzzleEnv):
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
        kind, by, told = _ORDERS[below(rng, level)]
        descending = rng.random() < 0.5
        make, size = (_word if kind == "word" else _number), _LENGTHS[level - 1]
        items: list[Any] = []
        ordered = items
        while ordered == items:
            items = [make(rng, level) for _ in range(size)]
            ordered = sorted(items, key=_KEYS.get(by), reverse=descending)
        order = "descending" if descending else "ascending"
        return Puzzle(
            f"Sort these {kind}s {told} in {order} order: {', '.join(map(str, items))}.\n"
            "Give all of them, parted by commas.",
            {"items": items, "order": order, "by": by},
            ", ".join(map(str, ordered)),
            own=True,
        )


def _number(rng: np.random.Generator, level: int) -> int | float:
    largest: int = 10**level
    number = below(rng, 2 * largest) - largest
    return number / 10 if level >= 4 and rng.random() < 0.5 else number


def _word(rng: np.random.Generator, level: int) -> str:
    parts = rng.random(between(rng, 3, 8)).tolist()
    return "".join(
        [
            (_VOWELS if n % 2 else _CONSONANTS)[int(p * (5 if n % 2 else 16))]
            for n, p in enumerate(parts)
        ]
    )


_KEYS: dict[str, Callable[[Any], Any]] = {
    "absolute value": abs,
    "length": len,
    "last letter": itemgetter(-1),
}
