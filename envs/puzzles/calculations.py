"""Calculations with one right value: fractions, remainders, bases, roots, systems of equations."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from ...verifiers import Math
from ..puzzle_env import Puzzle, PuzzleEnv

_NUMBER = partial(Math, worked_out=True)  # the calculation is the task


class FractionSum(PuzzleEnv):
    """Add and subtract fractions.

    Observation: the sum. Action: the reply. Reward: 1.0 for its value, reduced or not.
    End: after one step. Levels have 2 to 6 fractions with ever larger denominators.
    """

    verifier = _NUMBER

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw fractions that do not cancel to integers by themselves."""
        terms = [
            Fraction(int(rng.integers(1, 10 * level)), int(rng.integers(2, 6 * level + 4)))
            for _ in range(level + 1)
        ]
        signs = [1, *(1 - 2 * int(n) for n in rng.integers(0, 2, size=level))]
        text = "".join(
            f" {'+' if sign > 0 else '-'} {term.numerator}/{term.denominator}"
            for sign, term in zip(signs, terms, strict=True)
        )
        value = sum((sign * term for sign, term in zip(signs, terms, strict=True)), Fraction(0))
        return _boxed(f"Work out{text.replace(' +', '', 1)} as a fraction.", str(value))


class Remainder(PuzzleEnv):
    """Find the remainder of a power or a product.

    Observation: the division. Action: the reply. Reward: 1.0 for the remainder.
    End: after one step. Levels have ever larger numbers; from level 3 on they are powers.
    """

    verifier = _NUMBER

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a product at the lower levels, a power at the others."""
        divisor = int(rng.integers(3, 10 * level))
        a, b = (int(n) for n in rng.integers(2, 10 ** min(level, 3), size=2))
        if level < 3:
            return _boxed(f"What is the remainder of {a} * {b} by {divisor}?", str(a * b % divisor))
        exponent = int(rng.integers(2, 10 ** (level - 2)))
        value = pow(a, exponent, divisor)
        return _boxed(f"What is the remainder of {a}^{exponent} by {divisor}?", str(value))


class BaseConversion(PuzzleEnv):
    """Write a number in another base.

    Observation: the number and the base. Action: the reply. Reward: 1.0 for its digits.
    End: after one step. Levels have ever larger numbers, and from level 3 on neither base is ten.
    """

    verifier = _NUMBER

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw bases from 2 to 9, so that a digit is a digit."""
        value = int(rng.integers(10**level, 10 ** (level + 1)))
        source, target = (int(n) for n in rng.permutation(np.arange(2, 10))[:2])
        source = 10 if level < 3 else source
        written = np.base_repr(value, source)
        return _boxed(
            f"The number {written} is written in base {source}. Write it in base {target}, by its "
            "digits alone.",
            np.base_repr(value, target),
            reference=f"{np.base_repr(value, target)}_{{{target}}}",  # which a reply may leave out
        )


class PolynomialRoots(PuzzleEnv):
    """Find all roots of a polynomial.

    Observation: the polynomial. Action: the reply. Reward: 1.0 for all roots and no other.
    End: after one step. Levels: two whole roots, larger ones, fractions, three roots, four.
    """

    verifier = _NUMBER

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw different roots, and multiply them out to whole coefficients."""
        count, largest = (2, 2, 2, 3, 4)[level - 1], (5, 12, 9, 7, 7)[level - 1]
        roots: set[Fraction] = set()
        while len(roots) < count:
            below = int(rng.integers(1, 5)) if level == 3 else 1
            roots.add(Fraction(int(rng.integers(-largest, largest + 1)), below))
        coefficients = [1]
        for root in sorted(roots):
            shifted = [root.denominator * c for c in [*coefficients, 0]]
            lower = [0, *(root.numerator * c for c in coefficients)]
            coefficients = [a - b for a, b in zip(shifted, lower, strict=True)]
        return _boxed(
            f"Find all roots of {_polynomial(coefficients)}. Part them by commas.",
            ", ".join(map(str, sorted(roots))),
        )


class LinearSystem(PuzzleEnv):
    """Solve a system of linear equations.

    Observation: the equations. Action: the reply. Reward: 1.0 for the values in their order.
    End: after one step. Levels have 2, 2, 3, 3 and 4 unknowns with ever larger coefficients.
    """

    verifier = _NUMBER

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw whole solutions and a matrix that has an inverse."""
        size, largest = (2, 2, 3, 3, 4)[level - 1], (5, 12, 5, 12, 9)[level - 1]
        matrix = np.zeros((size, size), dtype=np.int64)
        while abs(np.linalg.det(matrix)) < 0.5:
            matrix = rng.integers(-largest, largest + 1, size=(size, size))
        values = rng.integers(-largest, largest + 1, size=size)
        names = "xyzw"[:size]
        answer = f"({', '.join(map(str, values.tolist()))})"
        equations = "\n".join(
            f"{_linear(row, names)} = {total}"
            for row, total in zip(matrix.tolist(), (matrix @ values).tolist(), strict=True)
        )
        return _boxed(
            f"Solve for {', '.join(names)}:\n{equations}\nGive the values as ({', '.join(names)}).",
            answer,
            reference=f"({', '.join(names)}) = {answer}",  # the names' order is not the alphabet's
        )


def _boxed(text: str, value: str, *, reference: str = "") -> Puzzle:
    prompt = f"{text} Put the answer in \\boxed{{}}."
    return Puzzle(prompt, reference or value, rf"\boxed{{{value}}}")


def _polynomial(coefficients: list[int]) -> str:
    """Return a polynomial with the highest power first."""
    degree = len(coefficients) - 1
    powers = ["", "x", *(f"x^{n}" for n in range(2, degree + 1))]
    terms = [(c, powers[degree - at]) for at, c in enumerate(coefficients)]
    return _signed(terms)


def _linear(row: list[int], names: str) -> str:
    return _signed(list(zip(row, names, strict=True)))


def _signed(terms: list[tuple[int, str]]) -> str:
    """Return ``2x - y + 3``: without terms of 0 and factors of 1."""
    written = ""
    for factor, name in terms:
        if factor:
            size = "" if abs(factor) == 1 and name else str(abs(factor))
            sign = "-" if factor < 0 else "+" if written else ""
            written += f" {sign} {size}{name}" if written else f"{sign}{size}{name}"
    return written or "0"
