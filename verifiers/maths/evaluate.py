"""The value of a formula at a point: quickly in doubles, or to many digits.

Work is bounded before it is done: no power, factorial or angle is computed whose size is beyond
what answers need.
"""

from __future__ import annotations

import cmath
import math
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from .formula import SERIES, Node, may_vanish, size

DIGITS = 60
_LARGEST_DOUBLE, _LARGEST_PRECISE = 1e4, 1e12  # of exponents, in proportion to ln(base)
_LARGEST_ARGUMENT = {"ln": math.inf, "abs": math.inf, "factorial": 1e6, "root": 1e300}
_LARGEST_ANGLE = 1e15
_MOST_TERMS = 5000
_OVERFLOWING = frozenset(("sinh", "cosh", "tanh"))

Point = Mapping[str, Any]


class TooLargeError(Exception):
    """A value that nobody needs to compute."""


class NoValueError(ArithmeticError):
    """The formula has no value there that all would agree on."""


def double_value(tree: Node, point: Point) -> complex | None:
    """Return the value in doubles, or ``None`` if there is none."""
    try:
        value = complex(_value(tree, point, _DOUBLES))
    except (ArithmeticError, ValueError, TooLargeError):
        return None
    return value if cmath.isfinite(value) else None


def precise_value(tree: Node, point: Point, digits: int = DIGITS) -> Any | None:
    """Return the value to N digits, or ``None`` if there is none.

    Raises:
        TooLargeError: it is beyond what is computed.
    """
    context, arithmetic = _precise(digits)
    try:
        value = _value(tree, point, arithmetic)
    except (ArithmeticError, ValueError, TypeError):
        return None
    return value if context.isfinite(value) else None


def real_value(value: Any | None) -> Any | None:
    """Return a real value, or ``None``."""
    return None if value is None or getattr(value, "imag", False) else value.real


def rounds_to(exact: Any, written: Fraction, digits: int) -> bool:
    """Return whether a value rounds to a number written with N digits after the point."""
    return bool(abs(exact - precise_number(written)) * 2 * 10**digits <= 1)


def precise_number(value: Fraction) -> Any:
    """Return a fraction to the digits of :func:`precise_value`."""
    context, _ = _precise(DIGITS)
    return context.mpf(value.numerator) / value.denominator


def magnitude(value: Any) -> float:
    """Return about log10 of the size of a value of :func:`precise_value`; minus infinity for 0."""
    return float(value.context.mag(value)) * math.log10(2)


_Arithmetic = Mapping[str, Any]


def _value(tree: Node, point: Point, how: _Arithmetic) -> Any:
    if tree.kind == "number":
        return how["number"](tree.value)
    if tree.kind == "name":
        return how["convert"](point[tree.name])
    if tree.kind == "constant":
        return how[tree.name]
    if tree.kind == "undefined":
        raise ZeroDivisionError
    if tree.kind in SERIES:
        return _series(tree, point, how)
    values = [_value(part, point, how) for part in tree.parts]
    if tree.kind == "sum":
        return sum(values)
    if tree.kind == "product":
        return math.prod(values)
    if tree.kind == "power":
        if values[0] == 0 and may_vanish(tree.parts[1]):
            raise NoValueError  # (x-x)^{|x-5|} has another value at 5
        return _raised(values[0], values[1], how)
    return _called(tree, values[0], how)


def _series(tree: Node, point: Point, how: _Arithmetic) -> Any:
    first, last = (_whole(_value(part, point, how)) for part in tree.parts[:2])
    count = last - first + 1
    if count < 0:
        raise NoValueError
    if count * size(tree.parts[2]) > _MOST_TERMS:
        raise TooLargeError
    terms = [_value(tree.parts[2], {**point, tree.name: first + k}, how) for k in range(count)]
    return how["number"](Fraction(0)) + sum(terms) if tree.kind == "sum of" else math.prod(terms)


def _whole(value: Any) -> int:
    if value.imag or value.real != int(value.real):
        raise NoValueError
    return int(value.real)


