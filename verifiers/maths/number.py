r"""Read a number exactly: ``1,024``, ``\frac{3}{4}``, ``$2.50``, ``45\%``, ``6.02\times10^{23}``.

Only the written number is read, nothing is computed: ``2+3`` is no number here.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from .conventions import Conventions
from .latex import normalized
from .number_words import MAGNITUDES
from .unit import CODES, MONEY, currency, may_be_added, price_unit, read_unit, unit_ratio

MAX_EXPONENT = 1000
"""Powers of ten beyond this are left unread: "1e999999999" would take the day to write out."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written.

    Attributes:
        value: exactly, before any percent sign is taken into account.
        percent: it has a percent sign.
        unit: what stands after it, or its currency; empty if there is none.
        digits: digits after the decimal point, if it was a plain decimal.
        double: the value is that of a double as languages print it, with 15 to 17 digits.
        compound: it was written in several units, as ``2 h 30 min``: they cannot be left out.
    """

    value: Fraction
    percent: bool = False
    unit: str = ""
    digits: int = 0
    double: bool = False
    compound: bool = False


_DECIMAL = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d{1,3}(?: \d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_SIGNED = rf"[-+]?{_DECIMAL}"
_GROUPED = rf"(?:{_SIGNED}|\({_SIGNED}\)|\{{{_SIGNED}\}})"
_BODY = re.compile(
    rf"(?P<sign>[-+]?)"
    rf"(?P<currency>(?:US)?[$€£¥₹]|(?:\\text\{{ ?)?(?:{'|'.join(CODES)})\.? ?\}}?|)(?:"
    rf"(?P<whole>\d+) ?\\frac\{{(?P<part>\d+)\}}\{{(?P<parts>\d+)\}}"
    rf"|(?P<whole2>\d+) (?P<part2>\d+)/(?P<parts2>\d+)"
    rf"|\\frac\{{(?P<top>{_SIGNED})\}}\{{(?P<bottom>{_SIGNED})\}}"
    rf"|(?P<top2>{_DECIMAL})/(?P<bottom2>{_GROUPED})"
    rf"|(?P<repeated>\d*\.\d*)\\overline\{{(?P<period>\d+)\}}"
    rf"|(?P<repeated2>\d+\.)\((?P<period2>\d+)\)"
    rf"|(?P<mantissa>{_DECIMAL})(?:[eE](?P<e>[-+]?\d{{1,6}})"
    rf"|(?:\\times|\\cdot|\*)10\^(?:\{{(?P<power>[-+]?\d{{1,6}})\}}|(?P<power1>\d)))"
    rf"|10\^(?:\{{(?P<ten>[-+]?\d{{1,6}})\}}|(?P<ten1>\d))"
    rf"|(?P<decimal>{_DECIMAL})"
    rf")",
    re.ASCII,
)
_TRAILING_TEXT = re.compile(r"(?<=.)\\text\{[^{}]*\}(?:\^\{?[23]\}?)?$")
_TRAILING_UNIT = re.compile(
    r"(?:(?<=[0-9)}])|(?<=\\pi)) ?(?:(?:sq(?:uare|\.)?|cubic) )?"
    r"(?:[cmk]m|km|kg|mg|ml|ft|in|yd|units?|inch(?:es)?|feet|foot|met(?:er|re)s?|miles?|yards?"
    r"|centimeters?|kilometers?|degrees?|radians?|seconds?|minutes?|hours?|dollars?|cents?)"
    r"(?:\^\{?[23]\}?)?$"
)
_AFTER = re.compile(r"(?P<percent>%)?(?:(?P<degree>°)(?P<scale>[CF]$)?)?(?P<rest>.*)", re.DOTALL)
_MAGNITUDE = re.compile(
    r" ?(?P<opening>\\text\{)? ?(?P<word>(?i:" + "|".join(MAGNITUDES) + r"))(?![A-Za-z]) ?"
)
_ORDINAL = re.compile(r"(?:\^\{?)?(?:\\text\{)?(st|nd|rd|th)\}{0,2}(?![A-Za-z])")
_CODE = re.compile(r"\\text|US(?=\$)|[{}. ]")
_LONGEST = 4000
_DIGIT = re.compile("[0-9]")
_INNER = re.compile(r"([-+]?)\((.*)\)")


def read_number(text: str) -> Number | None:
    """Read a number, or return ``None`` if the text is not one of at most 4,000 characters."""
    if len(text) > _LONGEST:  # Python converts no more than 4,300 digits
        return None
    return read_respelled(normalized(text))


@functools.lru_cache(maxsize=4096)
def read_respelled(text: str) -> Number | None:
    """Apply :func:`read_number` to a text that is already respelled and squeezed."""
    if text.isdecimal() and text.isascii() and len(text) <= _LONGEST:
        return Number(Fraction(int(text)))
    if not _DIGIT.search(text):
        return None
    text = _unwrapped(text)
    inner = _INNER.fullmatch(text)
    if inner and "," not in text:  # -(5) and (3/4): brackets around one number say nothing
        text = inner.group(1) + inner.group(2)
    body = _BODY.match(text)
    value = None if body is None else _value(body)
    after = None if body is None else _AFTER.match(text, body.end())
    if body is None or value is None or after is None:
        return None
    rest = after["rest"]
    magnitude = _MAGNITUDE.match(rest)
    if magnitude:
        value *= MAGNITUDES[magnitude["word"].lower()]
        rest = f"{magnitude['opening'] or ''}{rest[magnitude.end() :]}".removeprefix("\\text{}")
    ordinal = _ORDINAL.match(rest) if rest and body["decimal"] else None
    if ordinal and ordinal[1] == _ordinal_suffix(value):
        rest = rest[ordinal.end() :]
    unit = read_unit(rest)
    if unit is None:
        return None
    percent = bool(after["percent"]) or unit == "percent"
    unit = "" if unit == "percent" else unit
    if after["degree"]:
        unit = {"C": "celsius", "F": "fahrenheit"}.get(after["scale"], unit or "degree")
    money = currency(_CODE.sub("", body["currency"]))
    if money and unit and money != unit:
        priced_in = None if after["degree"] else price_unit(money, unit)
        if priced_in is None:
            return None
        money, unit = priced_in, ""
    digits = len(body["decimal"].partition(".")[2]) if body["decimal"] and not magnitude else 0
    double = not magnitude and _printed(body.group())
    value = -value if body["sign"] == "-" else value
    return Number(value, percent, unit or money, digits, double)


def _printed(text: str) -> bool:
    """Return whether a number is the shortest decimal of some double, with 15 or more digits."""
    if len(text) < 16 or "." not in text:
        return False
    try:
        shortest = repr(float(text))
    except ValueError:
        return False
    figures = shortest.partition("e")[0].lstrip("-0.").replace(".", "")
    return len(figures) >= 15 and Fraction(shortest) == Fraction(text)


_COMMA_POINT = re.compile(r"(-?(?:\d{1,3}(?:[. ]\d{3})*|\d+),\d*[1-9]\d*) ?(%)?", re.ASCII)
_GROUPED_OTHERWISE = re.compile(r"-?[1-9]\d?(?:,\d\d)+,\d{3}", re.ASCII)


def read_foreign(text: str) -> Number | None:
    """Read what looks like a list, but is a number in Europe or India: ``0,125``, ``12,34,567``.

    ``None`` if it is neither, or could be a list: ``5,0`` offers 5 and 0.
    """
    if _GROUPED_OTHERWISE.fullmatch(text):
        return Number(Fraction(text.replace(",", "")))
    found = _COMMA_POINT.fullmatch(text)
    if found is None:
        return None
    written = re.sub("[. ]", "", found[1]).replace(",", ".")
    return Number(Fraction(written), bool(found[2]), digits=len(written.partition(".")[2]))


def same_numbers(gold: Number, answer: Number, conventions: Conventions) -> bool:
    """Return whether two numbers are the same under the conventions."""
    if gold.unit and answer.unit:
        money = answer.unit in MONEY and gold.unit.startswith(f"{answer.unit} ")  # $15 per hour
        ratio = unit_ratio(answer.unit, answer.unit if money else gold.unit)
        if ratio is None or (ratio != 1 and not conventions.conversions):
            return False
        if ratio != 1:
            return not (gold.percent or answer.percent) and gold.value == answer.value * ratio
    elif gold.unit or answer.unit:
        if not conventions.units or gold.compound or answer.compound:
            return False
        if answer.unit and not may_be_added(answer.unit, answer.value):
            return False
    if gold.percent == answer.percent:
        return _equal(gold, answer, conventions)
    if gold.unit or answer.unit:
        return False  # 5% is not 5 dollars
    written = answer.value
    scaled = written / 100 if answer.percent else written * 100  # on the scale of gold's number
    readings = {"unit": [written], "value": [scaled], "either": [written, scaled]}
    if not gold.percent and 0 < abs(gold.value) < 1:
        readings["either"] = [scaled]  # a share: 0.5 is 50%, and 0.5% is a two-hundredth
    return any(
        _equal(gold, replace(answer, value=reading), conventions)
        for reading in readings[conventions.percent]
    )


def _equal(gold: Number, answer: Number, conventions: Conventions) -> bool:
    if gold.value == answer.value:
        return True
    loose = conventions.tolerance or conventions.relative_tolerance
    if not (loose or gold.digits or answer.digits or answer.double):
        return False  # both are written exactly
    gap = abs(gold.value - answer.value)
    if near_double(gap, answer) or conventions.allows(gap, gold.value):
        return True
    enough = conventions.rounded_digits
    if enough is None:
        return False
    tail = gold.value * 10 ** max(gold.digits - 1, 0)  # 5.00 is exact, as prices are
    printed = answer.double and tail.denominator != 1
    exact = printed or not (answer.digits or terminates(answer.value))
    if may_be_rounded(gold) and exact:
        return bool(gap * 2 * 10**gold.digits <= 1)  # the reference is what was rounded
    if answer.digits < enough or terminates(gold.value):
        return False
    return bool(gap * 2 * 10**answer.digits <= 1)


def near_double(gap: Any, answer: Number) -> bool:
    """Return whether a printed double is within the error of a few operations of an exact value."""
    if not answer.double or not answer.value:
        return False
    step = math.ulp(float(answer.value))
    return bool(step < 1e-3 and gap <= 4 * step)


def may_be_rounded(reference: Number) -> bool:
    """Return whether a reference may be a rounded value: a decimal of three figures or more."""
    return reference.digits > 0 and abs(reference.value) * 10**reference.digits >= 100


def _ordinal_suffix(value: Fraction) -> str:
    if value.denominator != 1 or value < 0:
        return ""
    teens = value.numerator % 100 in {11, 12, 13}
    return "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(value.numerator % 10, "th")


def terminates(value: Fraction) -> bool:
    """Return whether a number has an exact decimal."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


