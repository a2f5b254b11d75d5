"""What every check of an audit is given, and what it gives back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...verifiers import Verdict
from ..task import Task
from .harness import Bench, Trial
from .near_misses import OPTIONS
from .replies import wrong_answer
from .report import Failure
from .subject import Subject, known_answer

LongReplies = dict[str, list[tuple[int, Trial, tuple[float, float]]]]
"""By kind: size, reply, and the CPU seconds and MiB that it took."""


class NotChecked(Exception):
    """A check does not apply, or lacks what it needs; says which."""


@dataclass(frozen=True)
class Tried:
    """What came of a check.

    Attributes:
        cases: how many were tried.
        failures: those that broke the promise.
        note: what else is worth knowing.
        measured: seconds and MiB.
    """

    cases: int
    failures: Sequence[Failure] = ()
    note: str = ""
    measured: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """One promise, and how it is tried.

    Attributes:
        name: short.
        promise: a plain sentence.
        remedy: what to do where it is broken.
        run: tries it.
    """

    name: str
    promise: str
    remedy: str
    run: Callable[[Panel], Tried]


@dataclass
class Panel:
    """What the checks of one audit share.

    Attributes:
        subject: what is audited, less the tasks whose reference cannot be used.
        bench: judges.
        whole: what is audited, with those.
        seed: of everything drawn.
        floor: the most that a reply without the answer may earn.
        tolerance: the relative error of a number that is right by design.
        growth_mib: by how much memory may grow for a reply of a megabyte.
        growth_s: CPU seconds that a reply of a megabyte may take.
        longest: characters of the longest reply.
        measure: takes the measures of long replies.
        other: the other split's prompts, where the caller gave them.
        prompts: how many prompts of a generator are compared.
    """

    subject: Subject
    bench: Bench
    whole: Subject
    seed: int = 0
    floor: float = 0.0
    tolerance: float = 0.0
    growth_s: float = 5.0
    growth_mib: float = 128.0
    other: Sequence[str] | None = None
    prompts: int = 1000
    longest: int = 1 << 20
    measure: Callable[[Panel], LongReplies] | None = None

    @cached_property
    def long_replies(self) -> LongReplies:
        """Replies of each kind in growing sizes, with what each took; measured once."""
        assert self.measure is not None  # noqa: S101  # audit gives it
        return self.measure(self)

    def rng(self, name: str) -> random.Random:
        """Draws that no other check disturbs."""
        return random.Random(f"{self.seed} {name}")  # noqa: S311  # test inputs, not secrets

    @property
    def full(self) -> float:
        """The highest score: full marks."""
        return self.subject.rubric.score_range[1]

    @property
    def limit(self) -> float:
        """The most that a wrong reply may earn: the floor or the lowest score, if higher."""
        return max(self.floor, self.subject.rubric.score_range[0])

    @cached_property
    def winners(self) -> dict[str, str]:
        """For each task whose winning reply is known and wins: that reply."""
        trials = [
            Trial(task, reply, "a known answer")
            for task in self.subject.tasks
            for reply in self.subject.winners(task)
        ]
        found: dict[str, str] = {}
        for trial, verdict in zip(trials, self.bench.judge(trials), strict=True):
            if verdict is not None and verdict.score == self.full:
                found.setdefault(trial.task.id, trial.reply)
        return found

    @cached_property
    def won(self) -> list[tuple[Task, str]]:
        """The tasks of the sample with a winning reply.

        Raises:
            NotChecked: there is none.
        """
        pairs = [(t, self.winners[t.id]) for t in self.subject.tasks if t.id in self.winners]
        if not pairs:
            raise NotChecked("no reply is known to win")
        return pairs

    @cached_property
    def answers(self) -> list[str]:
        """All known answers that are single values."""
        found = (known_answer(task) for task in self.subject.tasks)
        return list(dict.fromkeys(a for a in found if a is not None))

    def wrong(self, answer: str) -> str:
        """Another answer than a single value."""
        return wrong_answer(answer, self.answers)

    def answer(self, task: Task) -> str | None:
        """The known answer if it is a single value, or an option of a choice."""
        fields = task.reference if isinstance(task.reference, dict) else {}
        option = fields.get("answer")
        return known_answer(task) or (option if option in OPTIONS else None)

    def need_an_answer(self) -> None:
        """Refuse where replies are judged by themselves.

        Raises:
            NotChecked: no task has a known answer, or it does not matter what a reply says.
        """
        if self.subject.judges_form:
            raise NotChecked("replies are judged for their form: an answer with a way out has it")
        if all(task.reference is None for task in self.subject.tasks):
            raise NotChecked("there is no known answer: replies are judged by themselves")

    def earn_nothing(self, trials: Iterable[Trial], *, floor: float | None = None) -> Tried:
        """Hold trials to the floor."""
        limit = self.limit if floor is None else floor
        tried = list(trials)
        failures = [
            trial.failure(f"earns {verdict.score:g} ({verdict.status}: {verdict.reason})")
            for trial, verdict in zip(tried, self.bench.judge(tried), strict=True)
            if verdict is not None and verdict.score is not None and verdict.score > limit
        ]
        return Tried(len(tried), failures)


def says(verdict: Verdict) -> str:
    """A verdict on one line."""
    score = "no score" if verdict.score is None else f"{verdict.score:g}"
    return f"{verdict.status}, {score}, {verdict.reason!r:.80}"
