"""Zebra puzzles: does an assignment of people, pets, ... to houses satisfy every clue?"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..text.markup import strip_layout
from ..validation import safe_repr
from .puzzle import BadReference, GridVerifier, check_list, check_whole, fields
from .reading import Unreadable

_NAME = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")
_WORD = re.compile(r"[^\W\d_]+")
_BESIDE = frozenset(
    _WORD.findall(
        "house houses home position number is has have the a an of in at and with who lives owns "
        "owner person keeps drinks likes plays works as answer solution here so therefore "
        "thus hence final"
    )
)

RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "at": operator.eq,
    "not_at": operator.ne,
    "same": operator.eq,
    "different": operator.ne,
    "left": lambda a, b: a + 1 == b,
    "before": operator.lt,
    "next": lambda a, b: abs(a - b) == 1,
}
"""By kind of clue: how the house of a value is related to a house, or to that of another value."""

PLACED = ("at", "not_at")
"""The kinds of clue that name a house."""


class Zebra(GridVerifier):
    r"""Accept any assignment that satisfies every clue.

    For each house it gives the house's number and then one value of each category, in any order:
    ``House 1: red, Alice, cat``, a table with a row or a column for each house, or JSON. Every
    value stands once; the names of categories and a few words such as "the" and "lives in" may
    stand beside them, any other word fails. Case does not matter. The assignment is all that stands
    in the last ``<answer>``, else the last ``\boxed{}``, else the last fenced block, else the last
    paragraph or the whole reply.

    Reference: ``{"houses": 3, "categories": {"colour": ["red", "blue", "green"], ...}, "clues":
    [["at", "red", 1], ["left", "red", "blue"], ...]}``. Houses count from 1. Clues are ``at`` and
    ``not_at`` (a value and a house), ``same``, ``different``, ``left`` (right beside it),
    ``before`` (anywhere to the left) and ``next`` (two values). No value is in two categories.
    """

    def check(self, reference: Any) -> None:
        """Check that categories have a value for each house, and that clues are about them."""
        houses, categories, clues = fields(reference, "houses", "categories", "clues")
        check_whole("houses", houses, 2, 9)
        _check_categories(categories, houses)
        if not isinstance(clues, list) or not clues:
            raise BadReference(f"clues must be a list of one or more, got {safe_repr(clues)}")
        known = [value for values in categories.values() for value in values]
        for clue in clues:
            if not isinstance(clue, list) or len(clue) != 3 or not isinstance(clue[0], str):
                raise BadReference(
                    f"a clue must be [kind, value, value or house], got {safe_repr(clue)}"
                )
            kind, left, right = clue
            if kind not in RELATIONS:
                raise BadReference(f"a clue must be {', '.join(RELATIONS)}, got {safe_repr(kind)}")
            if kind in PLACED:
                check_whole("the house of a clue", right, 1, houses)
            if left not in known or (kind not in PLACED and right not in known):
                raise BadReference(
                    f"a clue must name values of the categories, got {safe_repr(clue)}"
                )

    def fault(self, text: str, reference: Any) -> str | None:
        house = _read(text, reference["houses"], reference["categories"])
        for kind, left, right in reference["clues"]:
            if not RELATIONS[kind](house[left], right if kind in PLACED else house[right]):
                return f"breaks the clue {kind} {left} {right}"
        return None


def _check_categories(categories: Any, houses: int) -> None:
    if not isinstance(categories, dict) or not 1 <= len(categories) <= 12:
        raise BadReference(
            f"categories must be a dict of 1 to 12 lists, got {safe_repr(categories)}"
        )
    for name, values in categories.items():
        check_list(f"category {safe_repr(name)}", values, houses, houses, "values")
        for value in values:
            if not isinstance(value, str) or len(value) > 40 or not _NAME.fullmatch(value):
                raise BadReference(f"values must be words of letters, got {safe_repr(value)}")
            if value.casefold() in _BESIDE:
                raise BadReference(f"a value must not be a word that is used beside one: {value!r}")
    every = [value.casefold() for values in categories.values() for value in values]
    twice = next((v for v in every if every.count(v) > 1), None)
    if twice is not None:
        raise BadReference(f"a value must be in one category, once, but {twice!r} is there twice")
    named = next((v for name in categories for v in every if v in _words(name)), None)
    if named is not None:
        raise BadReference(f"a category must not have a value's name, got {named!r}")


def _words(name: str) -> list[str]:
    """Return the words that a category's name may be written in."""
    return [name.casefold(), *_WORD.findall(name.casefold())]


def _read(text: str, houses: int, categories: Mapping[str, list[str]]) -> dict[str, int]:
    """Return the house of each value."""
    numbers, groups = _groups(text, categories)
    category = {v: name for name, values in categories.items() for v in values}
    wanted = sorted(str(k) for k in range(1, houses + 1))
    if sorted(numbers) != wanted:
        got = ", ".join(numbers[:20]) or "none"
        raise Unreadable(f"expected the houses 1 to {houses}, each once, got {got}")
    if len(groups[-1]) == len(category) and not any(groups[:-1]):  # a column for each house
        values = groups[-1]
        rows = [values[i : i + houses] for i in range(0, len(values), houses)]
        if any(len({category[v] for v in row}) > 1 for row in rows):
            raise Unreadable("a row must hold values of one category")
        groups = [list(column) for column in zip(*rows, strict=True)]
    for number, group in zip(numbers, groups, strict=True):
        if sorted(category[v] for v in group) != sorted(categories):
            raise Unreadable(f"house {number} must have one value of each category, got {group}")
    house = {v: int(n) for n, group in zip(numbers, groups, strict=True) for v in group}
    if len(house) != len(category):
        raise Unreadable("every value must occur once")
    return house


def _groups(text: str, categories: Mapping[str, list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return the numbers of an answer, and the values that follow each of them."""
    values = {v.casefold(): v for listed in categories.values() for v in listed}
    beside = _BESIDE.union(*(_words(name) for name in categories))
    numbers: list[str] = []
    groups: list[list[str]] = []
    for token in _tokens(values).finditer(strip_layout(text)):
        word = token.group().casefold()
        if word in values and groups:
            groups[-1].append(values[word])
        elif word in values:
            raise Unreadable(f"{token.group()!r} precedes the number of its house")
        elif token.group("number"):
            if not groups or groups[-1] or numbers[-1] != word:  # "1. House 1" is one house
                numbers.append(word)
                groups.append([])
        elif word not in beside:
            raise Unreadable(f"unexpected {safe_repr(token.group(), 40)}")
    return numbers, groups or [[]]


def _tokens(values: Mapping[str, str]) -> re.Pattern[str]:
    longest_first = sorted(values, key=len, reverse=True)
    known = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?:{known})(?![^\W\d_])|(?P<number>\d+)|[^\W\d_]+", re.IGNORECASE)
