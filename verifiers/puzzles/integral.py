r"""Integral: is the derivative of the answer the integrand?"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from ..maths.derivative import derivative
from ..maths.evaluate import TooLargeError, precise_value, real_value
from ..maths.expression import read_expression
from ..maths.formula import Node, UnreadError, names, number, substituted
from ..maths.identity import points, same_beyond
from ..maths.latex import respell, squeeze
from ..text.answer import MAX_ANSWER, Answer
from ..text.read_answer import ONE_LINE
from ..validation import safe_repr
from .puzzle import BadReference, PuzzleVerifier, fields
from .reading import Unreadable

_CONSTANT = re.compile(r"[CcKk](?:_\d)?")
_REMARK = re.compile(
    r"[,.;]?\s{0,4}(?:\\q?quad\s?|\\[,;: ])?\(?(?:\\text\{[\s,]{0,4})?"
    r"(?:(?:where|with)\b[^\n=]{0,60}\bconstant\b[^\n=]{0,40}|[CcKk]\s?\\in\s?\\mathbb\s?\{?R\}?)\Z"
)
_SPELT_OUT = re.compile(r"(?<=[-+])\s{0,4}(?:\\text\{\s{0,4})?const(?:ant|\.)?\s{0,4}\}?\Z")
_CLOSE = 1e-40  # of 60 digits
_ENOUGH = 3
_CALL = re.compile(r"\s*(?:[FGIfgiy]\s*(?:\(\s*[a-z]\s*\))?|\\?int\b.*|∫.*)\s*", re.DOTALL)
_NAMED = re.compile(r"\\?\b(?:arc|a)(sin|cos|tan)\b")
_PLAIN = (
    (re.compile(r"\^\s*\(([^()]*)\)"), r"^{\1}"),
    (re.compile(r"\^\s*(-?\d+(?:\.\d+)?)(?![\d.])"), r"^{\1}"),
    (re.compile(r"(?<![\w.}/])(\d+)\s*/\s*(\d+)(?=\s*[A-Za-z(\\])"), r"\\frac{\1}{\2}"),
    (re.compile(r"\b((?:sin|cos|tan|sec|csc|cot|ln|log)\([^()]*\))\^\{(\d+)\}"), r"(\1)^{\2}"),
    (re.compile(r"\babs\(([^()|]*)\)"), r"|\1|"),
)


class Integral(PuzzleVerifier):
    r"""Accept every antiderivative of an integrand.

    The answer is differentiated by rule and compared with the integrand at fixed points where both
    are real, with 60 digits, and with more if a term could be smaller than that. It may be written
    in any form, in LaTeX or plainly, with or without ``+ C`` and ``F(x) =``. ``log`` is the
    natural logarithm. Nothing of it is evaluated as code. The answer is the last ``<answer>``, else
    the last ``\boxed{}``, else the last line.

    Reference: ``{"integrand": "x\\cos x", "variable": "x"}``; other letters in the integrand
    are parameters.

    Args:
        constant: ``+ C`` (or ``c``, ``K``, ``k``) is demanded.
    """

    max_answer: ClassVar[int] = MAX_ANSWER
    rules: ClassVar[tuple[str, ...]] = ONE_LINE
    praise: ClassVar[str] = "its derivative is the integrand"
    many_answers = False

    def __init__(self, *, constant: bool = False) -> None:
        self.constant = constant

    def check(self, reference: Any) -> None:
        """Check that the integrand can be read, has values, and is not 0."""
        integrand, variable = fields(reference, "integrand", "variable")
        if len(reference) > 2:
            raise BadReference(f"expected integrand and variable, got {safe_repr(reference)}")
        if not (isinstance(variable, str) and len(variable) == 1 and variable.isascii()):
            raise BadReference(f"variable must be one letter, got {safe_repr(variable)}")
        if not variable.isalpha() or variable in "CcKk":
            raise BadReference(f"variable must be a letter but C, c, K and k, got {variable!r}")
        if not isinstance(integrand, str) or _read(integrand) is None:
            raise BadReference(f"the integrand cannot be read: {safe_repr(integrand)}")
        values = _values_of(integrand, variable).values()
        if len(values) < _ENOUGH:
            raise BadReference(
                f"the integrand {safe_repr(integrand)} has too few real values near {variable} = 0"
            )
        if not any(values):
            raise BadReference("the integrand is 0, so that any constant would win")

    def readings(self, reply: str, found: Answer) -> Iterator[str]:
        """Yield the answer unchanged."""
        yield found.text or ""

    def fault(self, text: str, reference: Any) -> str | None:
        variable, integrand = reference["variable"], _read(reference["integrand"])
        answer = _read(_SPELT_OUT.sub("C", _REMARK.sub("", _right_side(text))))
        if answer is None or integrand is None:
            raise Unreadable("not a formula that can be read")
        free = names(answer) - names(integrand) - {variable}
        if len(free) > 1 or not all(map(_CONSTANT.fullmatch, free)):
            return f"has other letters: {', '.join(sorted(free))}"
        if self.constant and not free:
            return "the constant of integration is missing"
        return _difference(answer, integrand, reference["integrand"], variable)


def _right_side(text: str) -> str:
    """Return what follows ``F(x) =`` or an integral sign and ``=``."""
    left, equals, right = text.rpartition("=")
    return right if equals and _CALL.fullmatch(left) else text


@functools.lru_cache(maxsize=4096)
def _read(text: str) -> Node | None:
    if len(text) > 1000:
        return None
    text = text.strip().removesuffix(".").replace("−", "-").replace("**", "^")
    text = _NAMED.sub(r"arc\1", text)
    for written, plain in _PLAIN:
        text = written.sub(plain, text)
    tree = read_expression(squeeze(respell(text)))
    if tree is None or tree.kind == "undefined":
        return None
    try:
        return substituted(tree, "\\log", number(1))
    except (UnreadError, ZeroDivisionError):
        return None


def _difference(answer: Node, integrand: Node, written: str, variable: str) -> str | None:
    """Return why the derivative of an answer is not the integrand."""
    wanted = _values_of(written, variable)
    try:
        slope = derivative(answer, variable)
    except (UnreadError, ZeroDivisionError):
        return "its derivative cannot be worked out"
    given = _values(slope, variable)
    both = [at for at in wanted if at in given]
    for at in both:
        gap, size = abs(wanted[at] - given[at]), max(abs(wanted[at]), abs(given[at]))
        if gap > (_CLOSE * size if wanted[at] else _CLOSE):
            return f"its derivative is not the integrand at {variable} = {at:.2f}"
    if len(both) < _ENOUGH:
        return "its derivative has too few values"
    held = names(integrand) | names(slope) | {variable}  # the constant too: of \ln|Cx|
    point = next(p for p in points(held) if p[variable] == both[0])
    if not same_beyond(integrand, slope, point):
        return "its derivative is the integrand but for a small term"
    return None


@functools.lru_cache(maxsize=256)
def _values_of(integrand: str, variable: str) -> dict[float, Any]:
    tree = _read(integrand)
    return {} if tree is None else _values(tree, variable)


def _values(tree: Node, variable: str) -> dict[float, Any]:
    """Return by value of the variable the value of a formula, if it is real there."""
    found = {}
    for point in points(names(tree) | {variable}):
        try:
            value = real_value(precise_value(tree, point))
        except TooLargeError:
            continue
        if value is not None:
            found[point[variable]] = value
    return found
