r"""Compare equations, and named answers: ``x = 5`` with ``5``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..text.markup import unwrap_text
from .choice import is_letter
from .comparison import Comparison, all_of
from .expression import read_expression
from .formula import UnreadError, substituted
from .identity import same_equation, same_function
from .matrices import ORDERED
from .parsed_answer import Kind, ParsedAnswer, parse_answer
from .tokens import GREEK
from .variables import letters, same_letters
from .wording import is_word

_ADORNMENT = r"m?\\(?:angle|triangle|overline|vec|overrightarrow|mathbf) ?"
_NAME = re.compile(
    rf"\|?(?:{_ADORNMENT})?"
    r"\{?[A-Za-z]\}?'?\|?(?:_(?:\{(?:[^{}]|\\text\{[^{}]*\}){1,20}\}|\w))?"
    r"(?:\([A-Za-z](?:,[A-Za-z])*\))?"
    r"|[fghpqFGHPQNSTVAE](?:_(?:\{[^{}]{1,8}\}|\w))?(?:'|\^\{-1\})?"
    r"\([^()=]{1,30}(?:\([^()=]{1,20}\))?\)"
    r"|P\([^()]{1,30}\)|\[[A-Z]{3,6}\]|\\mathbb\{E\}\[[A-Z]\]"
    rf"|\|?(?:{_ADORNMENT})?"
    r"\{?[A-Z]{2,4}\}?\|?|\\text\{[^{}]*\}"
    r"|\([A-Za-z](?:,[A-Za-z])*\)|[A-Z]:[A-Z]|\\frac\{[A-Z]{2}\}\{[A-Z]{2}\}"
    r"|\\frac\{d ?[A-Za-z]\}\{d ?[a-z]\}"
    rf"|\\(?:{'|'.join(GREEK)}|min|max)(?:_(?:\{{[^{{}}]{{1,8}}\}}|\w))?|[A-Z]?[a-z]{{2,15}}|pH"
    r"|(?:\\(?:det|dim|deg|arg|ker|nabla|Delta)|\\text\{ ?(?:det|dim|deg|rank|tr) ?\})"
    r" ?(?:\(?[A-Za-z]\)?|\(?\\vec\{[a-z]\}\)?)|[A-Z](?:\\c[au]p ?[A-Z]){1,3}"
    r"|\([a-z](?:\\circ ?[a-z]){1,3}\)(?:\([a-z\d]\))?"
)
_OF_MATRICES = re.compile(r"(?:\\mathbf|\\top(?![A-Za-z])|[-+{}()^ \d]|[A-Z])+")
_TERM = r"\d{0,4}(?:[a-z]|[A-Z]{2})"
_SOUGHT = re.compile(  # what a question may ask for: m+n, P(X=2), \sin A
    rf"{_TERM}(?:\+{_TERM}){{1,4}}"
    r"|(?:P|E|Var|\\mathbb\{[PE]\}|\\text\{(?:P|E|Var)\})[(\[][^()\[\]]{1,30}[)\]]"
    r"|\\(?:sin|cos|tan)(?:\^2|\^\{2\})?\d?(?: ?\\angle ?)?"
    r"(?: ?[A-Z]{1,3}|\([A-Z]\)|\\(?:alpha|beta|theta))"
)
_DERIVATIVE_OR_CONJUGATE = re.compile(r"\\frac\{|\\overline ?\{?[a-z]")
_BY_X = re.compile(r"\\fracd([A-Za-z])d[xt]")
_OPERATED = re.compile(r"^\\?(det|dim|deg|rank|tr|arg|ker) ?\(?([A-Za-z])\)?$")
_ADORNED = re.compile(rf"{_ADORNMENT}|[{{}}]")


def assignment(shape: ParsedAnswer) -> tuple[str, tuple[str, ...]] | None:
    """Return ``(name, values)`` of ``x = 5``, ``5 = x`` and ``x = 2+3 = 5``, else ``None``."""
    if shape.kind is not Kind.EQUATION:
        return None
    first, *rest = shape.parts
    if _is_name(first) or ("matrix}" in rest[-1] and _OF_MATRICES.fullmatch(first)):
        return first, tuple(rest)
    if len(rest) == 1 and _is_name(rest[0]):
        return rest[0], (first,)
    return None


def _is_name(text: str) -> bool:
    product = text.isalpha() and text.islower() and len(text) > 1 and not is_word(text)  # xy = 6
    return not product and _NAME.fullmatch(text) is not None


_QUANTITY = re.compile(r"(?:[A-Za-z]|\\[a-z]{2,7})(?:_.*)?")
_DERIVED = re.compile(r"(?<![A-Za-z])[A-Za-z]'+")


def same_equations(a: ParsedAnswer, b: ParsedAnswer, on: Comparison, depth: int) -> bool | None:
    """Compare two answers, at least one of which is an equation."""
    gold, answer = assignment(a), assignment(b)
    derived = [set(_DERIVED.findall(shape.text)) for shape in (a, b)]
    if a.kind is b.kind and derived[0] != derived[1] and "\\frac{d" not in a.text + b.text:
        return False  # f'(x) = 2x for f(x) = 2x
    if answer and not _consistent(answer[1], on, depth):
        return False
    if gold and answer:
        return _same_assignment(gold, answer, on, depth)
    if a.kind is b.kind:
        return _same_sides(a.parts, b.parts) if same_letters(a.text, b.text) else False
    if gold:
        same = _same_values(gold[0], gold[1][-1], b.text, on, depth)
        return on.noted(same, "the name is left out")
    if answer and _may_name(answer[0], a):
        return on.noted(on.same(a.text, answer[1][-1], depth + 1), "given by name")
    if answer:
        return False
    if a.kind is Kind.EQUATION:
        return False  # an equation is not its right-hand side
    if a.kind in {Kind.NUMBER, Kind.EXPRESSION, Kind.SET} and _SOUGHT.fullmatch(b.parts[0]):
        consistent = _consistent(b.parts[1:], on, depth) and not letters(a.text)
        return on.noted(consistent and on.same(a.text, b.parts[-1], depth + 1), "given by name")
    if on.how.worked_out and not any(on.same(a.text, side, depth + 1) for side in b.parts):
        return False
    value = on.by_value()
    return all_of(value.same(a.text, side, depth + 1) for side in b.parts)  # 6\times7 = 42


def _same_assignment(
    gold: tuple[str, tuple[str, ...]],
    answer: tuple[str, tuple[str, ...]],
    on: Comparison,
    depth: int,
) -> bool | None:
    same = _same_values(gold[0], gold[1][-1], answer[1][-1], on, depth)
    names = _canonical(gold[0]), _canonical(answer[0])
    if "matrix}" in gold[1][-1] and gold[0].isalpha() and gold[0] == answer[0][::-1] != answer[0]:
        return False  # AB and BA are segments, but not as matrices
    if names[0] == names[1] or names == ("y", "f(x)"):
        # with variables on both sides, y = x^2 and y = -x^2 differ, but \ln y = x might not
        return same
    if same is not False and depth == 0 and _related(*names):
        return same
    if all(name[-1] in ")]'" or "\\frac" in name for name in names):  # f(x) is not g(x)
        return False
    if letters(gold[1][-1]) and letters(answer[1][-1]):  # y = x + 1 is x = y - 1
        sides = (gold[0], gold[1][-1]), (answer[0], answer[1][-1])
        solved = _solved_otherwise(*sides)
        return _same_sides(*sides) if solved is None else solved
    return False


def _same_values(name: str, gold: str, answer: str, on: Comparison, depth: int) -> bool | None:
    """Compare the values of a name; ``IR`` of ``V = IR`` is a product, not a word."""
    same = on.same(gold, answer, depth + 1)
    if same or not gold.isalpha() or not _QUANTITY.fullmatch(name):
        return same
    if parse_answer(gold).kind is not Kind.WORDS:
        return same
    matrices = gold.isupper() and name in ORDERED | {"M"}
    if len(gold) > 4 or matrices or len(ORDERED & set(gold)) > 1:
        return same
    factors = " ".join(answer) if answer.isalpha() else answer
    return on.same(" ".join(gold), factors, depth + 1)


def _solved_otherwise(gold: tuple[str, str], answer: tuple[str, str]) -> bool | None:
    """Return whether each equation makes the other an identity: ``V = IR`` and ``R = V/I``.

    ``None`` if that does not decide.
    """
    sides = [read_expression(side) for side in (*gold, *answer)]
    x, value, y, other = sides
    if x is None or value is None or y is None or other is None or not x.kind == y.kind == "name":
        return None
    try:
        there, back = substituted(other, x.name, value), substituted(value, y.name, other)
    except (UnreadError, ZeroDivisionError):
        return None
    return all_of((same_function(y, there), same_function(x, back)))


def _may_name(name: str, gold: ParsedAnswer) -> bool:
    """Return whether a reference may be named so: C names no option B, and odd is not even."""
    if is_letter(gold.text):
        return not is_letter(name)
    worded = gold.kind in {Kind.WORDS, Kind.PROSE} and "\\text" in name
    return not worded or unwrap_text(name).strip().lower() in {"answer", "final answer", "result"}


def _canonical(name: str) -> str:
    r"""Normalize a name: ``m\angle CBA`` is ``ABC``, ``\overline{BA}`` is ``AB``."""
    name = unwrap_text(name.strip("|"))
    angle, arrow = "\\angle" in name, "vec" in name or "arrow" in name
    if _DERIVATIVE_OR_CONJUGATE.match(name):
        return _BY_X.sub(r"\1'", re.sub("[ {}]", "", name))
    if re.match(_ADORNMENT, name) or name.strip("{}").isalpha():
        name = _ADORNED.sub("", name)
        if name.isupper() and not arrow and (angle or len(name) == 2):
            name = min(name, name[::-1])
    name = _OPERATED.sub(r"\1 \2", name)
    name = " ".join(name.split()).replace("\\min", "min").replace("\\max", "max")
    words = len(name) > 2 and name.replace(" ", "").isalpha() and not name.isupper()
    if not words:
        return name
    return name.lower().replace("minimum", "min").replace("maximum", "max")


def _related(gold: str, answer: str) -> bool:
    """Return whether one descriptive name may replace another if nothing else is named.

    ``total`` for ``total cost``, ``A`` for ``area``; not ``width`` for ``length``.
    """
    if not (gold.replace(" ", "").isalpha() and answer.replace(" ", "").isalpha()):
        return False
    short, long = sorted((gold.lower(), answer.lower()), key=len)
    if len(short) == 1:
        return len(long) > 3 and long.startswith(short)
    return len(short) > 2 and set(short.split()) < set(long.split())


def _same_sides(gold: Sequence[str], answer: Sequence[str]) -> bool | None:
    """Compare two equations of two sides each; ``None`` if a side cannot be parsed."""
    sides = [read_expression(side) for side in (*gold, *answer)]
    if len(gold) != 2 or len(answer) != 2 or None in sides:
        return None
    a, b, c, d = (side for side in sides if side is not None)
    return same_equation((a, b), (c, d))


def _consistent(values: Sequence[str], on: Comparison, depth: int) -> bool:
    """Return whether a chain such as 3+4 = 7 holds, as far as its values can be computed."""
    on = on.by_value()
    return not any(on.same(values[-1], value, depth + 1) is False for value in values[:-1])
