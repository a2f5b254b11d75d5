"""Arithmetic: sums without end, for first runs and learning curves."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..verifiers import Math
from .accuracy import THINK, accuracy_rubric, thought
from .datasets.source import Generated, Split
from .seeding import below
from .task import Task
from .text_env import TextEnv

_DO = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
_SUMS = ("+", "-")  # done after products


class Arithmetic(TextEnv):
    r"""Work out ``a+b``, or a longer expression.

    Observation: such as ``17+25=``, or with four terms ``3*(41-7)+25=``. Action: the reply.
    Reward: 1.0 if its final number is right: the last ``\boxed{}``, or the last number.
    With ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        digits: numbers have at most this many.
        operators: drawn from these: ``+``, ``-``, ``*``.
        split: a problem is in ``train`` or in ``test``, never in both.
        seed: another seed puts other problems.
        terms: numbers in an expression. Of more than two, parentheses stand if they count.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ValueError: ``digits`` is not from 1 to 100, ``terms`` not from 2 to 30, an operator is
            unknown, or a product of all terms may have more than 2,000 digits.
    """

    def __init__(
        self,
        digits: int = 2,
        operators: str = "+",
        split: Split = "train",
        seed: int = 0,
        *,
        terms: int = 2,
        think: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if not 1 <= digits <= 100:
            raise ValueError(f"digits must be from 1 to 100, got {digits}")
        if not 2 <= terms <= 30:
            raise ValueError(f"terms must be from 2 to 30, got {terms}")
        if not operators or set(operators) - set(_DO):
            raise ValueError(f"operators must be some of '+-*', got {operators!r}")
        if "*" in operators and digits * terms > 2000:
            raise ValueError(f"digits * terms must be at most 2000, got {digits * terms}")

        make = partial(_task, digits=digits, operators=operators, terms=terms, think=think)
        name = f"Arithmetic-{digits}-{operators}" + (f"-{terms}" if terms > 2 else "")
        super().__init__(
            Generated(make, name=name, split=split, seed=seed),
            accuracy_rubric(Math(worked_out=True), think=think),
            render_mode=render_mode,
        )


def _task(
    rng: np.random.Generator, *, digits: int, operators: str, terms: int, think: bool
) -> Task:
    metadata: dict[str, int | str]
    if terms == 2:
        a, b = divmod(_below_power(rng, 2 * digits), 10**digits)
        sign = operators if len(operators) == 1 else operators[int(rng.integers(len(operators)))]
        question, answer = f"{a}{sign}{b}=", str(_DO[sign](a, b))
        metadata = {"digits": digits, "operator": sign}
    else:
        text, value, _ = _expression(rng, digits, operators, terms)
        question, answer = f"{text}=", str(value)
        metadata = {"digits": digits, "terms": terms}
    if not think:
        return Task(question, answer, metadata=metadata, solution=answer)
    solution = thought(f"{question}{answer}", answer)
    return Task(f"{question}\n\n{THINK}", answer, metadata=metadata, solution=solution)


def _expression(
    rng: np.random.Generator, digits: int, operators: str, terms: int
) -> tuple[str, int, str]:
    """Draw a random tree of operators: its text, value, and last operator, if any."""
    if terms == 1:
        number = _below_power(rng, digits)
        return str(number), number, ""
    left = 1 + below(rng, terms - 1)
    sign = operators[below(rng, len(operators))]
    a, a_value, a_sign = _expression(rng, digits, operators, left)
    b, b_value, b_sign = _expression(rng, digits, operators, terms - left)
    if sign == "*" and a_sign in _SUMS:
        a = f"({a})"
    if sign != "+" and b_sign in _SUMS:
        b = f"({b})"
    return f"{a}{sign}{b}", _DO[sign](a_value, b_value), sign


def _below_power(rng: np.random.Generator, digits: int) -> int:
    """Draw a number of at most N digits."""
    if digits <= _FEW:
        return below(rng, 10**digits)
    return int("".join(map(str, rng.integers(10, size=digits).tolist())))


_FEW = 9
"""Digits of which 53 random bits give every number as often as any other, to one part in 10^6."""
