"""Countdown: reach a target from a few numbers with + - * / and brackets."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...verifiers.puzzles import countdown as rules
from ..accuracy import THINK, accuracy_rubric, thought
from ..datasets.source import Generated, Split
from ..task import Task
from ..text_env import TextEnv


class Countdown(TextEnv):
    """Find an expression that uses every number once and equals the target.

    Observation: the numbers and the target. Action: the reply.
    Reward: 1.0 for any expression that does it, not only the one the task was made from.
    End: after one step. Every task can be solved.

    Args:
        numbers: how many numbers there are.
        largest: numbers are drawn from 1 to this.
        split: a problem is in ``train`` or in ``test``, never in both.
        seed: another seed puts other problems.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ValueError: ``numbers`` is not from 2 to 8, or ``largest`` not from 2 to 999,999,999.
    """

    def __init__(
        self,
        numbers: int = 3,
        largest: int = 20,
        split: Split = "train",
        seed: int = 0,
        *,
        think: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if not 2 <= numbers <= 8:
            raise ValueError(f"numbers must be from 2 to 8, got {numbers}")
        if not 2 <= largest < 10**9:
            raise ValueError(f"largest must be from 2 to 999,999,999, got {largest}")

        make = partial(_task, numbers=numbers, largest=largest, think=think)
        super().__init__(
            Generated(make, name=f"Countdown-{numbers}-{largest}", split=split, seed=seed),
            accuracy_rubric(rules.Countdown(), think=think),
            render_mode=render_mode,
        )


def _task(rng: np.random.Generator, *, numbers: int, largest: int, think: bool) -> Task:
    drawn = [int(n) for n in rng.integers(1, largest + 1, size=numbers)]
    target, expression = _combine(drawn, rng)
    how = THINK if think else "Write only the expression."
    return Task(
        prompt=f"Use each of {', '.join(map(str, drawn))} exactly once with + - * / and "
        f"brackets to make {target}. {how}",
        reference={"numbers": drawn, "target": target},
        metadata={"numbers": numbers},
        solution=thought(f"{expression}={target}", expression) if think else expression,
    )


def _combine(drawn: list[int], rng: np.random.Generator) -> tuple[int, str]:
    """Join the numbers two by two at random; the result stays a positive integer."""
    parts = [(n, str(n)) for n in drawn]
    while len(parts) > 1:
        (b, right), (a, left) = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        (a, left), (b, right) = sorted([(a, left), (b, right)], reverse=True)
        signs = ["+"] + ["-"] * (a > b) + ["*"] * (a * b <= 1000) + ["/"] * (a % b == 0)
        sign = signs[int(rng.integers(len(signs)))]
        value = {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[sign]
        parts.append((value, f"({left}{sign}{right})"))
    value, expression = parts[0]
    return value, expression[1:-1]
