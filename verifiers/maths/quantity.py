r"""Compare single amounts: numbers, formulas with units, ratios, bases, remainders."""

from __future__ import annotations

import re
from fractions import Fraction
from math import gcd

from .comparison import Comparison, all_of
from .date_time import DateTime, same_date_time, words_written
from .derivative import derivative
from .evaluate import precise_number, real_value, rounds_to
from .expression import read_expression
from .formula import Node, UnreadError, constant, inverse, names, number, product
from .identity import constant_value, same_function, value_of
from .number import Number, may_be_rounded, near_double, read_respelled, same_numbers, without_unit
from .parsed_answer import Kind, ParsedAnswer
from .progression import is_class
from .unit import may_be_added, unit_ratio
from .variables import same_letters

# (-3)/(4): brackets around a part of a fraction say nothing. Those of (3)(4) do.
_BRACKETED = re.compile(r"(?:(?<=[/{+-])|^)\(([-+]?[\d.]+)\)(?=[/}]|$)")

_DOLLAR = re.compile(r"(?<!\\)\$")  # $28$% is a number


def to_be_worked_out(gold: str, answer: str, on: Comparison) -> bool:
    """Return whether a number is wanted and the answer is a calculation that equals one."""
    wanted = on.how.worked_out and read_respelled(gold) is not None
    bare = _BRACKETED.sub(r"\1", _DOLLAR.sub("", answer))
    return wanted and read_respelled(bare) is None


_RATIO = re.compile(r"[-+]?(?:\d*\\[dt]?frac\{[-+]?(\d+)\}\{[-+]?(\d+)\}|(\d+)/(\d+))")


def to_be_reduced(answer: str, on: Comparison) -> bool:
    """Return whether lowest terms are wanted and the answer is an unreduced fraction."""
    if not on.how.reduced:
        return False
    found = _RATIO.fullmatch(_BRACKETED.sub(r"\1", without_unit(answer)[0]))
    if found is None:
        return False
    above, below = (int(digits) for digits in found.groups() if digits is not None)
    return gcd(above, below) > 1


_ENDLESS_SUM = re.compile(r"\A(?!.*\\infty.*\\infty).*\\sum_\{[a-z]=-?\d+\}\^\{?\\infty")
_INFTY = re.compile(r"\{\\infty\}|\\infty")


def same_formulas(gold: str, answer: str, on: Comparison, depth: int) -> bool | None:
    """Compare two formulas, each with its unit or percent sign."""
    if to_be_worked_out(gold, answer, on):
        return False
    angle = _same_angle(gold, answer, on)
    if angle is not None:
        return angle
    left, unit = without_unit(gold)
    right, other_unit = without_unit(answer)
    if unit != other_unit and not _units_fit(unit, other_unit, on):
        return False
    inner = read_respelled(right) if other_unit else None
    if inner is not None and inner.unit:
        return False  # $5 cents is neither
    if (left, right) != (gold, answer):
        same = on.same(left, right, depth + 1)
        return on.noted(same, "a unit is left out") if unit != other_unit else same
    if gold.endswith("%") != answer.endswith("%"):
        return _percents(gold, answer, on)
    if gold.endswith("%"):
        return on.same(gold.rstrip("%"), answer.rstrip("%"), depth + 1)
    turned = ("°" in gold) is not ("°" in answer) and "\\pi" in gold + answer
    if turned and on.how.radians and not _TRIGONOMETRIC.search(gold + answer):
        gold, answer = (text.replace("°", _IN_RADIANS) for text in (gold, answer))
    if not same_letters(gold, answer):
        return _without_effect(gold, answer)
    if _PRIMED.search(answer) and not _PRIMED.search(gold):
        return False
    if _INDEXED.search(answer) and not _INDEXED.search(gold):
        return False  # 7_{a} is no 7, though symbolic libraries drop the index
    endless = "\\infty" in answer and "\\infty" not in gold and not _LIMITS.search(answer)
    if endless or _half_open(answer):
        return False
    if _ENDLESS_SUM.search(gold) and _ENDLESS_SUM.search(answer):
        ends = [f"{{{n}}}" for n in (8, 9, 20)]
        if all(_by_value(_INFTY.sub(n, gold), _INFTY.sub(n, answer), on) for n in ends):
            return True  # the partial sums are the same
    found = _by_value(gold, answer, on)
    return found or ("C" in gold and _same_antiderivatives(gold, answer)) or found


