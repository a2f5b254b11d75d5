"""Countdown: does an expression use the given numbers and reach the target?"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..text.boxes import boxes
from ..text.labels import strip_label
from ..text.markup import strip_math_delimiters, unwrap_text
from ..text.read_answer import read_answer, strip_signs
from ..validation import safe_repr
from ..verdict import Verdict
from .puzzle import BadReference, PuzzleVerifier, check_whole, fields
from .reading import Unreadable

_SPELT = {
    r"\times": "*", r"\cdot": "*", r"\div": "/", r"\left": "", r"\right": "",
    "×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", r"\ast": "*", "⋅": "*", "∗": "*",
    r"\,": "", "[": "(", "]": ")", "✅": "", "✓": "",
    "（": "(", "）": ")", "＋": "+", "－": "-", "＝": "=", "。": ".",
}  # fmt: skip
_Join = Callable[[Fraction, Fraction], Fraction]
_CLAIM = re.compile(r"\s*(-?[0-9]{1,19})(?:\.0)?\s*")
_FRACTION = re.compile(r"\\[dtc]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_FRACTIONS = 8  # levels of them
_SIGNS = ("", r"\[", r"\]")
_CROSS = re.compile(r"(?<=[\d)])\s?[xX]\s?(?=[\d(])")
_MAX_LENGTH = 500
_DEEPEST = 100


class Countdown(PuzzleVerifier):
    r"""Accept any expression that uses each number once and equals the target.

    The expression is the last ``\boxed{}`` of the last ``<answer>``, or of the reply if it has
    none; without a box, the last line that is neither blank nor a code fence. A box that is
    denied or part of a formula, and a tag that is not closed, give none. ``Answer:``
    may stand before it, ``= target`` and a full stop may follow it, and Markdown's bold or code
    signs may enclose it. It may hold the numbers, ``+ - * /`` and brackets, and is worked out
    exactly by this file's own reader: nothing of it is evaluated as code.

    Reference: ``{"numbers": [3, 7, 25], "target": 46}``.

    Args:
        use_all: every number must be used; else some may be left over.
        signs: a minus may stand before a number or a bracket: ``-1 + 8*9``.
    """

    many_answers = False

    def __init__(self, *, use_all: bool = True, signs: bool = False) -> None:
        self.use_all, self.signs = use_all, signs

    def check(self, reference: Any) -> None:
        """Check that numbers and target are whole, and that a reply can write them."""
        numbers, target = fields(reference, "numbers", "target")
        if not isinstance(numbers, list) or not numbers:
            raise BadReference(f"numbers must be a list of one or more, got {safe_repr(numbers)}")
        if type(target) is not int or abs(target) >= 10**100:
            raise BadReference(f"target must be whole, below 10**100, got {safe_repr(target)}")
        for number in numbers:
            check_whole("numbers", number, 0, 10**9 - 1)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Read the expression, compare it with numbers and target."""
        found = _expression(reply)
        given, target = Counter(reference["numbers"]), reference["target"]
        try:
            value, used = _Reader(found, signs=self.signs).read()
        except Unreadable as error:
            return Verdict.unparseable(str(error), extracted=found)
        except ZeroDivisionError:
            return Verdict.wrong("divides by zero", extracted=found)
        if extra := _listed(used - given):
            return Verdict.wrong(f"uses {extra} beyond what is given", extracted=found)
        if self.use_all and (missing := _listed(given - used)):
            return Verdict.wrong(f"leaves {missing} unused", extracted=found)
        if value != target:
            return Verdict.wrong(f"equals {value}, not {target}", extracted=found)
        return Verdict.correct(f"equals {target}", extracted=found)


def _listed(numbers: Counter[int]) -> str:
    return ", ".join(map(str, sorted(numbers.elements())))


def _expression(reply: str) -> str:
    """Return the part of a reply that holds the expression, in plain signs."""
    found = read_answer(reply, ("tag", "boxed", "whole"), longest=len(reply))
    closed, unclosed = boxes(found.text or "")
    body = closed[-1][2] if closed and not unclosed else found.text or ""
    lines = (
        strip_math_delimiters(line.strip()[: 2 * _MAX_LENGTH])
        for line in reversed(body.splitlines())
    )
    body = unwrap_text(next((line for line in lines if line.strip("`$-*_") not in _SIGNS), ""))
    body = strip_label(body.removeprefix("> "), "(?:final )?(?:expression|equation|solution)")
    for written, plain in _SPELT.items():
        body = body.replace(written, plain)
    for _ in range(_FRACTIONS):
        body, changed = _FRACTION.subn(r"((\1)/(\2))", body)
        if not changed:
            break
    body = _CROSS.sub("*", body)
    return strip_signs(body.strip().removesuffix(".")).removesuffix(".")


class _Reader:
    """Recursive descent over ``sum = product (+|- product)*``, exact, bounded in length."""

    def __init__(self, text: str, *, signs: bool) -> None:
        left, equals, right = text.partition("=")
        if len(text) > _MAX_LENGTH:
            raise Unreadable(f"longer than {_MAX_LENGTH} characters")
        if equals and _CLAIM.fullmatch(left):  # 46 = 25 + 3*7
            left, right = right, left
        claim = _CLAIM.fullmatch(right)
        if equals and claim is None:
            raise Unreadable("only a whole number may follow '='")
        self.claim = int(claim[1]) if claim else None
        self.tokens = re.findall(r"[0-9]{1,9}|\S", left)
        for token in self.tokens:
            if token[0] not in "0123456789+-*/()":
                raise Unreadable(f"unexpected {token!r}")
        self.tokens.append("")  # the end
        self.signs, self.at, self.depth = signs, 0, 0
        self.used: Counter[int] = Counter()

    def read(self) -> tuple[Fraction, Counter[int]]:
        """Return the value, and how often each number is used."""
        value = self._sum()
        if self.tokens[self.at]:
            raise Unreadable(f"unexpected {self.tokens[self.at]!r}")
        if self.claim not in (None, value):
            raise Unreadable(f"says {self.claim}, but the expression equals {value}")
        return value, self.used

    def _sum(self) -> Fraction:
        return self._joined(self._product, {"+": operator.add, "-": operator.sub})

    def _product(self) -> Fraction:
        return self._joined(self._atom, {"*": operator.mul, "/": operator.truediv})

    def _joined(
        self,
        part: Callable[[], Fraction],
        join: dict[str, Callable[[Fraction, Fraction], Fraction]],
    ) -> Fraction:
        value = part()
        while self.tokens[self.at] in join:
            value = join[self._take()](value, part())
        return value

    def _atom(self) -> Fraction:
        before, taken = self.tokens[self.at - 1], self._take()
        if taken == "(":
            self.depth += 1
            if self.depth > _DEEPEST:  # Python's own bound would make it an infrastructure failure
                raise Unreadable(f"brackets are more than {_DEEPEST} deep")
            value = self._sum()
            if self._take() != ")":
                raise Unreadable("a bracket is not closed")
            self.depth -= 1
            return value
        if taken == "-" and self.signs and before != "-":
            return -self._atom()  # one sign: of more of them nobody can say what they mean
        if not taken.isdigit():
            raise Unreadable(f"expected a number, got {taken or 'the end'!r}")
        self.used[int(taken)] += 1
        return Fraction(int(taken))

    def _take(self) -> str:
        self.at += 1
        token: str = self.tokens[self.at - 1]
        return token