def _called(tree: Node, value: Any, how: _Arithmetic) -> Any:
    bound = _LARGEST_ARGUMENT.get(tree.name, _LARGEST_ANGLE)
    if abs(value) > (700 if tree.name in _OVERFLOWING else bound):
        raise TooLargeError
    if tree.name == "root":
        return _root(value, tree.value, how)
    if tree.name in {"floor", "ceil"}:
        return _stepped(value, tree.name, how)
    if tree.name == "double factorial":
        if not -1 <= (n := _whole(value)) <= _LARGEST_DOUBLE:
            raise NoValueError
        return how["number"](Fraction(math.prod(range(n, 1, -2))))
    if tree.name == "factorial":
        if value.imag or value.real <= -1:
            raise NoValueError
        return how["factorial"](value.real)
    function: Callable[[Any], Any] = how[tree.name]
    return function(value)


def _raised(base: Any, exponent: Any, how: _Arithmetic) -> Any:
    if base == 0:
        if exponent.real <= 0:
            raise ZeroDivisionError
        return base
    if not base.imag and base.real < 0 and not exponent.imag:
        twice = 2 * exponent.real
        if twice != int(twice):
            raise NoValueError  # (-8)^{1/3} is -2 for some and 1+1.73i for others
    if not _magnitude(base, how) * abs(exponent) <= how["largest"]:
        raise TooLargeError
    return how["power"](base, exponent)


def _magnitude(base: Any, how: _Arithmetic) -> float:
    """Return the growth rate of its powers: 1 + |ln|base||."""
    return float(1 + abs(how["ln"](abs(base))))


def _root(value: Any, degree: Fraction, how: _Arithmetic) -> Any:
    if value == 0:
        return value
    index = how["number"](1 / degree)
    if not value.imag and value.real < 0:
        if degree.numerator % 2 == 0:
            raise NoValueError
        return -how["power"](-value, index)
    if value.imag:
        raise NoValueError  # which of several roots?
    return how["power"](value, index)


def _stepped(value: Any, name: str, how: _Arithmetic) -> Any:
    if value.imag:
        raise NoValueError
    nearest = how["round"](value.real)
    gap = abs(value.real - nearest)
    if 0 < gap < how["near"]:
        raise NoValueError  # rounding would decide between two integers
    up = name == "ceil"
    if gap == 0:
        return how["convert"](nearest)
    return how["convert"](how["round"](value.real + (0.5 if up else -0.5)))


_DOUBLES: _Arithmetic = {
    "number": lambda value: complex(value.numerator / value.denominator),
    "convert": complex,
    "pi": complex(math.pi), "e": complex(math.e), "i": 1j,
    "power": lambda base, exponent: base**exponent, "largest": _LARGEST_DOUBLE,
    "round": round, "near": 1e-9, "factorial": lambda x: complex(math.gamma(x + 1)),
    "abs": lambda z: complex(abs(z)), "ln": cmath.log, "sin": cmath.sin, "cos": cmath.cos,
    "tan": cmath.tan, "cot": lambda z: 1 / cmath.tan(z), "sec": lambda z: 1 / cmath.cos(z),
    "csc": lambda z: 1 / cmath.sin(z), "sinh": cmath.sinh, "cosh": cmath.cosh,
    "tanh": cmath.tanh, "arcsin": cmath.asin, "arccos": cmath.acos, "arctan": cmath.atan,
}  # fmt: skip

_local = threading.local()


def _precise(digits: int) -> tuple[Any, _Arithmetic]:
    """Return each thread's own context: mpmath changes its precision while it computes."""
    made: dict[int, tuple[Any, _Arithmetic]] = _local.__dict__.setdefault("contexts", {})
    if digits not in made:
        import mpmath  # sympy's own arithmetic: wherever sympy is, it is too

        context = mpmath.MPContext()
        context.dps = digits
        made[digits] = context, _arithmetic(context, digits)
    return made[digits]


def _arithmetic(mp: Any, digits: int) -> _Arithmetic:
    return {
        "number": lambda value: mp.mpf(value.numerator) / value.denominator,
        "convert": mp.convert,
        "pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1),
        "power": mp.power, "largest": _LARGEST_PRECISE,
        "round": mp.nint, "near": mp.mpf(10) ** (10 - digits),
        "factorial": lambda x: mp.gamma(x + 1), "abs": abs, "ln": mp.ln,
        "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "cot": mp.cot, "sec": mp.sec, "csc": mp.csc,
        "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh,
        "arcsin": mp.asin, "arccos": mp.acos, "arctan": mp.atan,
    }  # fmt: skip
