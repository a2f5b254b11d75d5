r"""Whether an answer and a known answer are the same, as far as that is cheap to tell.

:func:`same_value` says True, False, or None: None is "not from here", and only such pairs go
on to the symbolic worker. What it refuses it refuses for good: negations, lists held against
single values, other variables, other brackets. The known false positives of the symbolic
library lie there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .conventions import Conventions
from .evaluate import constant_value, rounds_to, same_equation, same_function
from .expression import read_expression
from .latex import balanced, respell, squeezed
from .number import Number, read_respelled, same_numbers, without_unit
from .region import read_region, same_region
from .shape import MEMBER, Kind, Shape, as_interval, ratio_value, read_shape, words_of

_MAX_DEPTH = 5
_MAX_ELEMENTS = 60
_NEGATIONS = re.compile(
    r"(?<![A-Za-z])(?:not|isn't|wrong|incorrect|neither|nor|either|except|maybe|perhaps|possibly|"
    r"probably|unknown|unsure|other|any|anything|nan)(?![A-Za-z])",
    re.IGNORECASE,
)
_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_UNSURE = ("\\not", "\\neg", "\\approx", "\\sim", "?", "..", "\\dots")


def same_value(gold: str, answer: str, conventions: Conventions) -> bool | None:
    """Hold an answer against a known one without any symbolic computation.

    Args:
        gold: bare LaTeX or text.
        answer: likewise; hostile text, at most ``MAX_ANSWER`` characters.
        conventions: what counts as the same number.

    Returns:
        True or False where that can be told here, else ``None``.
    """
    left, right = squeezed(respell(gold)), squeezed(respell(answer))
    if not left or not right or not balanced(right):
        return False
    if left == right or ("\\text" in left and _bare(left) == _bare(right)):
        return True
    if right.count(",") > 20 + 4 * left.count(","):
        return False  # candidates by the dozen; comparing each with each would take its time
    right = right.removeprefix("\\approx").removeprefix("=")
    if _takes_back(left, right):
        return False
    return _same(left, right, conventions, 0)


def _bare(text: str) -> str:
    return _TEXT.sub(r"\1", text).replace(" ", "")


def readable(gold: str) -> bool | None:
    """Whether a known answer makes sense by itself; ``None`` where only the worker can tell."""
    text = squeezed(respell(gold))
    if not text or not balanced(text):
        return False
    return _readable(text, 0)


def _readable(text: str, depth: int) -> bool | None:
    if depth > _MAX_DEPTH:
        return None
    shape = read_shape(text)
    if shape.kind in _ATOMS or re.fullmatch(r"[A-Za-z]", shape.text):
        return True
    if shape.kind in _COMPOUNDS:
        parts = [_readable(part, depth + 1) for part in shape.parts]
        return all(parts) if None not in parts else None
    if shape.kind is Kind.EQUATION and _assignment(shape) is not None:
        return _readable(shape.parts[-1], depth + 1)
    return None


def _takes_back(gold: str, answer: str) -> bool:
    """Answers that deny what they say, or leave it open."""
    if _NEGATIONS.search(answer) and not _NEGATIONS.search(gold):
        return True
    return any(sign in answer and sign not in gold for sign in _UNSURE)


# -- by kind -----------------------------------------------------------------------------------

_ATOMS = frozenset((Kind.NUMBER, Kind.BASE, Kind.RATIO, Kind.EMPTY, Kind.WORDS))
_BAGS = frozenset((Kind.LIST, Kind.SET))
_COMPOUNDS = _BAGS | {Kind.TUPLE, Kind.MATRIX, Kind.UNION}
_RANGES = frozenset((Kind.RELATION, Kind.UNION, Kind.TUPLE))


def _same(gold: str, answer: str, how: Conventions, depth: int) -> bool | None:
    if gold == answer:
        return True
    if not gold or not answer:
        return False
    if depth > _MAX_DEPTH:
        return None
    a, b = read_shape(gold), read_shape(answer)
    if a.number is not None and b.number is not None:
        return same_numbers(a.number, b.number, how)
    if Kind.EQUATION in {a.kind, b.kind} and a.kind is not Kind.LIST and b.kind is not Kind.LIST:
        return _equations(a, b, how, depth)
    if Kind.EMPTY in {a.kind, b.kind}:
        return a.kind is b.kind
    if a.kind in _BAGS or b.kind in _BAGS:
        return _bags(a, b, how, depth)
    if Kind.WORDS in {a.kind, b.kind} or re.fullmatch(r"\(?[A-Z]\)?", gold):
        return _words(a, b)
    if b.kind is Kind.RELATION and MEMBER.match(gold):
        return None  # x \in [0,1] asks for an interval; math-verify refuses inequalities for it
    if Kind.RELATION in {a.kind, b.kind} or Kind.UNION in {a.kind, b.kind}:
        return _ranges(a, b, how, depth)
    if Kind.TUPLE in {a.kind, b.kind} or Kind.MATRIX in {a.kind, b.kind}:
        return _sequences(a, b, how, depth)
    if Kind.BASE in {a.kind, b.kind} or Kind.RATIO in {a.kind, b.kind}:
        return _bases_and_ratios(a, b, how)
    return _expressions(a.text, b.text, how, depth)


def _expressions(gold: str, answer: str, how: Conventions, depth: int) -> bool | None:
    left, unit = without_unit(gold)
    right, other_unit = without_unit(answer)
    if unit != other_unit and ((unit and other_unit) or not how.units):
        return False
    if (left, right) != (gold, answer):
        return _same(left, right, how, depth + 1)
    return _formulas(gold, answer, how) if _same_letters(gold, answer) else False


def _formulas(gold: str, answer: str, how: Conventions) -> bool | None:
    """Formulas by their values; ``None`` where one is not read here."""
    left, right = read_expression(gold), read_expression(answer)
    if left is None or right is None:
        return None
    same = same_function(left, right)
    number, enough = read_respelled(answer), how.rounded_digits
    if same is False and number is not None and enough is not None and number.digits >= enough:
        exact = constant_value(left)
        return exact is not None and rounds_to(exact, number.value, number.digits)
    return same


def _all(findings: Iterable[bool | None]) -> bool | None:
    """False where one is False, else None where one is None, else True."""
    unknown = False
    for finding in findings:
        if finding is False:
            return False
        unknown |= finding is None
    return None if unknown else True


def _sequences(a: Shape, b: Shape, how: Conventions, depth: int) -> bool | None:
    if a.kind is b.kind:
        same_frame = a.mark == b.mark
    elif {a.kind, b.kind} == {Kind.MATRIX, Kind.TUPLE}:  # a column vector may be written (1,2)
        column = f"pmatrix {len(a.parts)}"
        same_frame = {a.mark, b.mark} == {column, "()"}
    else:
        expression = a if a.kind is Kind.EXPRESSION else b
        # a product such as \frac12\begin{pmatrix}...: what it comes to is not for us to say
        return None if expression.kind is Kind.EXPRESSION and "matrix" in expression.text else False
    if not same_frame or len(a.parts) != len(b.parts):
        return False
    return _all(_same(x, y, how, depth + 1) for x, y in zip(a.parts, b.parts, strict=True))


def _bags(a: Shape, b: Shape, how: Conventions, depth: int) -> bool | None:
    if not (a.kind in _BAGS and b.kind in _BAGS):
        bag, other = (a, b) if a.kind in _BAGS else (b, a)
        if len(bag.parts) == 1 and other.kind not in _RANGES:  # {5} for 5
            gold = bag.parts[0] if bag is a else a.text
            answer = bag.parts[0] if bag is b else b.text
            return _same(gold, answer, how, depth + 1)
        ranges = other.kind in _RANGES or other.kind is Kind.EXPRESSION
        cases = all(read_shape(part).kind is Kind.RELATION for part in bag.parts)
        return _regions(a, b) if ranges and cases else False
    if max(len(a.parts), len(b.parts)) > _MAX_ELEMENTS:
        return None
    named = [_assignment(read_shape(part)) is not None for part in a.parts]
    if all(named) and not any(_assignment(read_shape(part)) for part in b.parts):
        names = {part.partition("=")[0] for part in a.parts}
        if len(names) == len(a.parts) > 1 and len(b.parts) == len(a.parts):  # k=4, n=2 against 4, 2
            return _all(_same(x, y, how, depth + 1) for x, y in zip(a.parts, b.parts, strict=True))
    return _same_bag(_distinct(a.parts, how, depth), _distinct(b.parts, how, depth), how, depth)


def _distinct(parts: Sequence[str], how: Conventions, depth: int) -> list[str]:
    kept: list[str] = []
    for part in parts:
        if not any(_same(other, part, how, depth + 1) for other in kept):
            kept.append(part)
    return kept


def _same_bag(gold: list[str], answer: list[str], how: Conventions, depth: int) -> bool | None:
    if len(gold) != len(answer):
        return False
    left, unknown = list(answer), False
    for part in gold:
        findings = [_same(part, other, how, depth + 1) for other in left]
        if True in findings:
            del left[findings.index(True)]
        elif None not in findings:
            return False
        else:
            unknown = True
    return None if unknown else True


def _ranges(a: Shape, b: Shape, how: Conventions, depth: int) -> bool | None:
    """Inequalities, intervals and their unions."""
    unions = a.kind is b.kind is Kind.UNION
    if unions and _same_bag(list(a.parts), list(b.parts), how, depth):
        return True
    whole = ("\\mathbb", "\\setminus")
    for shape in (a, b):
        loose = shape.kind is Kind.EXPRESSION and any(sign in shape.text for sign in whole)
        if shape.kind not in _RANGES and not loose:
            return False
    if a.kind is b.kind is Kind.RELATION and not _same_letters(a.text, b.text):
        return False
    found = _regions(a, b)
    if found is not None:
        return found
    left, right = (as_interval(s.text) if s.kind is Kind.RELATION else s for s in (a, b))
    if left is None or right is None or left.kind is not right.kind:
        return None
    return _sequences(left, right, how, depth)


def _regions(a: Shape, b: Shape) -> bool | None:
    """As sets of real numbers; ``None`` where one of them is not read as such."""
    left, right = read_region(a), read_region(b)
    return None if left is None or right is None else same_region(left, right)


def _bases_and_ratios(a: Shape, b: Shape, how: Conventions) -> bool | None:
    if a.kind is b.kind is Kind.BASE:
        return a.parts == b.parts and a.mark == b.mark
    if a.kind is Kind.BASE:  # the base is stated by the question
        return how.units and b.text.lstrip("0") == a.parts[0]
    if Kind.BASE in {a.kind, b.kind}:
        return False
    values = [
        Number(value) if value is not None else shape.number
        for shape in (a, b)
        for value in [ratio_value(shape) if shape.kind is Kind.RATIO else None]
    ]
    if values[0] is None or values[1] is None:
        return False
    return same_numbers(values[0], values[1], how)


_CHOICE = re.compile(r"\(?([A-Z])\)?")
_LABELLED = re.compile(r"\(?([A-Z])[).:](?:(?!\bfalse\b|(?<![A-Za-z])[A-Z](?![A-Za-z])).){0,80}")


def _words(a: Shape, b: Shape) -> bool | None:
    choice = _CHOICE.fullmatch(a.text)
    if choice:
        given = _CHOICE.fullmatch(b.text) or _LABELLED.fullmatch(b.text)
        return given is not None and given.group(1) == choice.group(1)
    left, right = words_of(a.text), words_of(b.text)
    if left and right:
        return left == right
    other = (b.text if left else a.text).replace(" ", "")
    return other.lower() == (left or right) and len(other) > 1


# -- equations ---------------------------------------------------------------------------------

_NAME = re.compile(
    r"\|?(?:\\(?:angle|triangle|overline) ?)?\{?[A-Za-z]\}?'?\|?(?:_(?:\{[^{}]{1,8}\}|\w))?"
    r"(?:\([A-Za-z](?:,[A-Za-z])*\))?"
    r"|\|?(?:\\(?:angle|triangle|overline) ?)?\{?[A-Z]{2,4}\}?\|?|\\text\{[^{}]*\}"
    r"|\([A-Za-z](?:,[A-Za-z])*\)|[A-Z]:[A-Z]|\\frac\{[A-Z]{2}\}\{[A-Z]{2}\}"
    r"|\\(?:alpha|beta|gamma|delta|theta|lambda|mu|phi|omega)"
)


def _assignment(shape: Shape) -> tuple[str, tuple[str, ...]] | None:
    """``(name, values)`` of ``x = 5``, ``5 = x`` and ``x = 2+3 = 5``; ``None`` for the rest."""
    if shape.kind is not Kind.EQUATION:
        return None
    first, *rest = shape.parts
    if _NAME.fullmatch(first):
        return first, tuple(rest)
    if len(rest) == 1 and _NAME.fullmatch(rest[0]):
        return rest[0], (first,)
    return None


def _equations(a: Shape, b: Shape, how: Conventions, depth: int) -> bool | None:
    gold, answer = _assignment(a), _assignment(b)
    if answer and not _consistent(answer[1], how, depth):
        return False
    if gold and answer:
        return _same_assignment(gold, answer, how, depth)
    if a.kind is b.kind:
        return _same_relation(a.parts, b.parts) if _same_letters(a.text, b.text) else False
    if gold:
        return _same(gold[1][-1], b.text, how, depth + 1)
    if answer:
        return _same(a.text, answer[1][-1], how, depth + 1)
    if a.kind is Kind.EQUATION:
        return False  # an equation is not its right-hand side
    return _all(_same(a.text, side, how, depth + 1) for side in b.parts)  # 6\times7 = 42


def _same_assignment(
    gold: tuple[str, tuple[str, ...]],
    answer: tuple[str, tuple[str, ...]],
    how: Conventions,
    depth: int,
) -> bool | None:
    same = _same(gold[1][-1], answer[1][-1], how, depth + 1)
    if gold[0] == answer[0] or same is False:
        # y = x + 1 is x = y - 1, so with variables on both sides the answer is not ours to give
        if gold[0] == answer[0] or not letters(gold[1][-1]):
            return same
        return _same_relation((gold[0], gold[1][-1]), (answer[0], answer[1][-1]))
    if len(gold[0]) > 1 and len(answer[0]) > 1:
        return same
    return None if letters(gold[1][-1]) else False


def _same_relation(gold: Sequence[str], answer: Sequence[str]) -> bool | None:
    """Two equations of two sides each; ``None`` where a side is not read here."""
    sides = [read_expression(side) for side in (*gold, *answer)]
    if len(gold) != 2 or len(answer) != 2 or None in sides:
        return None
    a, b, c, d = (side for side in sides if side is not None)
    return same_equation((a, b), (c, d))


def _consistent(values: Sequence[str], how: Conventions, depth: int) -> bool:
    """Whether a chain such as 3+4 = 7 holds, as far as its values can be read."""
    return not any(_same(values[-1], value, how, depth + 1) is False for value in values[:-1])


# -- variables ---------------------------------------------------------------------------------

_BOUND = re.compile(r"\\(?:sum|int|lim|prod|iint|oint|bigcup)")
_GREEK = re.compile(
    r"\\(?:[Gg]amma|[Ll]ambda|[Ss]igma|alpha|beta|[Dd]elta|zeta|eta|[Tt]heta|kappa|mu|nu|rho|"
    r"tau|[Pp]hi|chi|[Pp]si|[Oo]mega|epsilon|[Uu]psilon|[Xx]i|Pi)(?![A-Za-z])"
)
_NOT_LETTERS = re.compile(
    r"\\(?:begin|end|text|operatorname|mathbb|mathcal)\{[^{}]*\}|\\[A-Za-z]+"
    r"|(?<![A-Za-z])(?:sin|cos|tan|cot|sec|csc|log|ln|exp|max|min|lim|sqrt|gcd|lcm|mod)(?![a-z])"
)


def letters(text: str) -> frozenset[str]:
    """The variables of an expression, but for the constants e and i."""
    latin = frozenset(re.findall(r"[A-Za-z]", _NOT_LETTERS.sub(" ", text))) - {"e", "i"}
    return latin | frozenset(_GREEK.findall(text))


def _same_letters(gold: str, answer: str) -> bool:
    """Whether two texts speak of the same variables; a bound one is no variable."""
    if _BOUND.search(gold) or _BOUND.search(answer):
        return True
    return letters(gold) == letters(answer)
