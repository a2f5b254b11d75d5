"""The tree of a formula: exact numbers, names, sums, products, powers and calls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

MAX_BITS = 8192
"""Of a number: larger ones stay a power, a product or a factorial that nobody multiplies out."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation of a formula.

    Attributes:
        kind: ``number``, ``name``, ``constant``, ``sum``, ``product``, ``power``, ``call``,
            ``sum of`` or ``product of`` (a series) or ``undefined``.
        parts: its operands; of a series the first and the last index, and a term.
        value: of a number; of a root its degree.
        name: of a name, a constant (``pi``, ``e``, ``i``), a function, or the index of a series.
    """

    kind: str
    parts: tuple[Node, ...] = ()
    value: Fraction = Fraction(0)
    name: str = ""


class UnreadError(Exception):
    """The text is not a formula that is read here."""


SERIES = frozenset(("sum of", "product of"))
UNDEFINED = Node("undefined")
"""What divides by zero, or is the zeroth power of zero."""


def names(tree: Node) -> frozenset[str]:
    """Return the variables of a formula."""
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.kind == "name":
            found.add(node.name)
        if node.kind in SERIES:
            found |= names(node.parts[2]) - {node.name}
        waiting.extend(node.parts[:2] if node.kind in SERIES else node.parts)
    return frozenset(found)


def nodes(tree: Node) -> Iterator[Node]:
    """Yield a tree and all its operands, and theirs."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.parts)


def whole_names(tree: Node) -> frozenset[str]:
    """Return the names that must be integers: in the bounds of a series, under ``!!``."""
    found: set[str] = set()
    for node in nodes(tree):
        if node.kind in SERIES:
            found.update(*map(names, node.parts[:2]))
        elif node.name == "double factorial":
            found |= names(node)
    return frozenset(found)


def functions(tree: Node) -> frozenset[str]:
    """Return the functions that a formula applies to something with a variable in it."""
    return frozenset(node.name for node in nodes(tree) if node.kind == "call" and names(node))


def is_polynomial(tree: Node) -> bool:
    """Return whether its variables are only added, multiplied and raised to integer powers."""
    if tree.kind == "call" or tree.kind in SERIES:
        return not names(tree)
    if tree.kind == "power":
        base, exponent = tree.parts
        if names(exponent):
            return False
        if names(base) and not (exponent.kind == "number" and is_natural(exponent.value)):
            return False
    return all(is_polynomial(part) for part in tree.parts)


def is_natural(value: Fraction) -> bool:
    """Return whether a number is 0, 1, 2, ..."""
    return value.denominator == 1 and value >= 0


def size(tree: Node) -> int:
    """Count its nodes."""
    return sum(1 for _ in nodes(tree))


# -- making trees: numbers are folded, and nothing else ----------------------------------------


def number(value: Fraction | int) -> Node:
    """Return an exact number.

    Raises:
        UnreadError: it has too many digits.
    """
    value = Fraction(value)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise UnreadError("a number too long")
    return Node("number", value=value)


def constant(name: str) -> Node:
    """Return ``pi``, ``e`` or ``i``."""
    return Node("constant", name=name)


def call(name: str, *parts: Node) -> Node:
    """Apply a function."""
    return Node("call", parts, name=name)


def difference(left: Node, right: Node) -> Node:
    """Return ``left - right``."""
    return total([left, negative(right)])


def total(terms: list[Node]) -> Node:
    """Return their sum."""
    if len(terms) == 1:
        return terms[0]
    if all(term.kind == "number" for term in terms):
        return number(sum(term.value for term in terms))
    return Node("sum", tuple(terms))


def product(factors: list[Node]) -> Node:
    """Return their product."""
    if len(factors) == 1:
        return factors[0]
    if all(factor.kind == "number" for factor in factors):
        bits = sum(factor.value.numerator.bit_length() for factor in factors)
        if bits > 4 * MAX_BITS:
            raise UnreadError("a number too long")
        return number(math.prod((factor.value for factor in factors), start=Fraction(1)))
    nought = any(factor.kind == "number" and factor.value == 0 for factor in factors)
    if nought and all(is_polynomial(factor) for factor in factors):
        return number(0)
    return Node("product", tuple(factors))


def negative(tree: Node) -> Node:
    """Return ``-tree``."""
    return number(-tree.value) if tree.kind == "number" else product([number(-1), tree])


