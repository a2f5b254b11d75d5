"""Is an answer the expected one? Asked on the host, of text and of plain values only."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from ..guest.wire import decode, encode

_SPECIAL = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)


def check_tolerance(tolerance: float | None) -> None:
    """Refuse a tolerance that accepts anything.

    Raises:
        ValueError: it is neither ``None`` nor from 0 up to, but not including, 1.
    """
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ValueError(
            f"tolerance must be from 0 up to, but not including, 1, or None, got {tolerance}"
        )


def same_output(printed: str, expected: str, tolerance: float | None = None) -> bool:
    """Compare word by word: how much ASCII white space lies between them does not matter.

    Args:
        printed: what the program wrote.
        expected: what it should have.
        tolerance: numbers may differ by this much, absolutely or relative to the larger, so
            that ``1.0`` is ``1``; two integers may not differ at all. ``None``: every word must
            be the same, letter by letter.
    """
    ours, theirs = _words(expected), _words(printed)
    if len(ours) != len(theirs):
        return False
    return all(a == b or _close_words(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))


def same_lines(printed: str, expected: str) -> bool:
    """Compare line by line, for output in which white space counts.

    White space at the end of a line, and empty lines at the end of the text, do not.
    """
    return _lines(printed) == _lines(expected)


def _lines(text: str) -> list[str]:
    lines = [line.rstrip(" \t\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _words(text: str) -> list[bytes]:
    # As bytes: str.split also takes no-break spaces and control characters for white space.
    return text.encode("utf-8", "surrogatepass").split()


def _close_words(a: bytes, b: bytes, tolerance: float | None) -> bool:
    if tolerance is None or not a.isascii() or not b.isascii():
        return False  # float also reads other scripts' digits; no judge should
    one, other = a.decode(), b.decode()
    integer, other_integer = _integer(one), _integer(other)
    if integer and other_integer:
        # By their digits: as floats all integers of more than 308 digits are alike.
        return integer == other_integer
    if "_" in one + other:  # Python reads "1_0" as 10
        return False
    try:
        x, y = float(one), float(other)
    except ValueError:
        return False
    if math.isfinite(x) and math.isfinite(y):
        return _close(x, y, tolerance)
    # 1e400 and 1e500 are both infinite to float: only what says so is.
    said = _SPECIAL.fullmatch(one) and _SPECIAL.fullmatch(other)
    return bool(said) and (x == y or (math.isnan(x) and math.isnan(y)))


def _integer(word: str) -> str:
    """Return an integer without its zeros and plus signs; empty if the word is something else.

    A pattern would try each run of zeros in as many ways as it has zeros.
    """
    digits = word.removeprefix("-") if word[:1] == "-" else word.removeprefix("+")
    if not digits.isdigit():
        return ""
    significant = digits.lstrip("0")
    return f"-{significant}" if significant and word[0] == "-" else significant or "0"


def _close(a: float, b: float, tolerance: float) -> bool:
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def same_value(
    expected: Any, data: Any, tolerance: float | None = None, *, from_json: bool = False
) -> bool:
    """Compare a value with the JSON of :mod:`wire`, as ``==`` does for plain built-in values.

    So 1 equals 1.0 and True, and a list equals no tuple. Other than with ``==``, nan equals
    nan: where it is expected it is right. The JSON is untrusted: only what has the expected
    shape is built, and of sets and dicts only what is expected in them, since a set of chosen
    numbers, all with one hash, can take minutes to build.

    Args:
        expected: a plain value.
        data: JSON that a program wrote.
        tolerance: where one number is a float they may differ by this much, absolutely or
            relative to the larger, however deep in lists, tuples and dicts. Members of sets
            and keys must be equal.
        from_json: the expected value was read from JSON, which knows no tuples and only text
            as keys: a tuple equals the list of its items, and the key 1 the key "1".
    """
    try:
        # Long numbers are slow to reduce and convert, and an equal value is not far longer.
        if len(json.dumps(data)) > 10_000 + 10 * len(json.dumps(encode(expected))):
            return False
        return _Comparison(tolerance, from_json).same(expected, data)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return False  # not what wire makes, so not the expected value


@dataclass(frozen=True, slots=True)
class _Comparison:
    """How strictly values are compared."""

    tolerance: float | None
    from_json: bool

    def same(self, expected: Any, data: Any) -> bool:
        tag, content = "", data
        if type(data) is dict:
            ((tag, content),) = data.items()
        if isinstance(expected, list):
            is_list = type(data) is list or (self.from_json and tag == "tuple")
            return is_list and self.same_items(expected, content)
        if isinstance(expected, tuple):
            is_tuple = tag == "tuple" or (self.from_json and type(data) is list)
            return is_tuple and self.same_items(expected, content)
        if isinstance(expected, set | frozenset):
            if tag not in ("set", "frozenset") or len(content) != len(expected):
                return False
            members = map(decode, content)
            return len({item for item in members if item in expected}) == len(expected)
        if isinstance(expected, dict):
            return tag == "dict" and self.same_dict(expected, content)
        if type(data) is list or tag in ("tuple", "set", "frozenset", "dict"):
            return False
        return self.same_scalar(expected, decode(data))

    def same_items(self, expected: Any, data: Any) -> bool:
        return len(expected) == len(data) and all(
            self.same(e, d) for e, d in zip(expected, data, strict=True)
        )

    def same_dict(self, expected: dict[Any, Any], data: Any) -> bool:
        if len(data) != len(expected):
            return False
        ours = {self.key(key): value for key, value in expected.items()}
        theirs = ((self.key(decode(key)), value) for key, value in data)
        values = {key: value for key, value in theirs if key in ours}
        return len(values) == len(ours) and all(
            self.same(value, values[key]) for key, value in ours.items()
        )

    def key(self, key: Any) -> Any:
        """Return a dict's key, as JSON writes it if the expected value comes from JSON."""
        if self.from_json and (key is None or type(key) in (bool, int, float)):
            return json.dumps(key)
        return key

    def same_scalar(self, expected: Any, value: Any) -> bool:
        if value == expected:
            return True
        kinds = {type(expected), type(value)}
        if not kinds <= {int, float} or float not in kinds:
            return False
        if self.tolerance is not None and _close(expected, value, self.tolerance):
            return True
        return math.isnan(expected) and math.isnan(value)
