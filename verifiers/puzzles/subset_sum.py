"""Subset sum: do some of the numbers add up to the target?"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from .any_answer import AnyAnswer, items

MAX_NUMBERS = 200
MAX_SUM = 200_000
_SEPARATOR = re.compile(r"[\s,;+]+")
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


class SubsetSum(AnyAnswer):
    r"""Accept any of the numbers that add up to the target, each as often as it is given.

    They are parted by commas, blanks, lines or ``+``, or are a JSON list; ``= target`` may follow.

    Reference: ``{"numbers": [3, 5, 8, 13], "target": 16}``, positive whole numbers. A target that
    no choice reaches is refused, and so is the sum of all: nothing would have to be chosen.

    Example:
        >>> problem = {"numbers": [3, 5, 8, 13], "target": 16}
        >>> [SubsetSum().verify(r, problem).score for r in ("3 + 13", "[3, 5, 8]", "8, 8")]
        [1.0, 1.0, 0.0]
    """

    def check_reference(self, reference: Any) -> str | None:
        """Positive numbers, and a target that some of them reach."""
        if not isinstance(reference, dict) or {"numbers", "target"} - set(reference):
            return f"expected numbers and target, got {shown(reference)}"
        numbers, target = reference["numbers"], reference["target"]
        if not isinstance(numbers, list) or not 2 <= len(numbers) <= MAX_NUMBERS:
            return f"numbers must be a list of 2 to {MAX_NUMBERS} numbers, got {shown(numbers)}"
        for number in [*numbers, target]:
            if type(number) is not int or not 1 <= number <= MAX_SUM:
                return f"numbers and target must be from 1 to {MAX_SUM}, got {shown(number, 60)}"
        if sum(numbers) > MAX_SUM:
            return f"the numbers must add up to at most {MAX_SUM}, got {sum(numbers)}"
        if target == sum(numbers):
            return "the target must not be the sum of all, or nothing is to be chosen"
        return None if chosen(numbers, target) else f"no choice of numbers adds up to {target}"

    def winning_reply(self, reference: Any) -> str | None:
        """One choice."""
        return ", ".join(map(str, chosen(reference["numbers"], reference["target"])))

    def fault(self, text: str, reference: Any) -> str | None:
        """Add up."""
        left, equals, right = text.partition("=")
        if equals and numbers_of(right) != [reference["target"]]:
            return f"says {shown(right.strip(), 40)} where the target is {reference['target']}"
        numbers = numbers_of(left)
        if extra := Counter(numbers) - Counter(reference["numbers"]):
            return f"uses {', '.join(map(str, sorted(extra.elements())))[:60]} beyond what is given"
        if sum(numbers) != reference["target"]:
            return f"adds up to {sum(numbers)}, not {reference['target']}"
        return None


def numbers_of(text: str) -> list[int]:
    """The whole numbers of a list or a sum.

    Raises:
        Unreadable: there is none, or something else among them.
    """
    found = items(text, _SEPARATOR)
    for item in found:
        if not _NUMBER.fullmatch(item):
            raise Unreadable(f"{shown(item, 40)} is no number")
    if not found:
        raise Unreadable("there are no numbers")
    return [int(item) for item in found]


def chosen(numbers: list[int], target: int) -> list[int]:
    """Numbers that add up to the target, empty where there are none.

    The sums that the first numbers reach are the bits of one integer.
    """
    reached = [1]
    for number in numbers:
        reached.append((reached[-1] | reached[-1] << number) & ((1 << target + 1) - 1))
    if not reached[-1] >> target & 1:
        return []
    found = []
    for number, before in zip(reversed(numbers), reversed(reached[:-1]), strict=True):
        if not before >> target & 1:
            found.append(number)
            target -= number
    return found[::-1]
