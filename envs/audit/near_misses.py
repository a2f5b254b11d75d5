"""Near misses of answers and programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from ...sandbox.grading.problem import problem_kinds
from ...verifiers import read_number

OPTIONS = ("A", "B", "C", "D", "E")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_FRACTION = re.compile(
    r"(-?)(?:([0-9]{1,9})/([0-9]{1,9})|\\[dt]?frac\{([0-9]{1,9})\}\{([0-9]{1,9})\})"
)
_WORDS = re.compile(r"(?:\\text\{)?([A-Za-z][A-Za-z ]+[A-Za-z])\}?")
_DIGIT = re.compile(r"(?<!_)(?<!_\{)[0-9]")
_OFF = {"4 % more": "1.04", "4 % less": "0.96", "0.9 % more": "1.009"}


def near_misses(answer: str) -> Iterator[tuple[str, str]]:
    """Yield answers that differ a little from a single value: what is different, and the answer."""
    plain = answer.replace(",", "") if re.fullmatch(r"-?\d{1,3}(?:,\d{3})+", answer) else answer
    fraction, words = _FRACTION.fullmatch(answer), _WORDS.fullmatch(answer)
    if _DECIMAL.fullmatch(plain):
        found = dict(_numbers(plain))
    elif fraction:
        found = dict(_fractions(fraction))
    elif answer in OPTIONS:
        found = {f"option {o}": o for o in OPTIONS}
    elif words:
        found = {
            f"the {which} letter changed": answer[:at] + _next(answer[at]) + answer[at + 1 :]
            for which, at in (("first", words.start(1)), ("last", words.end(1) - 1))
        }
    else:
        found = dict(_digit_changed(answer))
    right = read_number(answer)
    for what, text in found.items():
        value = read_number(text)
        if text != answer and (right is None or value is None or value.value != right.value):
            yield what, text


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    value, whole = Decimal(text), "." not in text
    yield "one more", f"{value + 1:f}"
    yield "one less", f"{value - 1:f}"
    yield "the other sign", f"{-value:f}"
    for what, factor in _OFF.items():
        off = value * Decimal(factor)
        yield what, f"{off:.0f}" if whole and abs(value) >= 100 else f"{off:f}"
    digits = text.lstrip("-")
    sign = text[: len(text) - len(digits)]
    if not whole:
        yield "rounded", f"{value:.0f}"
        step = Decimal(1).scaleb(-len(text.partition(".")[2]))
        yield "one more in the last place", f"{value + step:f}"
    elif len(digits) > 2:
        yield "rounded", f"{value.quantize(Decimal(10)):.0f}" if digits[-1] != "0" else text
    if len(digits) > 1 and digits[-2] != ".":
        yield "the last digit dropped", text[:-1]
    for at in range(len(digits) - 1):
        swapped = digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :]
        if "." not in digits[at : at + 2] and swapped != digits and swapped[0] != "0":
            yield "two digits swapped", sign + swapped
            break


def _fractions(found: re.Match[str]) -> Iterator[tuple[str, str]]:
    above, below = (int(n) for n in found.groups()[1:] if n is not None)
    form = r"\frac{%d}{%d}" if "frac" in found[0] else "%d/%d"
    yield "inverted", found[1] + form % (below, above)
    yield "one more above", found[1] + form % (above + 1, below)
    yield "one more below", found[1] + form % (above, below + 1)
    yield "the other sign", ("" if found[1] else "-") + form % (above, below)
    if below:
        yield "rounded", f"{found[1]}{above / below:.0f}"


def _digit_changed(text: str) -> Iterator[tuple[str, str]]:
    digit = _DIGIT.search(text)
    if digit:
        other = str(int(digit[0]) + 1) if digit[0] != "9" else "8"
        yield "a digit changed", text[: digit.start()] + other + text[digit.end() :]


def _next(letter: str) -> str:
    return {"z": "a", "Z": "A"}.get(letter, chr(ord(letter) + 1))


def constant_programs(reference: Mapping[str, Any]) -> Iterator[str]:
    """Yield programs that give one result whatever they are given; none if one result is right."""
    kinds = problem_kinds(reference)
    if "stdio" in kinds and (reference.get("language") or "python") == "python":
        outputs = Counter(output for _, output in reference["stdio"])
        if len(outputs) > 1:
            yield f"print({outputs.most_common(1)[0][0]!r}, end='')"
    elif "calls" in kinds:
        results = [result for _, result in reference["calls"]["cases"]]
        common = Counter(map(repr, results)).most_common(2)
        if len(common) > 1:
            yield _constant(reference["calls"]["function"], common[0][0])
    else:
        called = re.search(r"assert \(?([A-Za-z_]\w*)\(", str(reference.get("tests")))
        name = reference.get("entry_point") or (called and called[1])
        yield from (_constant(name, value) for value in ("True", "0", "''") if name)


def _constant(function: str, value: str) -> str:
    """Return a function or a method that returns a value."""
    owner, _, name = function.rpartition(".")
    body = f"def {name}(*args, **kwargs):\n    return {value}"
    return f"class {owner}:\n    " + body.replace("\n", "\n    ") if owner else body
