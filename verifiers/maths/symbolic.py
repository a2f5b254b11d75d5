r"""The worker's side of the symbolic comparison: runs in a process of its own, never imported.

:mod:`~assay.verifiers.maths.worker_guest` hands it the questions:

    {"op": "check", "gold": str}                                 can the gold be read?
    {"op": "same", "gold": str, "answer": str, "digits": int | null}

A finding is ``same``, ``different``, ``bad_gold``, ``unparseable`` or ``memory``.

It must not import the rest of the package: it is to start quickly and know nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

_MOST_DIGITS = 3000
_CLOSE = 10**-50
"""Constants nearer to each other than this, relative to their size, are the same number."""


class Symbolic:
    """math-verify, asked about LaTeX only, its own alarms off."""

    def __init__(self) -> None:
        import logging

        logging.disable(logging.CRITICAL)
        import math_verify
        import sympy

        self.sympy, self.math_verify = sympy, math_verify
        plain = replace(
            math_verify.LatexExtractionConfig().normalization_config, units=False
        )  # it takes the t of 6t for tons
        self.config = [
            math_verify.LatexExtractionConfig(boxed_match_priority=0, normalization_config=plain)
        ]
        self.golds: dict[str, Any] = {}
        # what is imported and cached at the first use is no question's expense
        self.same("x^2+2x+1", "(x+1)^2", None)
        self.same(r"\frac{\sqrt{8}}{2}", r"\sqrt{2}", None)

    def parse(self, text: str) -> Any:
        """Parse a bare piece of LaTeX, or return ``None``."""
        found = self.math_verify.parse(
            "$\\boxed{" + text + "}$",
            extraction_config=self.config,
            fallback_mode="no_fallback",
            parsing_timeout=None,
        )
        return found[0] if found and not isinstance(found[0], str) else None

    def gold(self, text: str) -> Any:
        """Return :meth:`parse`, cached, because a reference is compared many times."""
        if text not in self.golds:
            if len(self.golds) >= 512:
                self.golds.pop(next(iter(self.golds)))
            self.golds[text] = self.parse(text)
        return self.golds[text]

    def check(self, gold: str) -> tuple[str, str]:
        """Return whether the reference can be parsed and equals itself."""
        expression = self.gold(gold)
        if expression is None:
            return "bad_gold", "it cannot be read as LaTeX"
        if not self.equal(expression, self.parse(gold)):
            return "bad_gold", "it does not equal itself once read"
        return "same", ""

    def same(self, gold: str, answer: str, digits: int | None) -> tuple[str, str]:
        """Return whether the reference equals the answer."""
        expected, given = self.gold(gold), self.parse(answer)
        if expected is None:
            return "bad_gold", "it cannot be read as LaTeX"
        if given is None:
            return "unparseable", "the answer cannot be read as LaTeX"
        constant = self.constants(expected, given, digits)
        if constant is not None:
            return ("same" if constant else "different"), "compared to 60 digits"
        return ("same" if self.equal(expected, given) else "different"), "compared symbolically"

    def equal(self, gold: Any, answer: Any) -> bool:
        """Return whether math-verify accepts the answer."""
        return bool(self.math_verify.verify(gold, answer, timeout_seconds=None))

    def constants(self, gold: Any, answer: Any, digits: int | None) -> bool | None:
        """Compare two constants by value; ``None`` if one of them is not a constant.

        math-verify takes any two constants for equal that differ by less than about 1e-15;
        here the difference counts in proportion to their size.
        """
        sympy = self.sympy
        for side in (gold, answer):
            if not isinstance(side, sympy.Expr) or {s.name for s in side.free_symbols} - {"i"}:
                return None
        try:
            exact = [
                sympy.nsimplify(side.subs(dict.fromkeys(side.free_symbols, sympy.I)), rational=True)
                for side in (gold, answer)
            ]
            digits = 60 + 2 * sum(self.hidden_digits(side) for side in exact)
            if digits > _MOST_DIGITS:
                return False
            left, right = (sympy.N(side.doit(), digits) for side in exact)
            size, distance = max(abs(left), abs(right)), abs(left - right)
            if not (size.is_finite and distance.is_finite):
                return None
            if size < _CLOSE:  # evaluated to noise around zero: only algebra can decide
                return bool(sympy.simplify(exact[0] - exact[1]) == 0)
            if digits is not None and not exact[0].is_rational:
                return bool(distance <= sympy.Rational(1, 2 * 10**digits))
            return bool(distance <= size * sympy.Rational(1, 10 ** (digits - 10)))
        except (TypeError, ValueError, ArithmeticError, AttributeError):
            return None

    def hidden_digits(self, side: Any) -> int:
        """Count the digits in which its small powers and long numbers could hide a difference."""
        sympy = self.sympy
        long = [max(abs(n.p), n.q) for n in side.atoms(sympy.Rational)]
        small = [abs(sympy.N(power, 15)) for power in side.atoms(sympy.Pow, sympy.exp)]
        found = sum(len(str(n)) for n in long if n > 10**12)
        return found + sum(abs(int(sympy.log(p, 10))) for p in small if p.is_positive)


def start(setup: dict[str, Any]) -> Callable[[dict[str, Any]], tuple[str, str]]:
    """Import what the parent could, and return what answers."""
    sys.path[:] = setup["path"]
    return partial(answer_to, Symbolic())


def answer_to(symbolic: Symbolic, question: dict[str, Any]) -> tuple[str, str]:
    """Answer one question, whatever goes wrong."""
    try:
        if question["op"] == "check":
            return symbolic.check(question["gold"])
        return symbolic.same(question["gold"], question["answer"], question["digits"])
    except MemoryError:
        return "memory", "out of memory"
    except Exception as error:  # sympy may raise anything at all on hostile input
        return "unparseable", f"{type(error).__name__} while comparing"
