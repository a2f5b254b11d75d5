"""Knapsack: are the things chosen worth the most that can be carried?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..validation import safe_repr
from .graph import check_name
from .puzzle import BadReference, PuzzleVerifier, check_whole, fields
from .reading import items, names, repeated

MAX_ITEMS = 100
MAX_CAPACITY = 10_000


class Knapsack(PuzzleVerifier):
    r"""Accept any things that fit and are worth the most that things that fit can be.

    The answer names them, in any order: ``A, C``, ``["A", "C"]`` or the like. Case matters only
    if two names differ in nothing else.

    Reference: ``{"items": {"A": [3, 40], "B": [4, 50], "C": [2, 30]}, "capacity": 5}``, for each
    thing its weight and worth, integers. If all fit, nothing would have to be chosen, and
    if none does, nothing could be: both are refused.
    """

    def check(self, reference: Any) -> None:
        """Check that some things fit and not all."""
        things, capacity = fields(reference, "items", "capacity")
        if not isinstance(things, dict) or not 2 <= len(things) <= MAX_ITEMS:
            raise BadReference(f"items must be 2 to {MAX_ITEMS} by name, got {safe_repr(things)}")
        check_whole("capacity", capacity, 1, MAX_CAPACITY)
        for name, pair in things.items():
            check_name(name)
            if not isinstance(pair, list) or len(pair) != 2:
                raise BadReference(f"each item must be [weight, worth], got {safe_repr(pair, 60)}")
            for number in pair:
                check_whole("weight and worth", number, 1, 10**6)
        weights = [weight for weight, _ in things.values()]
        if not min(weights) <= capacity < sum(weights):
            raise BadReference("some things must fit, but not all, or nothing is to be chosen")

    def oracle_reply(self, reference: Any) -> str | None:
        return ", ".join(_best(reference)[1])

    def fault(self, text: str, reference: Any) -> str | None:
        things = reference["items"]
        chosen = names(items(text), list(things), run=True)
        if (twice := repeated(chosen)) is not None:
            return f"names {twice} twice"
        weight = sum(things[name][0] for name in chosen)
        if weight > reference["capacity"]:
            return f"weighs {weight}, more than {reference['capacity']}"
        worth, most = sum(things[name][1] for name in chosen), _best(reference)[0]
        return f"is worth {worth}, {most} is possible" if worth < most else None


def _best(reference: Any) -> tuple[int, list[str]]:
    things = tuple((name, *pair) for name, pair in reference["items"].items())
    return best(things, reference["capacity"])


@lru_cache(maxsize=256)
def best(things: tuple[tuple[str, int, int], ...], capacity: int) -> tuple[int, list[str]]:
    """Return the highest value and a selection with it: Bellman's recursion over capacities (1957).

    Args:
        things: name, weight and worth of each.
        capacity: the most that they may weigh together.
    """
    most = [0] * (capacity + 1)
    taken: list[bytearray] = []
    for _, weight, worth in things:
        marks = bytearray(capacity + 1)
        for room in range(capacity, weight - 1, -1):
            if most[room - weight] + worth > most[room]:
                most[room] = most[room - weight] + worth
                marks[room] = 1
        taken.append(marks)
    found, room = [], capacity
    for (name, weight, _), marks in zip(reversed(things), reversed(taken), strict=True):
        if marks[room]:
            found.append(name)
            room -= weight
    return most[capacity], found[::-1]
