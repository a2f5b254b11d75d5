"""Is an answer the expected one? Asked on the host, of text and of plain values only."""

from __future__ import annotations

import json
import math
from typing import Any

from .wire import decode, encode


def same_output(printed: str, expected: str, tolerance: float | None = None) -> bool:
    """Compare word by word: how much white space lies between them does not matter.

    Args:
        printed: what the program wrote.
        expected: what it should have.
        tolerance: numbers may differ by this much, absolutely or relative to the larger.
            ``None``: every word must be the same.
    """
    ours, theirs = expected.split(), printed.split()
    if len(ours) != len(theirs):
        return False
    return all(a == b or _close_words(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))


def _close_words(a: str, b: str, tolerance: float | None) -> bool:
    if tolerance is None or "_" in a + b:  # Python reads "1_0" as 10; no judge should
        return False
    try:
        return _close(float(a), float(b), tolerance)
    except ValueError:
        return False


def _close(a: float, b: float, tolerance: float) -> bool:
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def same_value(expected: Any, data: Any, tolerance: float | None = None) -> bool:
    """Compare a value with the JSON of :mod:`wire`, as ``==`` does for plain built-in values.

    So 1 equals 1.0 and True, and a list equals no tuple. The JSON is untrusted: only what has
    the expected shape is built, since a set of chosen numbers can take minutes to build.

    Args:
        expected: a plain value.
        data: JSON that a program wrote.
        tolerance: floats may differ by this much, absolutely or relative to the larger.
    """
    try:
        # Long numbers are slow to reduce and convert, and an equal value is not far longer.
        if len(json.dumps(data)) > 10_000 + 10 * len(json.dumps(encode(expected))):
            return False
        return _same(expected, data, tolerance)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return False  # not what wire makes, so not the expected value


def _same(expected: Any, data: Any, tolerance: float | None) -> bool:
    if isinstance(expected, list):
        return type(data) is list and _same_items(expected, data, tolerance)
    tag, content = "", data
    if type(data) is dict:
        ((tag, content),) = data.items()
    if isinstance(expected, tuple):
        return tag == "tuple" and _same_items(expected, content, tolerance)
    if isinstance(expected, set | frozenset):
        if tag not in ("set", "frozenset") or len(content) != len(expected):
            return False
        return bool({decode(item) for item in content} == expected)
    if isinstance(expected, dict):
        return tag == "dict" and _same_dict(expected, content, tolerance)
    if type(data) is list or tag in ("tuple", "set", "frozenset", "dict"):
        return False
    value = decode(data)
    if tolerance is not None and isinstance(expected, float) and type(value) in (float, int):
        return expected == value or _close(expected, value, tolerance)
    return bool(value == expected)


def _same_items(expected: Any, data: Any, tolerance: float | None) -> bool:
    return len(expected) == len(data) and all(
        _same(e, d, tolerance) for e, d in zip(expected, data, strict=True)
    )


def _same_dict(expected: dict[Any, Any], data: Any, tolerance: float | None) -> bool:
    if len(data) != len(expected):
        return False
    values = {decode(key): value for key, value in data}
    return values.keys() == expected.keys() and all(
        _same(expected[key], values[key], tolerance) for key in expected
    )
