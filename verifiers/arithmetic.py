r"""Exact values of written arithmetic: ``2^{10}``, ``24+1``, ``\frac{2+4}{3}``, ``6\times7``.

A recursive descent over + - * / ^, brackets and fractions of plain numbers; letters, roots and
functions are not its business. Powers and depth are bounded before anything is computed.
"""

from __future__ import annotations

import re
from fractions import Fraction

_TOKEN = re.compile(
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+|\\(?:frac|cdot|times|div)|[-+*/^(){}]",
    re.ASCII,
)
_MAX_TOKENS, _MAX_DEPTH, _MAX_BITS = 400, 40, 8192
_CLOSING = {"(": ")", "{": "}"}
_TIMES = frozenset(("*", "\\cdot", "\\times"))


def exact_value(text: str) -> Fraction | None:
    """The value of a respelled, squeezed text, or ``None`` where it is not plain arithmetic."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or len(tokens) >= _MAX_TOKENS:
            return None
        tokens.append(token.group())
        at = token.end()
    reader = _Reader(tokens)
    try:
        value = reader.sum(0)
    except (_NotArithmeticError, ZeroDivisionError):
        return None
    return value if reader.at == len(tokens) else None


class _NotArithmeticError(Exception):
    """The text is something else, or too big to compute."""


class _Reader:
    """Reads tokens from the left."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            raise _NotArithmeticError
        self.at += 1
        return token

    def sum(self, depth: int) -> Fraction:
        if depth > _MAX_DEPTH:
            raise _NotArithmeticError
        negative = False
        if self.peek() in {"+", "-"}:
            negative = self.take() == "-"
        total = self.product(depth)
        total = -total if negative else total
        while self.peek() in {"+", "-"}:
            sign = self.take()
            term = self.product(depth)
            total = _bounded(total + term if sign == "+" else total - term)
        return total

    def product(self, depth: int) -> Fraction:
        value = self.power(depth)
        while True:
            ahead = self.peek()
            if ahead in _TIMES:
                self.take()
                value = _bounded(value * self.signed_power(depth))
            elif ahead in {"/", "\\div"}:
                self.take()
                value = _bounded(value / self.signed_power(depth))
            elif ahead == "(":  # 2(3+4)
                value = _bounded(value * self.power(depth))
            else:
                return value

    def signed_power(self, depth: int) -> Fraction:
        if self.peek() == "-":
            self.take()
            return -self.power(depth)
        return self.power(depth)

    def power(self, depth: int) -> Fraction:
        base = self.atom(depth)
        if self.peek() != "^":
            return base
        self.take()
        if self.peek() == "{":
            exponent = self.group("{", "}", depth)
        else:
            written = self.take()
            if len(written) != 1 or not written.isdigit():  # 2^10 in LaTeX is 2^{1}0: ambiguous
                raise _NotArithmeticError
            exponent = Fraction(written)
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if exponent.denominator != 1 or abs(exponent.numerator) * size > _MAX_BITS:
            raise _NotArithmeticError
        return base**exponent.numerator

    def atom(self, depth: int) -> Fraction:
        ahead = self.peek()
        if ahead in _CLOSING:
            return self.group(ahead, _CLOSING[ahead], depth)
        if ahead == "\\frac":
            self.take()
            return self.group("{", "}", depth) / self.group("{", "}", depth)
        if ahead[:1].isdigit() or ahead[:1] == ".":
            written = self.take().replace(",", "")
            whole, _, places = written.partition(".")
            if self.peek() == "\\frac":  # 3\frac{1}{2} is a mixed number, read elsewhere
                raise _NotArithmeticError
            return _bounded(Fraction(int(whole + places), 10 ** len(places)))
        raise _NotArithmeticError

    def group(self, left: str, right: str, depth: int) -> Fraction:
        self.take(left)
        value = self.sum(depth + 1)
        self.take(right)
        return value


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise _NotArithmeticError
    return value
