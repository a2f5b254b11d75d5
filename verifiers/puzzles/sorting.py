"""Sorting: are the items there, each as often as given, in the required order?"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..validation import safe_repr
from ..verdict import Verdict
from .exact_number import to_exact
from .puzzle import BadReference, PuzzleVerifier, check_list, fields
from .reading import ARROW, Unreadable, items

MAX_ITEMS = 1_000
_NUMBER = re.compile(
    r"[-+−–]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?", re.ASCII
)
_WORD = re.compile(r"[^\W\d_][^\W_]{0,39}(?:[-'’][^\W_]{1,40}){0,3}")
_SEPARATOR = re.compile(rf"(?:[\s,;|<>≤≥]|{ARROW})+")
_OTHER_ORDER = {
    "ascending": re.compile(r"(?<![-=>])>(?!>)|≥"),
    "descending": re.compile(r"<(?![-=<])|≤"),
}
"""Signs between numbers, no arrows, that state another order than the wanted one."""
_KEYS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "number": {"value": lambda number: number, "absolute value": abs},
    "word": {
        "alphabet": str.casefold,
        "length": len,
        "last letter": lambda word: word.casefold()[-1],
    },
}
"""By kind of items and name: what they are sorted by; the first is the default."""


class Sorting(PuzzleVerifier):
    r"""Accept the items in the required order; if keys tie, in any order.

    Each item must be there as often as it is given, and nothing else. Items are parted by commas,
    blanks, lines, arrows or, if that is true of numbers, ``<``; or they are a JSON list. Numbers
    are compared by value, so ``7``, ``7.0`` and ``07`` are one; words must be spelt as they are
    given, and their case does not count for the order. A comma always parts two items: ``1,000``
    is two of them.

    Reference: ``{"items": [3, 1, 2], "order": "ascending"}``, or ``"descending"``; ``"by"`` is
    ``"value"`` (the default) or ``"absolute value"`` for numbers, ``"alphabet"`` (the default),
    ``"length"`` or ``"last letter"`` for words. Items that are in order already are refused.

    Args:
        partial: items in another order get a share: one minus the pairs that stand the wrong way
            round, over those of the items as given or reversed, whichever has fewer. So giving
            the items back, forwards or backwards, gets 0, as does a missing or added item.
    """

    def __init__(self, *, partial: bool = False) -> None:
        self.partial = partial

    def check(self, reference: Any) -> None:
        """Check that items of one kind are not in order yet."""
        given, order = fields(reference, "items", "order")
        check_list("items", given, 2, MAX_ITEMS, "numbers or words")
        if order not in ("ascending", "descending"):
            raise BadReference(f"order must be ascending or descending, got {safe_repr(order, 60)}")
        kind = _kind(given)
        for item in given:
            if not (_is_word(item) if kind == "word" else _is_number(item)):
                raise BadReference(
                    f"items must all be numbers or all single words, got {safe_repr(item, 60)}"
                )
        by = reference.get("by", next(iter(_KEYS[kind])))
        if by not in [*_KEYS[kind]]:
            raise BadReference(
                f"{kind}s can be sorted by {' or '.join(_KEYS[kind])}, got {safe_repr(by, 60)}"
            )
        if not misplaced(_exact(given), reference):
            raise BadReference("the items must not be in order already, or nothing is to be done")

    def oracle_reply(self, reference: Any) -> str | None:
        ranks = _ranks(_exact(reference["items"]), reference)
        pairs = zip(ranks, reference["items"], strict=True)
        return ", ".join(str(item) for _, item in sorted(pairs, key=lambda pair: pair[0]))

    def fault(self, text: str, reference: Any) -> str | None:
        wrong = misplaced(_read(text, reference["items"], reference["order"]), reference)
        return f"{wrong} pairs are in the wrong order" if wrong else None

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply; with ``partial`` an order that is nearly right gets a share."""
        verdict = super().judge(reply, reference)
        if not self.partial or verdict.score or verdict.extracted is None:
            return verdict
        try:
            found = _read(verdict.extracted, reference["items"], reference["order"])
        except Unreadable:
            return verdict
        ranks = _ranks(_exact(reference["items"]), reference)
        floor = min(inversions(ranks), inversions(ranks[::-1]))
        score = max(0.0, 1 - misplaced(found, reference) / floor) if floor else 0.0
        return Verdict.wrong(verdict.reason, score=score, extracted=verdict.extracted)


def _read(text: str, reference: list[Any], order: str) -> list[Any]:
    """Return the items of a reply, numbers by value.

    Raises:
        Unreadable: they are not those that are given, or signs between them deny the order.
    """
    if _kind(reference) == "number" and _OTHER_ORDER[order].search(text):
        raise Unreadable("the signs state another order")
    spelt = items(text, _SEPARATOR)
    if len(spelt) != len(reference):
        raise Unreadable(f"expected {len(reference)} items, got {len(spelt)}")
    given = [*map(_number, spelt)] if _kind(reference) == "number" else spelt
    wanted, got = Counter(_exact(reference)), Counter(given)
    for item, written in zip(given, spelt, strict=True):
        if item not in wanted:
            raise Unreadable(f"{written:.40} is not one of the items")
    for item, count in wanted.items():
        if got[item] != count:
            raise Unreadable(f"{item!s:.40} must be there {count} times, not {got[item]}")
    return given


def _kind(given: list[Any]) -> str:
    return "word" if type(given[0]) is str else "number"


def _is_number(item: Any) -> bool:
    return type(item) in (int, float) and abs(item) < 10**30  # NaN is not below


def _is_word(item: Any) -> bool:
    return type(item) is str and _WORD.fullmatch(item) is not None


def _number(text: str) -> Any:
    if not _NUMBER.fullmatch(text):
        raise Unreadable(f"{safe_repr(text, 40)} is no number")
    return to_exact(re.sub("[−–]", "-", text))


def _exact(given: list[Any]) -> list[Any]:
    return given if _kind(given) == "word" else [to_exact(item) for item in given]


def _ranks(given: Sequence[Any], reference: Any) -> list[int]:
    """Return the rank of each item in the required order; equal keys have one rank."""
    keys = _KEYS[_kind(reference["items"])]
    key = keys[reference.get("by", next(iter(keys)))]
    values = [key(item) for item in given]
    rank = {value: n for n, value in enumerate(sorted(set(values)))}
    return [rank[v] if reference["order"] == "ascending" else -rank[v] for v in values]


def misplaced(given: Sequence[Any], reference: Any) -> int:
    """Count the pairs of items in the wrong order."""
    return inversions(_ranks(given, reference))


def inversions(keys: Sequence[Any]) -> int:
    """Count the pairs in the wrong order; equal keys never are.

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
