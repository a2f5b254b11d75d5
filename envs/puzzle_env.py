"""Base of the environments of puzzles: levels, splits, and how an answer is asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..verifiers import Verifier
from .accuracy import THINK, accuracy_rubric, thought
from .datasets.source import Generated, Split
from .task import Task
from .text_env import TextEnv


class Puzzle(NamedTuple):
    """One problem.

    Attributes:
        text: what is asked, and the form of the answer.
        reference: what the verifier judges against.
        answer: a right answer; others may be right as well. If it is empty, the verifier finds one.
    """

    text: str
    reference: Any
    answer: str = ""


class PuzzleEnv(TextEnv):
    """Procedural tasks with levels. Derive from it, name a verifier and write :meth:`puzzle`.

    Observation: the problem. Action: the reply.
    Reward: 1.0 for any right answer. With ``think``, a sixth of it is paid for the format.
    End: after one step. Every task can be solved.

    Args:
        level: difficulty, from 1 to :attr:`levels`.
        split: a problem is in ``train`` or in ``test``, never in both.
        seed: another seed puts other problems.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
        render_mode: ``"ansi"`` or ``None``.

    Attributes:
        verifier: makes what judges.
        levels: how many there are.

    Raises:
        ValueError: there is no such level.
    """

    verifier: ClassVar[Callable[[], Verifier]]
    levels: ClassVar[int] = 5

    def __init__(
        self,
        level: int = 1,
        split: Split = "train",
        seed: int = 0,
        *,
        think: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if not 1 <= level <= self.levels:
            raise ValueError(f"level must be from 1 to {self.levels}, got {level}")
        make = partial(_task, kind=type(self), level=level, think=think)
        super().__init__(
            Generated(make, name=f"{type(self).__name__}-{level}", split=split, seed=seed),
            accuracy_rubric(type(self).verifier(), think=think),
            render_mode=render_mode,
        )

    @classmethod
    @abstractmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw one problem of a level; nothing but ``rng`` decides which."""


def _task(rng: np.random.Generator, /, kind: type[PuzzleEnv], *, level: int, think: bool) -> Task:
    text, reference, answer = kind.puzzle(rng, level)
    answer = answer or kind.verifier().oracle_reply(reference) or ""
    how = THINK if think else "Write only the answer."
    solution = thought("I work it out step by step.", answer) if think else answer
    return Task(f"{text}\n{how}", reference, "", {"level": level}, solution)