_IN_TEXT = re.compile(r"\\text\{([-+]?[\d./]+)\}")


def _unwrapped(text: str) -> str:
    written = _IN_TEXT.fullmatch(text)
    if written:  # \text{-4}
        return written.group(1)
    for _ in range(4):
        if len(text) < 3 or text[0] != "{" or text[-1] != "}" or "}" in text[1:-1]:
            break
        text = text[1:-1]
    return text.strip()


def _value(body: re.Match[str]) -> Fraction | None:
    found = {name: part for name, part in body.groupdict().items() if part}
    exponent = next((found[k] for k in ("e", "power", "power1", "ten", "ten1") if k in found), None)
    if exponent is not None:
        if abs(int(exponent)) > MAX_EXPONENT:
            return None
        return _decimal(found.get("mantissa", "1")) * Fraction(10) ** int(exponent)
    for mark in ("", "2"):
        if f"period{mark}" in found:
            return _repeating(found[f"repeated{mark}"], found[f"period{mark}"])
    if "decimal" in found:
        return _decimal(found["decimal"])
    whole = _decimal(found.get("whole") or found.get("whole2") or "0")
    top = _decimal(found.get("part") or found.get("part2") or found.get("top") or found["top2"])
    bottom = _decimal(
        found.get("parts") or found.get("parts2") or found.get("bottom") or found["bottom2"]
    )
    return None if bottom == 0 else whole + top / bottom


def _decimal(text: str) -> Fraction:
    text = text.strip("(){}").replace(",", "").replace(" ", "")
    whole, _, places = text.partition(".")
    sign = -1 if whole.startswith("-") else 1
    return sign * Fraction(int(whole.lstrip("+-") + places or "0"), 10 ** len(places))


def _repeating(start: str, period: str) -> Fraction:
    whole, _, places = start.partition(".")
    nines = 10 ** len(places) * (10 ** len(period) - 1)
    return Fraction(int(whole + places or "0"), 10 ** len(places)) + Fraction(int(period), nines)


def without_unit(text: str) -> tuple[str, str]:
    r"""Split a respelled text from the unit at its end, empty if there is none.

    The unit stands in ``\text{}``, or is a bare one after a number, ``\pi`` or a bracket.
    """
    found = _TRAILING_TEXT.search(text) or _TRAILING_UNIT.search(text)
    unit = read_unit(found.group()) if found else None
    return (text[: found.start()].strip(), unit) if found and unit else (text, "")
