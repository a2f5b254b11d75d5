"""Countdown: does an expression use the given numbers and reach the target?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ..shown import shown
from ..text.boxes import boxes
from ..text.labels import unlabelled
from ..text.thought import after_thinking
from ..verdict import Status, Verdict
from ..verifier import Verifier

_TOKEN = re.compile(r"\s*(?:([0-9]{1,9})|([-+*/()]))")
_SIGNS = {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"}
_LATEX = {r"\times": "*", r"\cdot": "*", r"\div": "/", r"\left": "", r"\right": ""}
_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_FRACTIONS = 8  # levels of them
_CROSS = re.compile(r"(?<=[\d)])\s?[xX]\s?(?=[\d(])")
_MAX_LENGTH = 500
_DEEPEST = 100
_LARGEST = 10**100


class Countdown(Verifier):
    r"""Accept any expression that uses each number once and equals the target.

    The expression is the last ``\boxed{}`` of the last ``<answer>``, or of the reply where it has
    none; where there is no box, the last line that is neither blank nor a code fence. ``Answer:``
    may stand before it, ``= target`` and a full stop may follow it, and Markdown's bold or code
    signs may enclose it. It may hold the numbers,
    ``+ - * /`` and brackets, and is worked out exactly by this file's own reader: nothing of it
    is evaluated as code.

    Reference: ``{"numbers": [3, 7, 25], "target": 46}``.

    Args:
        use_all: every number must be used; else some may be left over.
        signs: a minus may stand before a number or a bracket: ``-1 + 8*9``.

    Example:
        >>> problem = {"numbers": [3, 7, 25], "target": 46}
        >>> Countdown().verify("<answer>25+7*3</answer>", problem).score
        1.0
    """

    def __init__(self, *, use_all: bool = True, signs: bool = False) -> None:
        self.use_all, self.signs = use_all, signs

    def check_reference(self, reference: Any) -> str | None:
        """A reference names its numbers and its target, whole numbers all."""
        if not isinstance(reference, dict) or {"numbers", "target"} - set(reference):
            return f"expected numbers and target, got {shown(reference)}"
        numbers = reference["numbers"]
        if not isinstance(numbers, list) or not numbers:
            return f"numbers must be a list with at least one number, got {shown(numbers)}"
        for value in [*numbers, reference["target"]]:
            if type(value) is not int:
                return f"numbers and target must be whole numbers, got {shown(value)}"
        if abs(reference["target"]) >= _LARGEST:
            return f"target must be below 10**100, got {shown(reference['target'])}"
        for value in numbers:
            if not 0 <= value < 10**9:  # a reply can write no other
                return f"numbers must be from 0 to 999999999, got {shown(value)}"
        return None

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Read the expression, hold it against numbers and target."""
        found = _expression(reply)
        given, target = Counter(reference["numbers"]), reference["target"]
        try:
            value, used = _Reader(found, signs=self.signs).read()
        except _Unreadable as error:
            return Verdict.wrong(str(error), status=Status.UNPARSEABLE, extracted=found)
        except ZeroDivisionError:
            return Verdict.wrong("divides by zero", extracted=found)
        if used - given:
            extra = ", ".join(map(str, sorted((used - given).elements())))
            return Verdict.wrong(f"uses {extra} beyond what is given", extracted=found)
        if self.use_all and given - used:
            missing = ", ".join(map(str, sorted((given - used).elements())))
            return Verdict.wrong(f"leaves {missing} unused", extracted=found)
        if value != target:
            return Verdict.wrong(f"equals {value}, not {target}", extracted=found)
        return Verdict.correct(f"equals {target}", extracted=found)


class _Unreadable(ValueError):
    """The text is not an expression."""


def _expression(reply: str) -> str:
    """The part of a reply that holds the expression, its signs made plain; found in one pass."""
    body = after_thinking(reply) or ""
    if "<answer>" in body:
        body = body.rpartition("<answer>")[2].partition("</answer>")[0]
    closed, unclosed = boxes(body)
    if closed and not unclosed:
        body = closed[-1][2]
    body = next((line for line in reversed(body.splitlines()) if line.strip().strip("`")), "")
    body = unlabelled(body.strip()[: 2 * _MAX_LENGTH])
    for written, plain in {**_LATEX, **_SIGNS}.items():
        body = body.replace(written, plain)
    body = body.strip().removesuffix(".")
    for _ in range(_FRACTIONS):
        body, changed = _FRACTION.subn(r"((\1)/(\2))", body)
        if not changed:
            break
    body = _CROSS.sub("*", body)
    for mark in ("**", "`", "$$", "$"):
        if body.startswith(mark) and body.endswith(mark):
            body = body[len(mark) : -len(mark)].strip()
    return body.removesuffix(".")


class _Reader:
    """Recursive descent over ``sum = product (+|- product)*``, exact, bounded in length."""

    def __init__(self, text: str, *, signs: bool) -> None:
        self.signs = signs
        if len(text) > _MAX_LENGTH:
            raise _Unreadable(f"longer than {_MAX_LENGTH} characters")
        left, equals, right = text.partition("=")
        self.claim = Fraction(right.strip()) if equals and _is_integer(right) else None
        if equals and self.claim is None:
            raise _Unreadable("only a whole number may follow '='")
        self.tokens = list(_tokens(left))
        self.at = 0
        self.depth = 0
        self.used: Counter[int] = Counter()

    def read(self) -> tuple[Fraction, Counter[int]]:
        """The value, and how often each number is used."""
        value = self._sum()
        if self.at < len(self.tokens):
            raise _Unreadable(f"unexpected {self.tokens[self.at]!r}")
        if self.claim is not None and self.claim != value:
            raise _Unreadable(f"says {self.claim} where the expression equals {value}")
        return value, self.used

    def _sum(self) -> Fraction:
        value = self._product()
        while self._next_is("+", "-"):
            sign = self._take()
            right = self._product()
            value = value + right if sign == "+" else value - right
        return value

    def _product(self) -> Fraction:
        value = self._atom()
        while self._next_is("*", "/"):
            sign = self._take()
            right = self._atom()
            value = value * right if sign == "*" else value / right
        return value

    def _atom(self) -> Fraction:
        taken = self._take()
        if taken == "(":
            self.depth += 1
            if self.depth > _DEEPEST:  # Python's own bound would make it a fault of ours
                raise _Unreadable(f"brackets are more than {_DEEPEST} deep")
            value = self._sum()
            if self._take() != ")":
                raise _Unreadable("a bracket is not closed")
            self.depth -= 1
            return value
        if taken == "-" and self.signs and self.tokens[self.at - 2 : self.at - 1] != ["-"]:
            return -self._atom()  # one sign: of more of them nobody can say what they mean
        if not taken.isdigit():
            raise _Unreadable(f"expected a number, got {taken or 'the end'!r}")
        self.used[int(taken)] += 1
        return Fraction(int(taken))

    def _next_is(self, *signs: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] in signs

    def _take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""


def _is_integer(text: str) -> bool:
    digits = text.strip().removeprefix("-").removesuffix(".0")
    return digits.isascii() and digits.isdigit() and len(digits) < 20


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if not found:
            raise _Unreadable(f"unexpected {text[at:].strip()[0]!r}")
        yield found.group().strip()
        at = found.end()
