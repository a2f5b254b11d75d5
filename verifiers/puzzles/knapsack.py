"""Knapsack: are the things chosen worth the most that can be carried?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..shown import shown
from .any_answer import AnyAnswer, items
from .graph import name_fault, repeated, resolved

MAX_ITEMS = 100
MAX_CAPACITY = 10_000


class Knapsack(AnyAnswer):
    r"""Accept any things that fit and are worth the most that things that fit can be.

    The answer names them, in any order: ``A, C``, ``["A", "C"]`` or the like. Case matters only
    where two names differ in nothing else.

    Reference: ``{"items": {"A": [3, 40], "B": [4, 50], "C": [2, 30]}, "capacity": 5}``, for each
    thing its weight and worth, whole numbers. Where all fit, nothing would have to be chosen, and
    where none does, nothing could be: both are refused.

    Example:
        >>> bag = {"items": {"A": [3, 40], "B": [4, 50], "C": [2, 30]}, "capacity": 5}
        >>> [Knapsack().verify(reply, bag).score for reply in ("C, A", "B", "A, B")]
        [1.0, 0.0, 0.0]
    """

    def check_reference(self, reference: Any) -> str | None:
        """Things of which some fit and not all."""
        if not isinstance(reference, dict) or {"items", "capacity"} - set(reference):
            return f"expected items and capacity, got {shown(reference)}"
        things, capacity = reference["items"], reference["capacity"]
        if not isinstance(things, dict) or not 2 <= len(things) <= MAX_ITEMS:
            return f"items must be an object with 2 to {MAX_ITEMS} names, got {shown(things)}"
        if type(capacity) is not int or not 1 <= capacity <= MAX_CAPACITY:
            return f"capacity must be from 1 to {MAX_CAPACITY}, got {shown(capacity, 60)}"
        for name, pair in things.items():
            if (fault := name_fault(name)) is not None:
                return fault.replace("vertex", "name")
            whole = isinstance(pair, list) and [type(n) for n in pair] == [int, int]
            if not whole or not all(1 <= n <= 10**6 for n in pair):
                return f"each item must be [weight, worth] from 1 to 10**6, got {shown(pair, 60)}"
        weights = [weight for weight, _ in things.values()]
        if not min(weights) <= capacity < sum(weights):
            return "some things must fit, but not all, or nothing is to be chosen"
        return None

    def winning_reply(self, reference: Any) -> str | None:
        """One of the best choices."""
        return ", ".join(_best(reference)[1])

    def fault(self, text: str, reference: Any) -> str | None:
        """Weigh the things, and hold their worth to the most."""
        things = reference["items"]
        names = resolved(items(text), list(things), run=True)
        if (twice := repeated(names)) is not None:
            return f"names {twice} twice"
        weight = sum(things[name][0] for name in names)
        if weight > reference["capacity"]:
            return f"weighs {weight}, more than {reference['capacity']}"
        worth, most = sum(things[name][1] for name in names), _best(reference)[0]
        return f"is worth {worth} where {most} can be had" if worth < most else None


def _best(reference: Any) -> tuple[int, list[str]]:
    things = tuple((name, *pair) for name, pair in reference["items"].items())
    return best(things, reference["capacity"])


@lru_cache(maxsize=256)
def best(things: tuple[tuple[str, int, int], ...], capacity: int) -> tuple[int, list[str]]:
    """The most that can be had, and how: Bellman's recursion over capacities (1957).

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
    names, room = [], capacity
    for (name, weight, _), marks in zip(reversed(things), reversed(taken), strict=True):
        if marks[room]:
            names.append(name)
            room -= weight
    return most[capacity], names[::-1]
