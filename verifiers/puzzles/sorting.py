"""Sorting: are the items there, each as often as given, in the order that is asked for?"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from ..verdict import Verdict
from .any_answer import ARROW, AnyAnswer, items
from .exact_number import Number, to_exact

MAX_ITEMS = 1_000
_NUMBER = re.compile(r"[-+−]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?", re.ASCII)
_WORD = re.compile(r"[^\W\d_][^\W_]{0,39}(?:[-'’][^\W_]{1,40}){0,3}")
_NUMBERS = re.compile(r"-?\d{1,30}(?:, -?\d{1,30})*", re.ASCII)
_WORDS = re.compile(r"[a-z]+(?:, [a-z]+)*")
_SEPARATOR = re.compile(rf"(?:[\s,;|<>≤≥]|{ARROW})+")
_ORDERS = {
    "number": ("value", "absolute value"),
    "word": ("alphabet", "length", "last letter"),
}


class Sorting(AnyAnswer):
    r"""Accept the items in the order that is asked for; where keys tie, in any order.

    Each item must be there as often as it is given, and nothing else. Items are parted by commas,
    blanks, lines or arrows, or are a JSON list. Numbers are compared by value, so ``7``, ``7.0``
    and ``07`` are one; words must be spelt as they are given, and their case does not count for
    the order. A comma always parts two items: ``1,000`` is two of them.

    Reference: ``{"items": [3, 1, 2], "order": "ascending"}``, or ``"descending"``; ``"by"`` is
    ``"value"`` (the default) or ``"absolute value"`` for numbers, ``"alphabet"`` (the default),
    ``"length"`` or ``"last letter"`` for words. Items that are in order already are refused.

    Args:
        partial: items in another order get a share: one minus the pairs that stand the wrong way
            round, over those of the items as given or reversed, whichever has fewer. So giving
            the items back, forwards or backwards, gets 0, as does a missing or added item.

    Example:
        >>> Sorting().verify("1, 2, 3", {"items": [3, 1, 2], "order": "ascending"}).score
        1.0
        >>> Sorting().verify("3, 2, 1.5", {"items": [3, 1, 2], "order": "descending"}).reason
        '1.5 is none of the items'
    """

    def __init__(self, *, partial: bool = False) -> None:
        self.partial = partial

    def check_reference(self, reference: Any) -> str | None:
        """Items of one kind that are not in order yet."""
        if not isinstance(reference, dict) or {"items", "order"} - set(reference):
            return f"expected items and order, got {shown(reference)}"
        given = reference["items"]
        if not isinstance(given, list) or not 2 <= len(given) <= MAX_ITEMS:
            return f"items must be a list of 2 to {MAX_ITEMS} numbers or words, got {shown(given)}"
        if reference["order"] not in ("ascending", "descending"):
            return f"order must be ascending or descending, got {shown(reference['order'], 60)}"
        kind = "word" if type(given[0]) is str else "number"
        if not _plain(given):
            for item in given:
                if not (_is_word(item) if kind == "word" else _is_number(item)):
                    return f"items must all be numbers or all single words, got {shown(item, 60)}"
        if (by := reference.get("by", _ORDERS[kind][0])) not in _ORDERS[kind]:
            return f"{kind}s can be sorted by {' or '.join(_ORDERS[kind])}, got {shown(by, 60)}"
        if not _misplaced(_given(reference), reference):
            return "the items must not be in order already, or nothing is to be done"
        return None

    def winning_reply(self, reference: Any) -> str | None:
        """The items in order, as they are given."""
        pairs = zip(_keys(_given(reference), reference), reference["items"], strict=True)
        return ", ".join(str(item) for _, item in sorted(pairs, key=lambda pair: pair[0]))

    def fault(self, text: str, reference: Any) -> str | None:
        """Whether these are the items, and in order."""
        wrong = self._misplaced(text, reference)
        return f"{wrong} pairs stand the wrong way round" if wrong else None

    def judge(self, reply: str, reference: Any) -> Verdict:
        """As :class:`AnyAnswer`; with ``partial`` an order that is nearly right gets a share."""
        verdict = super().judge(reply, reference)
        if not self.partial or verdict.score or verdict.extracted is None:
            return verdict
        try:
            wrong = self._misplaced(verdict.extracted, reference)
        except Unreadable:
            return verdict
        keys = _keys(_given(reference), reference)
        floor = min(inversions(keys), inversions(keys[::-1]))
        score = max(0.0, 1 - wrong / floor) if floor else 0.0
        return Verdict.wrong(verdict.reason, score=score, extracted=verdict.extracted)

    def _misplaced(self, text: str, reference: Any) -> int:
        numbers = type(reference["items"][0]) is not str
        found: list[Any]
        if (_NUMBERS if numbers else _WORDS).fullmatch(text):  # as tasks ask for it
            written = text.split(", ")
            found = list(map(int, written)) if numbers else written
        else:
            written = items(text, _SEPARATOR)
            found = written
        if len(written) != len(reference["items"]):
            raise Unreadable(f"expected {len(reference['items'])} items, got {len(written)}")
        if numbers and found is written:
            found = list(map(_number, written))
        given = _given(reference)
        if sorted(found) != sorted(given):
            _refuse_others(found, written, given)
        return _misplaced(found, reference)


def _refuse_others(found: list[Any], written: list[str], given: list[Any]) -> None:
    """Say which item is not one of those given, or not there as often."""
    wanted, told = Counter(given), Counter(found)
    for item, spelt in zip(found, written, strict=True):
        if item not in wanted:
            raise Unreadable(f"{spelt:.40} is none of the items")
    for item, count in wanted.items():
        if told[item] != count:
            raise Unreadable(f"{item!s:.40} must be there {count} times, not {told[item]}")


def _plain(given: list[Any]) -> bool:
    """Whether all items are whole numbers, or all words of letters: told at once."""
    kinds = set(map(type, given))
    if kinds == {int}:
        return bool(max(max(given), -min(given)) < 10**30)
    return (
        kinds == {str}
        and "" not in given
        and "".join(given).isalpha()
        and max(map(len, given)) <= 40
    )


def _is_number(item: Any) -> bool:
    return type(item) in (int, float) and abs(item) < 10**30  # NaN is not below


def _is_word(item: Any) -> bool:
    return type(item) is str and _WORD.fullmatch(item) is not None


def _number(text: str) -> Number:
    if not _NUMBER.fullmatch(text):
        raise Unreadable(f"{shown(text, 40)} is no number")
    return to_exact(text.replace("−", "-"))


def _given(reference: Any) -> list[Any]:
    given: list[Any] = reference["items"]
    return [to_exact(item) for item in given] if float in set(map(type, given)) else given


def _values(values: Sequence[Any], by: str | None) -> list[Any]:
    """What items are sorted by."""
    if by == "absolute value":
        return list(map(abs, values))
    if by == "length":
        return list(map(len, values))
    if type(values[0]) is not str:
        return list(values)
    words = [word.casefold() for word in values]
    return [word[-1] for word in words] if by == "last letter" else words


def _keys(values: Sequence[Any], reference: Any) -> list[int]:
    """The rank of each item among the values that they are sorted by."""
    keys = _values(values, reference.get("by"))
    rank = {key: n for n, key in enumerate(sorted(set(keys)))}
    return [rank[key] if reference["order"] == "ascending" else -rank[key] for key in keys]


def _misplaced(values: Sequence[Any], reference: Any) -> int:
    """How many pairs of items stand the wrong way round."""
    keys = _values(values, reference.get("by"))
    if keys == sorted(keys, reverse=reference["order"] == "descending"):
        return 0
    return inversions(_keys(values, reference))


def inversions(keys: Sequence[Any]) -> int:
    """How many pairs stand the wrong way round; equal keys never do.

    This is the distance of Kendall (1938) to the nearest sorted order.

    Example:
        >>> inversions([2, 1, 1, 3])
        2
    """
    before: list[Any] = []
    count = 0
    for key in keys:
        count += len(before) - bisect_right(before, key)
        insort(before, key)
    return count
