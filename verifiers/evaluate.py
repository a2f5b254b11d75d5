"""Are two formulas the same? Their values at some points tell.

Two formulas that differ as functions agree at a random point only by accident: the identity test
of Schwartz (1980) and Zippel (1979), with points that are fixed, so that verdicts never change.
Doubles find the differences; a point where all agree is looked at again with 60 digits, which
also tells 10^{-20} from 10^{-21}.
"""

from __future__ import annotations

import cmath
import hashlib
import math
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from .expression import Node, difference, is_polynomial, names

DIGITS = 60
_AGREE = 1e-9
_CLOSE = 50  # digits of DIGITS that must agree; the rest is rounding
_LARGEST_EXPONENT = 10_000
_RANGES = ((0.15, 0.9), (1.1, 2.9), (-0.9, -0.15), (-2.9, -1.1), (3.1, 6.9))
"""Where the points lie: in and out of the domains of roots, logarithms and inverse functions."""

_Point = Mapping[str, Any]


def same_function(left: Node, right: Node) -> bool | None:
    """Whether two formulas have the same value for all values of their variables.

    ``None`` where they agree at some points only (as at different branches of a root), or where
    too few points give a value.
    """
    variables = names(left) | names(right)
    if ("\\log" in names(left)) != ("\\log" in names(right)):
        return None  # the base is left open on one side only
    agree = differ = 0
    for k in range(len(_RANGES) if variables else 1):
        point = {name: _coordinate(name, k) for name in variables}
        a, b = _double(left, point), _double(right, point)
        if a is None or b is None:
            continue
        if abs(a - b) <= _AGREE * max(abs(a), abs(b)):
            agree += 1
        else:
            differ += 1
    if differ:
        return _surely_differ(left, right) if not variables else (None if agree else False)
    if variables and agree < 3:
        return None
    return _same_at(left, right, {name: _coordinate(name, 0) for name in variables})


def proportional(left: Node, right: Node) -> float | None:
    """The constant ratio of two formulas, or ``None`` where it is none, is 0 or cannot be told."""
    if not names(left) or names(left) != names(right):
        return None
    ratios = []
    for k in range(len(_RANGES)):
        point = {name: _coordinate(name, k) for name in names(left)}
        a, b = _double(left, point), _double(right, point)
        if a is not None and b is not None and abs(a) > _AGREE and abs(b) > _AGREE:
            ratios.append(a / b)
    if len(ratios) < 3 or any(abs(r - ratios[0]) > _AGREE * abs(ratios[0]) for r in ratios):
        return None
    return ratios[0].real if abs(ratios[0].imag) < _AGREE else None


def same_equation(gold: tuple[Node, Node], answer: tuple[Node, Node]) -> bool | None:
    """Whether two equations say the same: one is the other times a constant."""
    left, right = difference(*gold), difference(*answer)
    if proportional(left, right) is not None:
        return True
    polynomials = is_polynomial(left) and is_polynomial(right)
    return False if polynomials and names(left) and names(right) else None


def constant_value(tree: Node, point: _Point | None = None) -> Any | None:
    """The value of a formula to 60 digits, or ``None`` where it has none.

    Args:
        tree: the formula.
        point: a number for each of its variables.
    """
    return None if names(tree) - set(point or ()) else _precise(tree, point or {})


def real_value(value: Any | None) -> Any | None:
    """A value that is real, or ``None``."""
    return None if value is None or getattr(value, "imag", 0) else value.real


def rounds_to(exact: Any, written: Fraction, digits: int) -> bool:
    """Whether a value rounds to what was written with so many digits after the point."""
    distance = abs(exact - _context().mpf(written.numerator) / written.denominator)
    return bool(distance * 2 * 10**digits <= 1)


def _coordinate(name: str, k: int) -> float:
    """Where a variable is put at point k: by its name, so both formulas get the same."""
    drawn = int.from_bytes(hashlib.blake2b(f"{k} {name}".encode(), digest_size=6).digest(), "big")
    low, high = _RANGES[k]
    return low + (high - low) * drawn / 2**48


def _double(tree: Node, point: _Point) -> complex | None:
    try:
        value = _value(tree, point, _DOUBLES)
    except (ArithmeticError, ValueError, _TooLargeError):
        return None
    return value if cmath.isfinite(value) else None


