"""Subset sum: do some of the numbers add up to the target?"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, PuzzleVerifier, check_list, check_whole, fields
from .reading import whole_numbers

MAX_NUMBERS = 200
MAX_SUM = 200_000
_SEPARATOR = re.compile(r"[\s,;+]+")


class SubsetSum(PuzzleVerifier):
    r"""Accept any of the numbers that add up to the target, each as often as it is given.

    They are parted by commas, blanks, lines or ``+``, or are a JSON list; ``= target`` may follow.

    Reference: ``{"numbers": [3, 5, 8, 13], "target": 16}``, positive integers. A target that
    no choice reaches is refused, and so is the sum of all: nothing would have to be chosen.
    """

    def check(self, reference: Any) -> None:
        """Check that some of the numbers reach the target, but not all."""
        numbers, target = fields(reference, "numbers", "target")
        check_list("numbers", numbers, 2, MAX_NUMBERS, "numbers")
        for number in [*numbers, target]:
            check_whole("numbers and target", number, 1, MAX_SUM)
        if sum(numbers) > MAX_SUM:
            raise BadReference(f"numbers must add up to at most {MAX_SUM}, got {sum(numbers)}")
        if target == sum(numbers):
            raise BadReference("target must not be the sum of all, or nothing is to be chosen")
        if not chosen(numbers, target):
            raise BadReference(f"no choice of numbers adds up to {target}")

    def oracle_reply(self, reference: Any) -> str | None:
        return ", ".join(map(str, chosen(reference["numbers"], reference["target"])))

    def fault(self, text: str, reference: Any) -> str | None:
        target = reference["target"]
        numbers, wrong = addends(text, target)
        if wrong is not None:
            return wrong
        if extra := Counter(numbers) - Counter(reference["numbers"]):
            return f"uses {', '.join(map(str, sorted(extra.elements())))[:60]} beyond what is given"
        return None if sum(numbers) == target else f"adds up to {sum(numbers)}, not {target}"


def addends(text: str, total: int) -> tuple[list[int], str | None]:
    """Return the numbers of a list or a sum, and what is wrong with the total after ``=``.

    Raises:
        Unreadable: there are no numbers, or something else among them.
    """
    left, equals, right = text.partition("=")
    if equals and left.strip() == str(total):  # 16 = 3 + 13
        left, right = right, left
    numbers = whole_numbers(left, _SEPARATOR)
    if equals and whole_numbers(right, _SEPARATOR) != [total]:
        return [], f"says {safe_repr(right.strip(), 40)} but the total must be {total}"
    return numbers, None


def chosen(numbers: list[int], target: int) -> list[int]:
    """Return numbers that add up to the target, none if none do.

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
