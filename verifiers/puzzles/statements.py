"""What knights and knaves say: a small logic of who is what, as JSON holds it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import and_, or_
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, check_whole

_DEEPEST = 8
_PARTS = {"not": (1, 1), "and": (2, 12), "or": (2, 12), "if": (2, 2), "iff": (2, 2)}
"""How many statements a word joins, at least and at most."""


def check_statement(statement: Any, people: int) -> None:
    """Raise BadReference unless it is ``["says", person, what]``; people count from 0."""
    if not isinstance(statement, list) or len(statement) != 3 or statement[0] != "says":
        raise BadReference(
            f"a statement must be ['says', person, what], got {safe_repr(statement)}"
        )
    check_whole("a person", statement[1], 0, people - 1)
    _check_formula(statement[2], people, 1)


def _check_formula(said: Any, people: int, depth: int) -> None:
    if not isinstance(said, list) or not said or not isinstance(said[0], str):
        raise BadReference(
            f"what is said must be a list such as ['knight', 0], got {safe_repr(said)}"
        )
    kind, parts = said[0], said[1:]
    if kind in ("knight", "knave", "exactly"):
        if len(parts) != 1:
            raise BadReference(f"{kind} must be followed by one number, got {safe_repr(said)}")
        check_whole(kind, parts[0], 0, people if kind == "exactly" else people - 1)
        return
    if kind not in _PARTS:
        kinds = ", ".join(["knight", "knave", "exactly", *_PARTS])
        raise BadReference(f"what is said must be one of {kinds}, got {safe_repr(kind)}")
    least, most = _PARTS[kind]
    if not least <= len(parts) <= most:
        raise BadReference(f"{kind} joins {least} to {most} statements, got {len(parts)}")
    if depth == _DEEPEST:
        raise BadReference(f"what is said must be at most {_DEEPEST} deep")
    for part in parts:
        _check_formula(part, people, depth + 1)


def worlds(said: Any, people: int) -> int:
    """Return the set of assignments that make what is said true.

    World w makes person i a knight if bit i of w is set. A set of worlds is a number: bit w is
    set if world w is in it.
    """
    kind, *parts = said
    every = (1 << (1 << people)) - 1
    if kind in ("knight", "knave", "exactly"):
        number: int = parts[0]
        if kind == "exactly":
            return _exactly(people)[number]
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
    """Return for each person the set of worlds in which it is a knight."""
    return [sum(1 << w for w in range(1 << people) if w >> i & 1) for i in range(people)]


@lru_cache
def _exactly(people: int) -> list[int]:
    """Return for each number of knights the set of worlds with so many."""
    sets = [0] * (people + 1)
    for w in range(1 << people):
        sets[w.bit_count()] |= 1 << w
    return sets


def allowed(speaker: int, said: Any, people: int) -> int:
    """Return the worlds in which a knight says what is true, or a knave what is false."""
    every = (1 << (1 << people)) - 1
    return every & ~(worlds(said, people) ^ knights(people)[speaker])


def fitting(statements: Sequence[Any], people: int) -> int:
    """Return the set of worlds that all statements allow."""
    return reduce(and_, (allowed(who, what, people) for _, who, what in statements))
