r"""Read an exact value with its decimal after it: ``12\pi \approx 37.7``."""

from __future__ import annotations

from typing import Any

from .equations import assignment
from .evaluate import precise_number
from .identity import value_of
from .latex import split_top
from .number import read_respelled, without_unit
from .parsed_answer import parse_answer

_APPROX = "\\approx"


def without_approximations(text: str) -> str | None:
    r"""Return the exact part of each member; ``None`` if a decimal is not that of its exact value.

    ``12\pi\approx37.7`` becomes ``12\pi``, and ``x\approx11``, which has no exact part, ``x=11``.
    """
    members = [_exact(part.strip()) for part in split_top(text, ",")]
    return None if None in members else ",".join(part for part in members if part is not None)


def _exact(text: str) -> str | None:
    head, *tails = (part.strip() for part in text.split(_APPROX))
    if not tails:
        return head
    if not head:
        return tails[0] if len(tails) == 1 else None
    value = parse_answer(head)
    named = assignment(value)
    stated = assignment(parse_answer(f"{head}={tails[0]}"))
    if named is None and stated and stated[0] == head:
        return f"{head}={tails[0]}" if len(tails) == 1 else None
    amount = without_unit(named[1][-1] if named else value.text)[0]
    exact = value_of(amount)
    if exact is None or not all(_stands_for(exact, tail) for tail in tails):
        return None
    unit = tails[-1][len(without_unit(tails[-1])[0]) :]
    return head + (unit if amount == value.text else "")


def _stands_for(exact: Any, decimal: str) -> bool:
    """Return whether a decimal is the value, rounded or truncated."""
    written = read_respelled(decimal)
    if written is None or getattr(exact, "imag", False):
        return False
    scaled, value = exact * (100 if written.percent else 1), precise_number(written.value)
    gap = abs(scaled - value) * 10**written.digits
    return bool(2 * gap <= 1 or (abs(scaled) > abs(value) and gap < 1))
