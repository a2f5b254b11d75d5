"""The derivative of a formula, as a formula: the rules of the calculus, and no simplification."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from .formula import (
    Node,
    UnreadError,
    call,
    difference,
    inverse,
    names,
    negative,
    number,
    power,
    product,
    root,
    size,
    total,
)

_LARGEST = 20_000
"""Nodes. A derivative can be much larger than what it is of."""


def derivative(tree: Node, name: str) -> Node:
    """Return the derivative with respect to a name; all other names are constants.

    Raises:
        UnreadError: a function has none that is known here, or the result is too large.
        ZeroDivisionError: a part of it divides by the number 0.
    """
    if name not in names(tree):
        return number(0)
    if tree.kind == "name":
        return number(1)
    inner = [derivative(part, name) for part in tree.parts]
    if tree.kind == "sum":
        found = total(inner)
    elif tree.kind == "product":
        found = total(
            [
                product([*tree.parts[:at], change, *tree.parts[at + 1 :]])
                for at, change in enumerate(inner)
                if not _is_zero(change)
            ]
        )
    elif tree.kind == "power":
        found = _of_power(*tree.parts, *inner)
    else:
        found = product([_outer(tree), inner[0]])
    if size(found) > _LARGEST:
        raise UnreadError("a derivative too large")
    return found


def _is_zero(tree: Node) -> bool:
    return tree.kind == "number" and tree.value == 0


def _of_power(base: Node, exponent: Node, d_base: Node, d_exponent: Node) -> Node:
    """Differentiate ``u^v``: v u^(v-1) u' + u^v ln(u) v', omitting terms that are 0."""
    terms = []
    if not _is_zero(d_base):
        lower = power(base, difference(exponent, number(1)))
        terms.append(product([exponent, lower, d_base]))
    if not _is_zero(d_exponent):
        logarithm = number(1) if base.kind == "constant" and base.name == "e" else call("ln", base)
        terms.append(product([power(base, exponent), logarithm, d_exponent]))
    return total(terms)


def _outer(tree: Node) -> Node:
    """Return the derivative of a function at its argument."""
    u = tree.parts[0]
    if tree.name == "root":  # u^(1/n) has the derivative root / (n u)
        return product([tree, inverse(number(tree.value)), inverse(u)])
    if tree.name not in _OUTER:
        raise UnreadError(f"the derivative of {tree.name} is not known here")
    return _OUTER[tree.name](u)


def _one_minus_square(u: Node) -> Node:
    return difference(number(1), power(u, number(2)))


_OUTER: dict[str, Callable[[Node], Node]] = {
    "ln": inverse,
    "abs": lambda u: product([u, inverse(call("abs", u))]),
    "sin": lambda u: call("cos", u),
    "cos": lambda u: negative(call("sin", u)),
    "tan": lambda u: power(call("sec", u), number(2)),
    "cot": lambda u: negative(power(call("csc", u), number(2))),
    "sec": lambda u: product([call("sec", u), call("tan", u)]),
    "csc": lambda u: negative(product([call("csc", u), call("cot", u)])),
    "sinh": lambda u: call("cosh", u),
    "cosh": lambda u: call("sinh", u),
    "tanh": lambda u: power(call("cosh", u), number(-2)),
    "arcsin": lambda u: inverse(root(_one_minus_square(u), Fraction(2))),
    "arccos": lambda u: negative(inverse(root(_one_minus_square(u), Fraction(2)))),
    "arctan": lambda u: inverse(total([number(1), power(u, number(2))])),
}