def _same_antiderivatives(gold: str, answer: str) -> bool:
    """Return whether two formulas with an added C have the same derivative."""
    trees = [t for t in map(read_expression, (gold, answer)) if t and "C" in names(t)]
    other = frozenset[str]().union(*map(names, trees)) - {"C"}
    if len(trees) < 2 or len(other) != 1:
        return False
    try:
        left, right = (derivative(tree, *other) for tree in trees)
    except (UnreadError, ZeroDivisionError):
        return False
    return names(left) == names(right) == other and same_function(left, right) is True


def _same_angle(gold: str, answer: str, on: Comparison) -> bool | None:
    """Compare an angle in degrees with one in radians; ``None`` for all else."""
    degrees, other = (gold, answer) if "°" in gold else (answer, gold)
    number_, rest = read_respelled(degrees), without_unit(other)
    if (
        number_ is None
        or number_.unit != "degree"
        or rest[1] not in {"", "radian", "rad", "radians"}
    ):
        return None
    radians = read_expression(rest[0]) if "°" not in other and "\\pi" in other else None
    if radians is None or not on.how.radians:
        return None
    scaled = product([number(number_.value / 180), constant("pi")])
    return same_function(scaled, radians) is True and on.note("as an angle")


def _units_fit(gold: str, answer: str, on: Comparison) -> bool:
    if gold and answer:
        return unit_ratio(answer, gold) == 1
    return on.how.units and (bool(gold) or may_be_added(answer, Fraction(2)))


_TRIGONOMETRIC = re.compile("sin|cos|tan|cot|sec|csc|cis")
_IN_RADIANS = "\\cdot\\frac{\\pi}{180}"
_LIMITS = re.compile(r"\\(?:sum|int|lim|prod|iint|oint)")
_INDEXED = re.compile(r"(?<![_^])[\d)\]]_|[\d)\]]\^\d_")
_PRIMED = re.compile(r"[\d)]['′″]")
_BRACKET = re.compile(r"[][()]")


def _half_open(text: str) -> bool:
    """Return whether the brackets pair as in ``[0,1)``; such a text is not an amount."""
    open_ones: list[str] = []
    for mark in _BRACKET.findall(text):
        if mark in "[(":
            open_ones.append(mark)
        elif not open_ones or open_ones.pop() + mark not in {"()", "[]"}:
            return True
    return False


def _without_effect(gold: str, answer: str) -> bool:
    """Return whether the answer's other variables all have the factor 0, as in ``7 + 0x``."""
    left, right = read_expression(gold), read_expression(answer)
    if left is None or right is None or names(left) != names(right):
        return False
    return same_function(left, right) is True


def _by_value(gold: str, answer: str, on: Comparison) -> bool | None:
    """Compare by value; ``None`` if one cannot be evaluated."""
    left, right = read_expression(gold), read_expression(answer)
    if left is None or right is None:
        return None
    same = same_function(left, right)
    if same is False:
        return _rounded(gold, answer, on) or _near(left, right, on)
    return same


def _near(gold: Node, answer: Node, on: Comparison) -> bool:
    if not (on.how.tolerance or on.how.relative_tolerance):
        return False
    exact, given = real_value(constant_value(gold)), real_value(constant_value(answer))
    if exact is None or given is None or not on.how.allows(exact - given, exact):
        return False
    return on.note("within the tolerance")


def _rounded(gold: str, answer: str, on: Comparison) -> bool:
    """Return whether one is a decimal approximation of the other, which has no exact decimal."""
    left, right, enough = read_respelled(gold), read_respelled(answer), on.how.rounded_digits
    if left is not None and right is None:
        exact, number = value_of(answer), left
        if enough is None or exact is None or not may_be_rounded(left):
            return False
    elif right is not None and left is None:
        exact, number = value_of(gold), right
        if exact is not None and near_double(abs(exact - precise_number(right.value)), right):
            return True
        if enough is None or exact is None or right.digits < enough:
            return False
    else:
        return False
    if not rounds_to(exact, number.value, number.digits):
        return False
    return on.note(f"rounded to {number.digits} digits")


def _percents(gold: str, answer: str, on: Comparison) -> bool | None:
    """Compare if one of the two has a percent sign."""
    left, right = read_expression(gold.rstrip("%")), read_expression(answer.rstrip("%"))
    if left is None or right is None:
        return None
    if not same_letters(gold, answer):
        return False
    hundredth = number(Fraction(1, 100))
    scaled = same_function(
        product([left, hundredth]) if gold.endswith("%") else left,
        product([right, hundredth]) if answer.endswith("%") else right,
    )
    readings = {
        "unit": [same_function(left, right)],
        "value": [scaled],
        "either": [same_function(left, right), scaled],
    }[on.how.percent]
    if True in readings:
        return on.note("as a percentage")
    return None if None in readings else False


# -- ratios, bases, remainders, times ----------------------------------------------------------


