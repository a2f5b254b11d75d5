"""Compare formulas by their values at some points.

Two formulas that differ as functions agree at a random point only by accident: the identity test
of Schwartz (1980) and Zippel (1979), with points that are fixed, so that verdicts never change.
Doubles look at each point first; what they find is confirmed with 60 digits, which also tells
10^{-20} from 10^{-21}.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from .comparison import all_of
from .evaluate import DIGITS, Point, TooLargeError, double_value, magnitude, precise_value
from .expression import read_expression
from .formula import SERIES, Node, difference, functions, is_polynomial, names, nodes, whole_names

_AGREE = 1e-9
_CLOSE = 10.0**-50  # 10 digits of DIGITS are left to rounding
_ENOUGH = 3
_MOST_DIGITS = 5000
_RANGES = (
    (0.15, 0.9), (1.1, 2.9), (-0.9, -0.15), (-2.9, -1.1), (3.1, 6.9), (0.3, 0.7), (1.3, 1.9),
)  # fmt: skip
"""Where the points lie: in and out of the domains of roots, logarithms and inverse functions."""
_WHOLE = ((3, 2), (-2, 5), (1, 1), (0, -1))
"""Whole coordinates, for what jumps there: point k gives the j-th variable the k-th pair's j-th."""
_WHOLE_NAMES = frozenset("nmkNMK")
_JUMPING = frozenset(("floor", "ceil"))


def same_function(left: Node, right: Node) -> bool | None:
    """Return whether two formulas have the same value for all values of their variables.

    The second is the answer: one whose value is too large to compute, or that divides by zero,
    is not the first, if that has a value.

    ``None`` if they agree at some points only (as at different branches of a root), or if
    too few points give a value.
    """
    variables = names(left) | names(right)
    whole = whole_names(left) | whole_names(right)
    if whole:
        return _same_series(left, right, variables, whole | variables & _WHOLE_NAMES)
    if variables <= _WHOLE_NAMES and _jumps(left, right):
        return _same_at_whole(left, right, variables)
    open_base = ("\\log" in names(left)) != ("\\log" in names(right))
    found = _same_over(left, right, variables) if variables else _same_constants(left, right)
    return None if open_base and not found else found


def _same_constants(left: Node, right: Node) -> bool | None:
    found: list[Any] = []
    for tree in (left, right):
        try:
            found.append(_constant(tree))
        except TooLargeError:
            found.append("too large")
    a, b = found
    if a == b == "too large" and repr(left) == repr(right):
        return True
    if "too large" in (a, b):  # the other is within reach, unless it has no value at all
        return None if a == b or a is None or b is None else False
    if right.kind == "undefined" and a is not None:
        return False
    if a is None or b is None:
        return None
    return _same_numbers(left, right, {}, a, b)


@functools.lru_cache(maxsize=4096)
def _constant(tree: Node) -> Any | None:
    """Return its value, cached, because a reference is compared with many answers."""
    return precise_value(tree, {})


def _jumps(left: Node, right: Node) -> bool:
    return not _JUMPING.isdisjoint(functions(left) | functions(right))


