"""What knights and knaves say: a small logic of who is what, as JSON holds it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import and_, or_
from typing import Any

from ..shown import shown

_DEEPEST = 8
_PARTS = {"not": (1, 1), "and": (2, 12), "or": (2, 12), "if": (2, 2), "iff": (2, 2)}
"""How many statements a word joins, at least and at most."""


def bad_statement(statement: Any, people: int) -> str | None:
    """What is wrong with ``["says", person, what]``, or ``None``; people are numbered from 0."""
    if not isinstance(statement, list) or len(statement) != 3 or statement[0] != "says":
        return f"a statement must be ['says', person, what], got {shown(statement)}"
    speaker = statement[1]
    if type(speaker) is not int or not 0 <= speaker < people:
        return f"a person must be a number from 0 to {people - 1}, got {shown(speaker)}"
    return _bad_formula(statement[2], people, 1)


def _bad_formula(said: Any, people: int, depth: int) -> str | None:
    if not isinstance(said, list) or not said or not isinstance(said[0], str):
        return f"what is said must be a list such as ['knight', 0], got {shown(said)}"
    kind, parts = said[0], said[1:]
    if kind in ("knight", "knave", "exactly"):
        most = people if kind == "exactly" else people - 1
        if len(parts) == 1 and type(parts[0]) is int and 0 <= parts[0] <= most:
            return None
        return f"{kind} must be followed by one number from 0 to {most}, got {shown(said)}"
    if kind not in _PARTS:
        kinds = ", ".join(["knight", "knave", "exactly", *_PARTS])
        return f"what is said must be one of {kinds}, got {shown(kind)}"
    least, most = _PARTS[kind]
    if not least <= len(parts) <= most:
        return f"{kind} joins {least} to {most} statements, got {len(parts)}"
    if depth == _DEEPEST:
        return f"what is said must be at most {_DEEPEST} deep"
    faults = (_bad_formula(part, people, depth + 1) for part in parts)
    return next((fault for fault in faults if fault is not None), None)


def truth(said: Any, knights: Sequence[bool]) -> bool:
    """Whether what is said is true, where ``knights[i]`` says that person i is a knight."""
    kind, *parts = said
    if kind in ("knight", "knave", "exactly"):
        number: int = parts[0]
        return (
            sum(knights) == number if kind == "exactly" else knights[number] is (kind == "knight")
        )
    values = [truth(part, knights) for part in parts]
    if kind == "not":
        return not values[0]
    if kind == "if":
        return values[1] or not values[0]
    if kind == "iff":
        return values[0] == values[1]
    return all(values) if kind == "and" else any(values)


def worlds(said: Any, people: int) -> int:
    """The set of assignments that make what is said true.

    World w makes person i a knight where bit i of w is set. A set of worlds is a number: bit w is
    set where world w is in it.
    """
    kind, *parts = said
    every = (1 << (1 << people)) - 1
    if kind in ("knight", "knave", "exactly"):
        number: int = parts[0]
        if kind == "exactly":
            return exactly(people)[number]
        knight = knights(people)[number]
        return knight if kind == "knight" else every & ~knight
    sets = [worlds(part, people) for part in parts]
    if kind == "not":
        return every & ~sets[0]
    if kind == "if":
        return every & ~sets[0] | sets[1]
    if kind == "iff":
        return every & ~(sets[0] ^ sets[1])
    return reduce(and_ if kind == "and" else or_, sets)


@lru_cache
def knights(people: int) -> list[int]:
    """For each person, the set of worlds in which it is a knight."""
    return [sum(1 << w for w in range(1 << people) if w >> i & 1) for i in range(people)]


@lru_cache
def exactly(people: int) -> list[int]:
    """For each number of knights, the set of worlds with so many."""
    sets = [0] * (people + 1)
    for w in range(1 << people):
        sets[w.bit_count()] |= 1 << w
    return sets


def fitting(statements: Sequence[Any], people: int) -> int:
    """The set of worlds that all statements allow."""
    every = (1 << (1 << people)) - 1
    said = (worlds(what, people) ^ knights(people)[who] for _, who, what in statements)
    return reduce(lambda fits, other: fits & ~other, said, every)
