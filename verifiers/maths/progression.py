r"""Formulas of an integer: ``\frac{\pi}{4}+k\pi`` has the values of ``\frac{5\pi}{4}-k\pi``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .equations import assignment
from .evaluate import real_value
from .expression import read_expression
from .formula import names
from .identity import constant_value, value_of
from .parsed_answer import parse_answer
from .qualifiers import Qualified

_LETTERS = frozenset("klmnstj")
_CLOSE = 1e-40
_PROBES = (2, -1, 1000)


@dataclass(frozen=True, slots=True)
class Progression:
    """``name = offset + step * letter`` for each integer; ``name`` may be empty."""

    offset: Any
    step: Any
    letter: str
    name: str = ""


def read_progression(text: str) -> Progression | None:
    """Read a formula that is linear in one letter, and holds no other; ``None`` for the rest."""
    named = assignment(parse_answer(text))
    tree = read_expression(named[1][-1] if named else text)
    letter = "".join(names(tree)) if tree is not None else ""
    if tree is None or letter not in _LETTERS:
        return None
    first, second, *others = (
        real_value(constant_value(tree, {letter: k})) for k in (0, 1, *_PROBES)
    )
    if first is None or second is None or first == second:
        return None
    step = second - first
    for k, value in zip(_PROBES, others, strict=True):
        if value is None or abs(value - first - k * step) > _CLOSE * (abs(value) + abs(step)):
            return None
    return Progression(first, step, letter, named[0] if named else "")


def same_progressions(gold: Qualified, answer: Qualified) -> bool:
    r"""Return whether two formulas with an integer variable have the same values.

    A formula such as ``(n-2)\pi`` may be a function of ``n``. So it is read as a family only if
    the gold says that the letter is whole, calls it ``k``, names what is solved for or adds full
    turns, and no value of the letter gives 0.
    """
    if gold.rule or answer.rule or not (gold.bound or "\\pi" in gold.core):
        return False
    left, right = read_progression(gold.core), read_progression(answer.core)
    if left is None or right is None:
        return False
    whole = gold.bound.get(left.letter, "")
    if whole not in {"", "Z"} or answer.bound.get(right.letter, "") not in {"", "Z"}:
        return False
    plainly = left.letter == "k" or bool(left.name) or _is_turns(left.step)
    if not whole and not (plainly and not _is_whole(left.offset / left.step)):
        return False
    if left.name and right.name and left.name != right.name:
        return False
    alike = abs(abs(left.step) - abs(right.step)) <= _CLOSE * abs(left.step)
    return alike and _is_whole((right.offset - left.offset) / left.step)


def is_class(text: str, rest: int, modulus: int) -> bool:
    """Return whether a formula such as ``5k+2`` gives a residue class of a modulus."""
    found = read_progression(text)
    return (
        found is not None
        and abs(found.step) == modulus > 0
        and _is_whole((found.offset - rest) / modulus)
    )


def _is_turns(value: Any) -> bool:
    """Return whether a value is a multiple of a full turn, as of an angle solved for."""
    turn = real_value(value_of("2\\pi"))
    return turn is not None and _is_whole(value / turn)


def _is_whole(value: Any) -> bool:
    return bool(abs(value - round(value)) <= _CLOSE * max(1, abs(value)))