def _same_at_whole(left: Node, right: Node, variables: frozenset[str]) -> bool | None:
    """Compare formulas with rounding, or with integer variables, at integers."""
    order = sorted(variables)
    return all_of(
        _same_at(left, right, {name: k // 7**j + 2 * j + 1 for j, name in enumerate(order)})
        for k in (*range(50), 359, 1000, 2519, 9998, 10**6 + 6)
    )


def _same_series(
    left: Node, right: Node, variables: frozenset[str], whole: frozenset[str]
) -> bool | None:
    """Compare formulas with integer variables, as the bounds of a sum, at the first integers."""
    order = sorted(variables)
    points = (
        {
            name: k // 5**j + j + 1 if name in whole else _coordinate(name, k % len(_RANGES))
            for j, name in enumerate(order)
        }
        for k in (*range(16), 23, 40)
    )
    return all_of(_same_at(left, right, point) for point in points)


def _same_over(left: Node, right: Node, variables: frozenset[str]) -> bool | None:
    agree, differ, first = 0, 0, None  # the first point where they agree
    cancelled = True  # until it is known that doubles are good enough for these two
    jumps = _jumps(left, right)
    for point in points(variables, jumps, _complex_names(left, right)):
        a, b = double_value(left, point), double_value(right, point)
        if a is None or b is None or max(abs(a), abs(b)) < 1e-200:
            continue
        if abs(a - b) <= _AGREE * max(abs(a), abs(b)):
            agree += 1
            first = point if first is None else first
            continue
        # much may have been cancelled in the doubles; if it was not, they are believed
        surely = _same_at(left, right, point) if cancelled or abs(a - b) < 1e-3 * abs(a) else False
        cancelled &= surely is not False
        if surely is False and jumps and min(point.values()) > 0:
            return False  # there is no branch to choose if all is positive
        agree += surely is True
        differ += surely is False
    if differ:
        return None if agree else False
    if agree < _ENOUGH:
        return None
    return True if first is None else _same_at(left, right, first)


def ratio(left: Node, right: Node) -> Any | None:
    """Return the non-zero real constant by which one formula is the other, as far as known."""
    variables = names(left)
    if not variables or variables != names(right):
        return None
    ratios = []
    for point in points(variables, False, _complex_names(left, right)):
        try:
            a, b = precise_value(left, point), precise_value(right, point)
        except TooLargeError:
            continue
        if a is not None and b is not None and abs(a) > 1e-30 and abs(b) > 1e-30:
            ratios.append(a / b)
    if len(ratios) < _ENOUGH or getattr(ratios[0], "imag", False):
        return None
    alike = all(abs(r - ratios[0]) <= 1e-20 * abs(ratios[0]) for r in ratios)
    return ratios[0].real if alike else None


def same_equation(gold: tuple[Node, Node], answer: tuple[Node, Node]) -> bool | None:
    """Return whether two equations are equivalent: one is the other times a constant."""
    left, right = difference(*gold), difference(*answer)
    if ratio(left, right) is not None:
        return True
    if _complex_names(left, right):
        return False  # a symbolic library takes z for real
    polynomials = is_polynomial(left) and is_polynomial(right)
    return False if polynomials and names(left) and names(right) else None


def value_of(text: str) -> Any | None:
    """Return the value of a text to 60 digits, or ``None`` if it is no formula or has none."""
    tree = read_expression(text)
    return None if tree is None else constant_value(tree)


def constant_value(tree: Node, point: Point | None = None) -> Any | None:
    """Return the value of a formula to 60 digits, or ``None`` if it has none."""
    if names(tree) - set(point or ()):
        return None
    try:
        return precise_value(tree, point or {})
    except TooLargeError:
        return None


@functools.lru_cache(maxsize=4096)
def _coordinate(name: str, k: int) -> float:
    """Return a variable's value at point k: by its name, so both formulas get the same."""
    drawn = int.from_bytes(hashlib.blake2b(f"{k} {name}".encode(), digest_size=6).digest(), "big")
    low, high = _RANGES[k]
    return low + (high - low) * drawn / 2**48


def _complex_names(left: Node, right: Node) -> frozenset[str]:
    """Return the names of complex variables: z and w, in formulas that have i and no jumps."""
    imaginary = any(n.name == "i" and n.kind == "constant" for t in (left, right) for n in nodes(t))
    return names(left) & {"z", "w"} if imaginary and not _jumps(left, right) else frozenset()


def points(
    variables: frozenset[str], jumps: bool = False, complexes: frozenset[str] = frozenset()
) -> list[Point]:
    """Return fixed points to compare at, with integers for functions that jump there."""
    found: list[Point] = [
        {name: _coordinate(name, k) for name in variables} for k in range(len(_RANGES))
    ]
    for k, point in enumerate(found):
        found[k] = {**point, **{z: complex(point[z], _coordinate(f"{z} i", k)) for z in complexes}}
    if jumps:
        order = sorted(variables)
        found += [{name: pair[j % 2] for j, name in enumerate(order)} for pair in _WHOLE]
    return found


def _same_at(left: Node, right: Node, point: Point) -> bool | None:
    try:
        a, b = precise_value(left, point), precise_value(right, point)
    except TooLargeError:
        return None
    return None if a is None or b is None else _same_numbers(left, right, point, a, b)


def _same_numbers(left: Node, right: Node, point: Point, a: Any, b: Any) -> bool | None:
    size = max(abs(a), abs(b))
    if abs(a - b) <= size * _CLOSE:
        return same_beyond(left, right, point)
    if size > 1e-25:
        return False
    # is it nought and rounding, or a small number? More digits decide: rounding shrinks with them
    again = [precise_value(tree, point, 3 * DIGITS) for tree in (left, right)]
    if again[0] is None or again[1] is None:
        return None
    gap, finer = abs(a - b), abs(again[0] - again[1])
    if finer <= 1e-60 * gap:
        return True
    return False if abs(finer - gap) <= 1e-9 * finer else None


def same_beyond(left: Node, right: Node, point: Point) -> bool:
    r"""Return whether two values agree in the digits that a small term could hide in.

    ``\sqrt{1+10^{-80}}`` agrees with 1 in 60 digits: as many more are computed as separate the
    terms of each sum, and the digits of each long number.
    """
    hidden = sum(_hidden_digits(tree, point) for tree in (left, right))
    if hidden < 8:
        return True
    if hidden > _MOST_DIGITS:
        return False  # undecidable
    digits = DIGITS + 2 * int(hidden)
    a, b = (precise_value(tree, point, digits) for tree in (left, right))
    if a is None or b is None:
        return False
    return magnitude(a - b) <= max(magnitude(a), magnitude(b)) - digits + int(hidden) + 10


def _hidden_digits(tree: Node, point: Point) -> float:
    """Count the decimal digits between terms of sums and in long numbers and arguments."""
    if tree.kind == "number":
        bits = max(tree.value.numerator.bit_length(), tree.value.denominator.bit_length())
        return 0.3 * bits if bits > 64 else 0
    if tree.kind in SERIES:
        first = precise_value(tree.parts[0], point)
        return _hidden_digits(tree.parts[2], {**point, tree.name: first})
    found = sum(_hidden_digits(part, point) for part in tree.parts)
    if tree.kind == "call" and (inner := precise_value(tree.parts[0], point)):
        # \tanh 100 differs from 1, and \arctan 10^{60} from half of pi
        far = abs(inner) if tree.name == "tanh" else abs(magnitude(inner))
        found += float(far) if far > 8 else 0
    if tree.kind == "sum":
        values = [precise_value(part, point) for part in tree.parts]
        sizes = [magnitude(value) for value in values if value]
        found += max(sizes) - min(sizes) if sizes else 0
    return found
