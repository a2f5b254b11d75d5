"""Integral: find an antiderivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...verifiers.puzzles import integral as rules
from ..puzzle_env import Puzzle, PuzzleEnv


class Integral(PuzzleEnv):
    """Find an antiderivative; every one is right, in any form.

    The levels: polynomials; sums of elementary functions; the chain rule backwards; products
    (integration by parts); products of three factors.

    Observation: the integrand. Action: the reply.
    Reward: 1.0 for any formula whose derivative is the integrand.
    End: after one step. Every task can be solved.
    """

    verifier = rules.Integral

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw an antiderivative, and ask for it by its derivative."""
        import sympy  # here: importing it takes longer than most sessions need

        x = sympy.Symbol("x")
        found = _LEVELS[level - 1](sympy, x, _Draw(rng))
        integrand, answer = (
            sympy.latex(f, ln_notation=True, inv_trig_style="full") for f in (found.diff(x), found)
        )
        return Puzzle(
            f"Find an antiderivative of $f(x) = {integrand}$. Put it in \\boxed{{}}.",
            {"integrand": integrand, "variable": "x"},
            rf"\boxed{{{answer} + C}}",
        )


class _Draw:
    """Small draws, by their use."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def whole(self, low: int, high: int) -> int:
        """Draw from ``low`` to ``high``, both within."""
        return int(self.rng.integers(low, high + 1))

    def factor(self) -> int:
        """Draw from -9 to 9, not 0."""
        return self.whole(1, 9) * (1 - 2 * self.whole(0, 1))

    def one_of(self, options: list[Any]) -> Any:
        """Draw one of some options."""
        return options[self.whole(0, len(options) - 1)]


def _polynomial(s: Any, x: Any, draw: _Draw, terms: int = 3, highest: int = 6) -> Any:
    powers = draw.rng.permutation(np.arange(1, highest + 1))[:terms]
    return sum((draw.factor() * x ** int(n) for n in powers), s.Integer(0))


def _elementary(s: Any, x: Any, draw: _Draw) -> Any:
    inner = draw.whole(2, 7) * x
    return draw.one_of([s.sin(inner), s.cos(inner), s.exp(inner), s.ln(x), s.atan(x), s.sqrt(x)])


def _sum(s: Any, x: Any, draw: _Draw) -> Any:
    parts = [draw.factor() * _elementary(s, x, draw) for _ in range(2)]
    return sum(parts, draw.factor() * x ** draw.whole(2, 5))


def _chain(s: Any, x: Any, draw: _Draw) -> Any:
    inner = draw.factor() * x ** draw.whole(2, 4) + draw.factor() * x + draw.factor()
    outer = draw.one_of([s.sin, s.cos, s.exp, s.atan, lambda u: s.ln(1 + u**2), lambda u: u**4])
    return draw.factor() * outer(inner)


def _parts(s: Any, x: Any, draw: _Draw) -> Any:
    return _polynomial(s, x, draw, terms=2, highest=4) * _elementary(s, x, draw)


def _three(s: Any, x: Any, draw: _Draw) -> Any:
    wave = draw.one_of([s.sin, s.cos])(draw.whole(1, 6) * x)
    return _polynomial(s, x, draw, terms=2, highest=3) * s.exp(draw.factor() * x) * wave


_LEVELS = (_polynomial, _sum, _chain, _parts, _three)
