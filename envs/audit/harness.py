"""Judge replies of an audit in worker processes that can be killed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...verifiers import Status, Verdict, Verifier
from ..task import Task
from .report import Failure
from .worker import CHUNK, HASH_SEEDS, Bounds, Overrun, Worker, freeze

_MOST_KILLED = 8
"""Workers killed, after which it is plain that replies do not end."""


class TooManyOverruns(RuntimeError):
    """Too many replies never ended, so that trying more would take hours."""


class InfrastructureError(RuntimeError):
    """An infrastructure failure, which says nothing about the reply."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A reply to try on a task.

    Attributes:
        task: whose reference it is judged against.
        what: what kind of reply it is, in a few words.
        reply: the reply.
    """

    task: Task
    what: str
    reply: str

    def failure(self, found: str) -> Failure:
        """Return this reply as one that broke a promise."""
        return Failure(self.task.id, self.what, self.reply, found)


class Harness:
    """Judges trials in a worker; a reply that never ends costs the worker, and another is started.

    Attributes:
        faults: trials that raised or were left without a score.
        overruns: trials that did not end, or took too much memory.
        tried: how many trials there were.

    Raises:
        NotCopyable: the verifier cannot be copied to another process.
    """

    def __init__(self, verifier: Verifier, bounds: Bounds) -> None:
        self.bounds = bounds
        self.faults: list[Failure] = []
        self.overruns: list[Failure] = []
        self.tried = 0
        self._frozen = freeze(verifier)
        self._worker: Worker | None = None
        self._control: Trial | None = None
        self._endless: set[tuple[str, str]] = set()
        self._killed = 0

    def judge(self, trials: Sequence[Trial], *, together: bool = True) -> list[Verdict | None]:
        """Return verdicts in order; ``None`` if one raised or never ended, which is recorded.

        Raises:
            InfrastructureError: a reply that had a score before has none now.
            TooManyOverruns: too many never ended.
        """
        self.tried += len(trials)
        size = CHUNK if together else 1
        found: list[Verdict | None] = [None] * len(trials)
        places = [i for i, t in enumerate(trials) if (t.task.id, t.reply) not in self._endless]
        for at in range(0, len(places), size):
            chunk = places[at : at + size]
            for place, verdict in zip(chunk, self._judged([trials[i] for i in chunk]), strict=True):
                found[place] = verdict
        return found

    def cost(self, trial: Trial) -> tuple[float, float] | None:
        """Return the CPU seconds and MiB that one reply takes; ``None`` if it does not end."""
        self.tried += 1
        answer = self._answer([trial])
        return (answer["cpu_s"], answer["mib"]) if self._recorded([trial], answer) else None

    def reference_faults(self, references: Sequence[Any]) -> list[str | None]:
        """Return what ``check_reference`` says of each."""
        bounds = Bounds(1e4, 1e4, 1e6)  # references are ours: slow is not wrong here
        return list(self._ready().ask(("check", list(references)), bounds)["faults"])

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """Judge in a new worker with another hash seed for a while."""
        kept, self._worker = self._worker, Worker(self._frozen, HASH_SEEDS[1])
        try:
            yield
        finally:
            self.close()
            self._worker = kept

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.close()

    def _ready(self) -> Worker:
        if self._worker is None or not self._worker.alive:
            self._worker = Worker(self._frozen, HASH_SEEDS[0])
        return self._worker

    def _answer(self, trials: Sequence[Trial]) -> dict[str, Any]:
        """Return ``verdicts``, ``cpu_s`` and ``mib``, or what was ``raised``, or an ``overrun``."""
        if self._killed >= _MOST_KILLED:
            raise TooManyOverruns("too many replies never end")
        request = ("judge", [t.reply for t in trials], [t.task.reference for t in trials])
        try:
            return self._ready().ask(request, self.bounds, len(trials))
        except Overrun as overrun:
            self._killed += 1
            return {"overrun": str(overrun)}

    def _judged(self, trials: Sequence[Trial]) -> list[Verdict | None]:
        answer = self._answer(trials)
        if "verdicts" not in answer and len(trials) > 1:
            return [self._judged([trial])[0] for trial in trials]
        return self._recorded(trials, answer) or [None]

    def _recorded(self, trials: Sequence[Trial], answer: dict[str, Any]) -> list[Verdict | None]:
        """Return the verdicts of an answer; record what a lone trial did instead."""
        verdicts = [Verdict.from_json(row) for row in answer.get("verdicts", ())]
        for trial, verdict in zip(trials, verdicts, strict=False):
            self._check_score(trial, verdict)
        if "overrun" in answer:
            self.overruns.append(trials[0].failure(answer["overrun"]))
            self._endless.add((trials[0].task.id, trials[0].reply))
        elif "raised" in answer:
            self.faults.append(trials[0].failure(f"raises {answer['raised']}"))
        return [*verdicts]

    def _check_score(self, trial: Trial, verdict: Verdict) -> None:
        """Record a missing score, unless a reply that had one has none now either."""
        if verdict.score is not None:
            self._control = self._control or trial
            return
        if self._scores(trial):
            return  # it was the machine's fault
        control = None if verdict.status is Status.BAD_GOLD else self._control
        if control is not None and not self._scores(control):
            raise InfrastructureError(verdict.reason)
        self.faults.append(
            trial.failure(f"is left without a score ({verdict.status}: {verdict.reason})")
        )

    def _scores(self, trial: Trial) -> bool:
        """Return whether a trial has a score if it is judged alone."""
        rows = self._answer([trial]).get("verdicts")
        return Verdict.from_json(rows[0]).score is not None if rows else False