def _precise(tree: Node, point: _Point) -> Any | None:
    context = _context()
    try:
        value = _value(tree, point, _multiprecision(context))
    except (ArithmeticError, ValueError, TypeError, _TooLargeError):
        return None
    return value if context.isfinite(value) else None


def _same_at(left: Node, right: Node, point: _Point) -> bool | None:
    a, b = _precise(left, point), _precise(right, point)
    if a is None or b is None:
        return None
    size = max(abs(a), abs(b))
    if abs(a - b) <= size * _context().mpf(10) ** -_CLOSE:
        return True
    # two noughts, each with its own rounding, are for algebra to tell
    return None if size < 1e-30 else False


def _surely_differ(left: Node, right: Node) -> bool | None:
    """Constants that differ as doubles may be one where much was cancelled."""
    return _same_at(left, right, {})


# -- evaluation --------------------------------------------------------------------------------


class _TooLargeError(Exception):
    """A power that nobody needs to compute."""


_Arithmetic = Mapping[str, Any]


def _value(tree: Node, point: _Point, how: _Arithmetic) -> Any:
    if tree.kind == "number":
        return how["number"](tree.value)
    if tree.kind == "name":
        return how["convert"](point[tree.name])
    if tree.kind == "constant":
        return how[tree.name]
    values = [_value(part, point, how) for part in tree.parts]
    if tree.kind == "sum":
        return sum(values)
    if tree.kind == "product":
        return math.prod(values)
    if tree.kind == "power":
        return _raised(values[0], values[1], how)
    function: Callable[[Any], Any] = how[f"call {tree.name}"]
    return function(values[0])


def _raised(base: Any, exponent: Any, how: _Arithmetic) -> Any:
    if base == 0:
        if exponent.real <= 0:
            raise ZeroDivisionError
        return base
    size = abs(exponent) * (1 + abs(math.log(float(abs(base)) or 1e-300)))
    if not size <= _LARGEST_EXPONENT:
        raise _TooLargeError
    return how["power"](base, exponent)


def _floor(value: complex) -> complex:
    if value.imag:
        raise ValueError("no floor of a complex number")
    return complex(math.floor(value.real))


_DOUBLES: _Arithmetic = {
    "number": lambda value: complex(value.numerator / value.denominator),
    "convert": complex,
    "pi": complex(math.pi), "e": complex(math.e), "i": 1j,
    "power": lambda base, exponent: base**exponent,
    "call abs": lambda z: complex(abs(z)),
    "call floor": _floor, "call ceil": lambda z: -_floor(-z),
    "call ln": cmath.log, "call sin": cmath.sin, "call cos": cmath.cos, "call tan": cmath.tan,
    "call cot": lambda z: 1 / cmath.tan(z), "call sec": lambda z: 1 / cmath.cos(z),
    "call csc": lambda z: 1 / cmath.sin(z), "call sinh": cmath.sinh, "call cosh": cmath.cosh,
    "call tanh": cmath.tanh, "call arcsin": cmath.asin, "call arccos": cmath.acos,
    "call arctan": cmath.atan,
}  # fmt: skip

_local = threading.local()


def _context() -> Any:
    """Each thread's own: mpmath changes a context's precision while it computes."""
    if not hasattr(_local, "context"):
        import mpmath

        _local.context = mpmath.MPContext()
        _local.context.dps = DIGITS
        _local.arithmetic = _made(_local.context)
    return _local.context


def _multiprecision(context: Any) -> _Arithmetic:
    arithmetic: _Arithmetic = _local.arithmetic
    return arithmetic


def _made(mp: Any) -> _Arithmetic:
    return {
        "number": lambda value: mp.mpf(value.numerator) / value.denominator,
        "convert": mp.mpf,
        "pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1),
        "power": mp.power,
        "call abs": abs,
        "call floor": mp.floor, "call ceil": mp.ceil, "call ln": mp.ln,
        "call sin": mp.sin, "call cos": mp.cos, "call tan": mp.tan, "call cot": mp.cot,
        "call sec": mp.sec, "call csc": mp.csc, "call sinh": mp.sinh, "call cosh": mp.cosh,
        "call tanh": mp.tanh, "call arcsin": mp.asin, "call arccos": mp.acos,
        "call arctan": mp.atan,
    }  # fmt: skip
