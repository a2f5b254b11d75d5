"""Zebra puzzles: does an assignment of people, pets, ... to houses satisfy every clue?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..shown import shown
from ..text.markup import strip_layout
from ..text.read_answer import Unreadable
from .solution import Solution

_NAME = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")
_WORD = re.compile(r"[^\W\d_]+")
_BESIDE = frozenset(
    _WORD.findall(
        "house houses home position number is has have the a an of in at and with who lives owns "
        "owner person keeps drinks likes plays works as answer solution here so therefore "
        "thus hence final"
    )
)

_HOUSE: dict[str, Callable[[int, int], bool]] = {
    "at": lambda house, k: house == k,
    "not_at": lambda house, k: house != k,
}
_PAIR: dict[str, Callable[[int, int], bool]] = {
    "same": lambda a, b: a == b,
    "different": lambda a, b: a != b,
    "left": lambda a, b: a + 1 == b,
    "before": lambda a, b: a < b,
    "next": lambda a, b: abs(a - b) == 1,
}


class Zebra(Solution):
    r"""Accept any assignment that satisfies every clue.

    The assignment is all that stands in the last ``<answer>``, else the last ``\boxed{}``, else the
    last fenced block, else the last paragraph, or the whole reply. For each house it gives the
    house's number and then one value of each category, in any order: ``House 1: red, Alice, cat``,
    a table with a row or a column for each house, or JSON. Every value stands once; the names of
    categories and a few words such as "the" and "lives in" may stand beside them, any other word
    loses. Case does not matter.

    Reference: ``{"houses": 3, "categories": {"colour": ["red", "blue", "green"], ...}, "clues":
    [["at", "red", 1], ["left", "red", "blue"], ...]}``. Houses count from 1. Clues are ``at`` and
    ``not_at`` (a value and a house), ``same``, ``different``, ``left`` (right beside it),
    ``before`` (anywhere to the left) and ``next`` (two values). No value is in two categories.

    Example:
        >>> puzzle = {
        ...     "houses": 2,
        ...     "categories": {"name": ["Ann", "Bob"], "pet": ["cat", "dog"]},
        ...     "clues": [["at", "Ann", 2], ["left", "cat", "dog"]],
        ... }
        >>> Zebra().verify("House 1: Bob, cat\nHouse 2: Ann, dog", puzzle).score
        1.0
    """

    def check_reference(self, reference: Any) -> str | None:
        """A reference has categories with a value for each house, and clues about them."""
        if not isinstance(reference, dict) or {"houses", "categories", "clues"} - set(reference):
            return f"expected houses, categories and clues, got {shown(reference)}"
        houses, categories, clues = (reference[k] for k in ("houses", "categories", "clues"))
        if type(houses) is not int or not 2 <= houses <= 9:
            return f"houses must be a whole number from 2 to 9, got {shown(houses)}"
        fault = _bad_categories(categories, houses)
        if fault is not None:
            return fault
        if not isinstance(clues, list) or not clues:
            return f"clues must be a list with at least one clue, got {shown(clues)}"
        known = {value for values in categories.values() for value in values}
        faults = (_bad_clue(clue, houses, known) for clue in clues)
        return next((fault for fault in faults if fault is not None), None)

    def read(self, text: str, reference: Any) -> dict[str, int]:
        """The house of each value."""
        return _read(text, reference["houses"], reference["categories"])

    def broken(self, solution: dict[str, int], reference: Any) -> str | None:
        """The first clue that does not hold."""
        for kind, left, right in reference["clues"]:
            holds = (
                _HOUSE[kind](solution[left], right)
                if kind in _HOUSE
                else _PAIR[kind](solution[left], solution[right])
            )
            if not holds:
                return f"breaks the clue {kind} {left} {right}"
        return None


def _bad_categories(categories: Any, houses: int) -> str | None:
    if not isinstance(categories, dict) or not 1 <= len(categories) <= 12:
        return f"categories must be a dict of 1 to 12 lists, got {shown(categories)}"
    for name, values in categories.items():
        if not isinstance(values, list) or len(values) != houses:
            return f"category {shown(name)} must list {houses} values, got {shown(values)}"
        for value in values:
            if not isinstance(value, str) or len(value) > 40 or not _NAME.fullmatch(value):
                return f"values must be words of letters, got {shown(value)}"
            if value.casefold() in _BESIDE:
                return f"values must not be words that stand beside them, got {value!r}"
    every = [value.casefold() for values in categories.values() for value in values]
    twice = next((v for v in every if every.count(v) > 1), None)
    if twice is not None:
        return f"a value must be in one category, once, but {twice!r} is there twice"
    named = next((v for name in categories for v in every if v in _words(name)), None)
    return None if named is None else f"a category must not have a value's name, got {named!r}"


def _bad_clue(clue: Any, houses: int, known: set[str]) -> str | None:
    if not isinstance(clue, list) or len(clue) != 3 or not isinstance(clue[0], str):
        return f"a clue must be [kind, value, value or house], got {shown(clue)}"
    kind, left, right = clue
    if kind not in _HOUSE and kind not in _PAIR:
        return f"a clue's kind must be one of {', '.join([*_HOUSE, *_PAIR])}, got {shown(kind)}"
    if kind in _HOUSE and not (type(right) is int and 1 <= right <= houses):
        return f"a house must be from 1 to {houses}, got {shown(right)} in {shown(clue)}"
    values = [left] if kind in _HOUSE else [left, right]
    unknown = [v for v in values if not isinstance(v, str) or v not in known]
    return f"a clue must name values of the categories, got {shown(clue)}" if unknown else None


def _words(name: str) -> list[str]:
    """The words that a category's name may be written in."""
    return [name.casefold(), *_WORD.findall(name.casefold())]


# -- replies -----------------------------------------------------------------------------------


def _read(text: str, houses: int, categories: Mapping[str, list[str]]) -> dict[str, int]:
    """The house of each value."""
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
        raise Unreadable("every value must stand once")
    return house


def _groups(text: str, categories: Mapping[str, list[str]]) -> tuple[list[str], list[list[str]]]:
    """The numbers of an answer, and the values that follow each of them."""
    values = {v.casefold(): v for listed in categories.values() for v in listed}
    beside = _BESIDE.union(*(_words(name) for name in categories))
    numbers: list[str] = []
    groups: list[list[str]] = []
    for token in _tokens(values).finditer(strip_layout(text)):
        word = token.group().casefold()
        if word in values and groups:
            groups[-1].append(values[word])
        elif word in values:
            raise Unreadable(f"{token.group()!r} stands before the number of its house")
        elif token.group("number"):
            if not groups or groups[-1] or numbers[-1] != word:  # "1. House 1" is one house
                numbers.append(word)
                groups.append([])
        elif word not in beside:
            raise Unreadable(f"unexpected {shown(token.group(), 40)}")
    return numbers, groups or [[]]


def _tokens(values: Mapping[str, str]) -> re.Pattern[str]:
    longest_first = sorted(values, key=len, reverse=True)
    known = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?:{known})(?![^\W\d_])|(?P<number>\d+)|[^\W\d_]+", re.IGNORECASE)