def inverse(tree: Node) -> Node:
    """Return ``1 / tree``.

    Raises:
        ZeroDivisionError: the tree is the number 0.
    """
    return number(1 / tree.value) if tree.kind == "number" else power(tree, number(-1))


def power(base: Node, exponent: Node) -> Node:
    """Return ``base ^ exponent``.

    Raises:
        ZeroDivisionError: 0 to the power of 0 or less, which has no value that all agree on.
    """
    if base.kind == "number" and base.value == 0 and may_vanish(exponent):
        raise ZeroDivisionError  # 0^{|x-5|} is 0, and is not at 5
    if base.kind == exponent.kind == "number":
        if base.value == 0 and exponent.value <= 0:
            raise ZeroDivisionError
        if exponent.value.denominator == 1:
            bits = max(base.value.numerator.bit_length(), base.value.denominator.bit_length())
            if abs(exponent.value.numerator) * bits <= MAX_BITS:
                return number(base.value**exponent.value.numerator)
            base, exponent = _lowest_base(base.value, exponent.value)
    return Node("power", (base, exponent))


def may_vanish(exponent: Node) -> bool:
    """Return whether an exponent may be 0 somewhere, which ``2n`` of a natural number is not."""
    sums = any(node.kind in {"sum", "call"} for node in nodes(exponent))
    return bool(names(exponent) - frozenset("nmkNMK") or (sums and names(exponent)))


def _lowest_base(base: Fraction, exponent: Fraction) -> tuple[Node, Node]:
    """Return ``9^n`` as ``3^{2n}``, so that equal powers too large to compute look the same."""
    if base.denominator == 1 and 3 < base <= 10**9:
        for degree in range(base.numerator.bit_length() - 1, 1, -1):
            lower = round(float(base) ** (1 / degree))
            if lower**degree == base:
                return number(lower), number(exponent * degree)
    return number(base), number(exponent)


def root(inside: Node, degree: Fraction) -> Node:
    """Return the root of an integer degree; of odd degree it is real for every real number."""
    if degree == 2:
        return power(inside, number(Fraction(1, 2)))
    return Node("call", (inside,), value=degree, name="root")


def factorial(tree: Node) -> Node:
    """Return ``tree!``, as a number if it is small.

    Raises:
        UnreadError: of a number that is not whole, or negative.
    """
    if tree.kind == "number":
        if not is_natural(tree.value):
            raise UnreadError("a factorial of no whole number")
        if tree.value <= 900:
            return number(math.factorial(tree.value.numerator))
    return call("factorial", tree)


def double_factorial(tree: Node) -> Node:
    """Return ``tree!!``, the product of every second number.

    Raises:
        UnreadError: of a number that is not small and whole.
    """
    if tree.kind != "number":
        return call("double factorial", tree)
    if not is_natural(tree.value) or tree.value > 900:
        raise UnreadError("a double factorial")
    return number(math.prod(range(tree.value.numerator, 1, -2)))


def binomial(n: Node, k: Node) -> Node:
    """Return ``n`` over ``k``, for a small integer ``k``, or two integers.

    Raises:
        UnreadError: otherwise.
    """
    if k.kind != "number" or not is_natural(k.value):
        raise UnreadError("a binomial whose lower part is no whole number")
    if n.kind == "number":
        if not is_natural(n.value) or n.value > 4096:
            raise UnreadError("a binomial of no small whole number")
        return number(math.comb(n.value.numerator, k.value.numerator))
    if k.value > 12:
        raise UnreadError("a binomial too large")
    below = k.value.numerator
    falling = [total([n, number(-j)]) for j in range(below)]
    return product([*falling, number(Fraction(1, math.factorial(below)))])


def substituted(tree: Node, name: str, value: Node) -> Node:
    """Replace a name in the tree, folding numbers.

    Raises:
        UnreadError, ZeroDivisionError: as the functions above do.
    """
    if tree.kind == "name":
        return value if tree.name == name else tree
    if not tree.parts:
        return tree
    parts = [substituted(part, name, value) for part in tree.parts]
    if tree.kind == "sum":
        return total(parts)
    if tree.kind == "product":
        return product(parts)
    if tree.kind == "power":
        return power(parts[0], parts[1])
    if tree.name == "factorial":
        return factorial(parts[0])
    if tree.kind in SERIES and tree.name == name:
        parts[2] = tree.parts[2]
    return Node(tree.kind, tuple(parts), tree.value, tree.name)
