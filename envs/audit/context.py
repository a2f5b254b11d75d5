"""The input and the output of an audit's checks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...verifiers import Code, Verdict, Verifier
from ..task import Task
from ..text_env import TextEnv
from .harness import Harness, Trial
from .near_misses import OPTIONS
from .replies import wrong_answer
from .report import Failure
from .subject import Sibling, judges_form, known_answer, parts

LongReplies = dict[str, list[tuple[int, Trial, tuple[float, float]]]]
"""By kind: size, reply, and the CPU seconds and MiB that it took."""


class NotChecked(Exception):
    """A check does not apply, or lacks what it needs. The message says which."""


@dataclass(frozen=True)
class Outcome:
    """The result of a check.

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
    """One promise, and how it is tried."""

    name: str
    promise: str
    remedy: str
    run: Callable[[Context], Outcome]


def check(remedy: str) -> Callable[[Callable[[Context], Outcome]], Check]:
    """Make a check of a function whose docstring begins with "Check that", then the promise."""

    def decorate(run: Callable[[Context], Outcome]) -> Check:
        promise = (run.__doc__ or run.__name__).partition(".")[0]
        return Check(run.__name__, promise.removeprefix("Check that "), remedy, run)

    return decorate


@dataclass
class Context:
    """Share state between the checks of an audit; its options are those of :func:`audit`.

    Attributes:
        harness: judges with a copy of ``rubric``.
        indexed: the tasks of the sample whose reference can be used, by index in the source.
        sample: all of it.
        env: the environment of the tasks, ``None`` for a verifier.
        other: the other split's prompts, if the caller gave them.
        growth_s: CPU seconds that a reply of a megabyte may take.
        growth_mib: by how much memory may grow for a reply of a megabyte.
        long_replies: cost of long replies, measured once for two checks.
    """

    name: str
    rubric: Verifier
    harness: Harness
    indexed: Mapping[int, Task]
    sample: Sequence[Task]
    env: TextEnv | None = None
    sibling: Sibling | None = None
    other: Sequence[str] | None = None
    seed: int = 0
    floor: float = 0.0
    tolerance: float = 0.0
    growth_s: float = 5.0
    growth_mib: float = 128.0
    prompts: int = 1000
    longest: int = 1 << 20
    long_replies: LongReplies = field(default_factory=dict)

    @cached_property
    def tasks(self) -> list[Task]:
        """The sample, less the tasks whose reference cannot be used."""
        return [*self.indexed.values()]

    @cached_property
    def parts(self) -> list[Verifier]:
        """The rubric and all that it is made of."""
        return parts(self.rubric)

    @property
    def code(self) -> Code | None:
        """The part that runs programs, if there is one."""
        return next((part for part in self.parts if isinstance(part, Code)), None)

    @property
    def judges_form(self) -> bool:
        """Whether only the form of a reply counts."""
        return judges_form(self.rubric)

    @property
    def many_answers(self) -> bool:
        """Whether an answer to one task may be right for another."""
        return any(part.many_answers for part in self.parts)

    @property
    def full(self) -> float:
        """The highest score: full marks."""
        return self.rubric.score_range[1]

    @property
    def limit(self) -> float:
        """The most that a wrong reply may earn: the floor or the lowest score, if higher."""
        return max(self.floor, self.rubric.score_range[0])

    def rng(self, name: str) -> random.Random:
        """Return a generator that no other check draws from."""
        return random.Random(f"{self.seed} {name}")  # noqa: S311  # test inputs, not secrets

    def known_winners(self, task: Task) -> list[str]:
        """Return what should earn full marks: the task's solution, and the verifier's own."""
        own = self.rubric.oracle_reply(task.reference)
        return list(dict.fromkeys(r for r in (task.solution, own) if r is not None))

    @cached_property
    def winners(self) -> dict[str, str]:
        """An oracle reply by the id of its task."""
        trials = [
            Trial(task, "a known answer", reply)
            for task in self.tasks
            for reply in self.known_winners(task)
        ]
        found: dict[str, str] = {}
        for trial, verdict in zip(trials, self.harness.judge(trials), strict=True):
            if verdict is not None and verdict.score == self.full:
                found.setdefault(trial.task.id, trial.reply)
        return found

    @cached_property
    def won(self) -> list[tuple[Task, str]]:
        """The tasks of the sample with an oracle reply.

        Raises:
            NotChecked: there is none.
        """
        pairs = [(t, self.winners[t.id]) for t in self.tasks if t.id in self.winners]
        if not pairs:
            raise NotChecked("no reply is known to win")
        return pairs

    @cached_property
    def answers(self) -> list[str]:
        """All known answers that are single values."""
        found = map(known_answer, self.tasks)
        return list(dict.fromkeys(answer for answer in found if answer is not None))

    def wrong(self, answer: str) -> str:
        """Return another answer than a single value."""
        return wrong_answer(answer, self.answers)

    def answer(self, task: Task) -> str | None:
        """Return the known answer if it is a single value, or an option of a choice."""
        fields = task.reference if isinstance(task.reference, dict) else {}
        option = fields.get("answer")
        return known_answer(task) or (option if option in OPTIONS else None)

    def need_an_answer(self) -> None:
        """Refuse if replies are judged by themselves.

        Raises:
            NotChecked: no task has a known answer, or it does not matter what a reply says.
        """
        if self.judges_form:
            raise NotChecked("replies are judged for their form: an answer with a way out has it")
        if all(task.reference is None for task in self.tasks):
            raise NotChecked("there is no known answer: replies are judged by themselves")

    def earn_nothing(self, trials: Iterable[Trial], *, floor: float | None = None) -> Outcome:
        """Hold trials to the floor."""
        limit = self.limit if floor is None else floor
        tried = list(trials)
        failures = [
            earned(trial, verdict)
            for trial, verdict in zip(tried, self.harness.judge(tried), strict=True)
            if verdict is not None and verdict.score is not None and verdict.score > limit
        ]
        return Outcome(len(tried), failures)


def earned(trial: Trial, verdict: Verdict) -> Failure:
    """Return a trial as one that fails by what it earns."""
    return trial.failure(f"earns {verdict.score:g} ({verdict.status}: {verdict.reason})")


def describe(verdict: Verdict) -> str:
    """Return a verdict on one line."""
    score = "no score" if verdict.score is None else f"{verdict.score:g}"
    return f"{verdict.status}, {score}, {verdict.reason!r:.80}"