def same_ratios(a: ParsedAnswer, b: ParsedAnswer, on: Comparison) -> bool | None:
    """Compare a ratio, or a time of day, with another or with a number."""
    if a.moment and b.moment:
        return same_times(a.moment, b.moment, a.text, b.text, on)
    ratio, other = (a, b) if a.kind is Kind.RATIO else (b, a)
    if ratio.moment is not None:  # 10:30 is a time of day, not a third
        return False
    terms = [read_expression(term) for term in ratio.parts]
    others = [read_expression(t) for t in (other.parts if b.kind is a.kind else (other.text,))]
    if None in terms or None in others or not same_letters(a.text, b.text):
        return None if same_letters(a.text, b.text) else False
    left = [term for term in terms if term is not None]
    right = [term for term in others if term is not None]
    if on.how.worked_out and any(read_respelled(term) is None for term in b.parts or (b.text,)):
        return False
    if b.kind is not a.kind:
        if len(left) != 2:
            return False
        right = [*right, number(1)]
    if len(left) != len(right):
        return False
    try:
        return all_of(
            same_function(product([x, inverse(left[0])]), product([y, inverse(right[0])]))
            for x, y in zip(left[1:], right[1:], strict=True)
        )
    except ZeroDivisionError:
        return False


def same_times(a: DateTime, b: DateTime, gold: str, answer: str, on: Comparison) -> bool:
    """Compare two dates or times of day."""
    as_written = words_written(gold) == words_written(answer)
    if as_written or not on.how.dates:
        return as_written
    return same_date_time(a, b, on.how.units) and on.note("as a date or time")


def same_bases(a: ParsedAnswer, b: ParsedAnswer, on: Comparison) -> bool:
    """Compare numbers in a base, which may be omitted because the question states it."""
    if a.kind is b.kind:
        return a.parts == b.parts and a.mark == b.mark
    if b.kind is Kind.BASE and b.mark == "10":
        return a.number is not None and b.parts[0].isdigit() and a.number.value == int(b.parts[0])
    left_out = a.kind is Kind.BASE and b.text.replace(",", "").lstrip("0") == a.parts[0]
    return left_out and on.how.units and on.note("the base is left out")


def same_congruences(a: ParsedAnswer, b: ParsedAnswer, on: Comparison, depth: int) -> bool | None:
    r"""Compare ``n \equiv 3 \pmod 7``; the left side may be missing."""
    if a.kind is not b.kind:
        congruence, other = (a, b) if a.kind is Kind.CONGRUENCE else (b, a)
        rest = _whole(congruence.parts[1])
        if congruence is a and rest is not None and is_class(b.text, rest, int(a.mark)):
            return on.note("as a family of values")
        left = congruence.parts[0]
        if left and (congruence is a or len(left) > 1):  # x \equiv 5 names 5, x^2 \equiv 5 does not
            return False
        if other.number is None or not on.how.units:
            return False
        value, modulus = _whole(other.text), int(congruence.mark)
        if on.how.worked_out and congruence is b and rest != value:
            return False  # the remainder is to be worked out: not 14 mod 8
        if rest is not None and value is not None and 0 <= value < modulus:
            return (rest - value) % modulus == 0 and on.note("the modulus is left out")
        if on.same(congruence.parts[1], other.text, depth + 1) is not True:
            return False
        if rest is not None and abs(rest) >= modulus:
            return False  # 9 mod 5 may be 4
        return on.note("the modulus is left out")
    if a.mark.lstrip("0") != b.mark.lstrip("0"):
        return False
    names = on.same(a.parts[0], b.parts[0], depth + 1) if a.parts[0] and b.parts[0] else True
    modulus = int(a.mark)
    rests = [_whole(shape.parts[1]) for shape in (a, b)]
    if modulus == 0 or rests[0] is None or rests[1] is None:
        return all_of([names, on.same(a.parts[1], b.parts[1], depth + 1)])
    return all_of([names, (rests[0] - rests[1]) % modulus == 0])


def _whole(text: str) -> int | None:
    found: Number | None = read_respelled(text)
    if found is None or found.value.denominator != 1 or found.percent or found.unit:
        return None
    return found.value.numerator


def same_quantities(a: Number, b: Number, on: Comparison) -> bool:
    """Compare two numbers, noting the convention that was needed."""
    if not same_numbers(a, b, on.how):
        return False
    if a.percent != b.percent:
        on.note("as a percentage")
    elif a.value != b.value and unit_ratio(b.unit, a.unit) in {None, 1}:
        near = on.how.allows(a.value - b.value, a.value)
        on.note("within the tolerance" if near else f"rounded to {b.digits} digits")
    if bool(a.unit) != bool(b.unit):
        on.note("a unit is left out")
    return True
