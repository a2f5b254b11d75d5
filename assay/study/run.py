"""Run a study: every arm with every seed, each in a process of its own, as many as fit."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Self

from . import arm as trials
from .arm import Job
from .measured import Measured, read_measured
from .study import Trial

# Imported once, by the process that all others are forked from: it takes longer than many an arm.
PRELOADED = [trials.__name__, "assay.family.trainers"]


class ArmFailed(RuntimeError):
    """An arm's process ended with an error; what the others did is kept."""


def run_study(
    module: str,
    source: Path,
    arms: Mapping[str, int],
    out_dir: Path,
    *,
    seeds: Sequence[int],
    prepared: bool = False,
    short: bool = False,
    jobs: int | None = None,
    on_done: Callable[[Measured], None] | None = None,
) -> list[Measured]:
    """Run what has not been run yet, and gather all of it.

    Interrupted, it loses at most the arms that were running; started again, it runs those that are
    not in ``out_dir``, or that an earlier version of the study's file made.

    Args:
        module: the study's, to be imported by the arms' processes.
        source: the study's file.
        arms: names in the order of the results, each with its place in the study.
        out_dir: for ``runs/``, ``start/`` and ``work/``.
        seeds: of each arm.
        prepared: the arms of a seed share a start, which is to be made first.
        short: run a few seconds that show the mechanism.
        jobs: arms at once; by default one for each core. Each has one thread.
        on_done: called with each result, those of earlier runs first.

    Returns:
        All results, by arm and seed.

    Raises:
        ArmFailed: an arm's process ended with an error.
    """
    mark = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    kind = "short" if short else "full"
    starts = {seed: out_dir / "start" / f"{kind}-{seed}-{mark}" for seed in seeds}
    every = []
    for arm, place in arms.items():
        for seed, start in starts.items():
            work = out_dir / "work" / f"{kind}-{place}-{seed}-{mark}"
            file = out_dir / "runs" / f"{kind}-{place}-{seed}.json"
            every.append(Job(module, arm, Trial(seed, short, work, start), mark, file))
    found: dict[Job, Measured] = {}
    for job in every:
        known = _known(job)
        if known is not None:
            found[job] = known
            if on_done is not None:
                on_done(known)
    missing = [job for job in every if job not in found]
    wanted = {job.trial.seed for job in missing if prepared and not job.trial.start.exists()}
    first = [
        Job(module, None, Trial(seed, short, starts[seed], starts[seed]), mark)
        for seed in sorted(wanted)
    ]
    with _Pool(jobs or len(os.sched_getaffinity(0))) as pool:
        for _ in pool.run(first):
            pass
        for job in pool.run(missing):
            found[job] = done = read_measured(job.file)[0]
            if on_done is not None:
                on_done(done)
    return [found[job] for job in every]


def _known(job: Job) -> Measured | None:
    if not job.file.exists():
        return None
    done = read_measured(job.file)[0]
    wanted = job.arm, job.trial.seed, job.trial.short, job.source
    return done if (done.arm, done.seed, done.short, done.source) == wanted else None


class _Pool:
    """Runs jobs in processes of their own, and ends those that run when it is left early.

    One thread starts and awaits them all: ``Process.start`` of another thread polls every child,
    and of two threads that read how one ended, the second finds nothing and takes 255 for it.
    """

    def __init__(self, size: int) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._size = size
        self._running: dict[BaseProcess, tuple[Job, IO[bytes]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._running:
            child.terminate()
        for child, (_job, errors) in self._running.items():
            child.join()
            errors.close()

    def run(self, jobs: Sequence[Job]) -> Iterator[Job]:
        """Run jobs, and yield each when it is done."""
        waiting = iter(jobs)
        while True:
            for job in islice(waiting, self._size - len(self._running)):
                self._start(job)
            if not self._running:
                return
            ended = connection.wait([child.sentinel for child in self._running])
            for child in [child for child in self._running if child.sentinel in ended]:
                yield self._end(child)

    def _start(self, job: Job) -> None:
        errors = tempfile.NamedTemporaryFile(suffix=".txt")  # noqa: SIM115 - closed at its end
        child = self._context.Process(target=trials.run, args=(job, Path(errors.name)))
        child.start()
        self._running[child] = job, errors

    def _end(self, child: BaseProcess) -> Job:
        child.join()
        job, errors = self._running.pop(child)
        with errors:
            said = errors.read().decode(errors="replace").strip()[-2000:]
        if child.exitcode:
            what = "the start" if job.arm is None else f"arm {job.arm!r}"
            raise ArmFailed(
                f"{what} with seed {job.trial.seed} ended with code {child.exitcode}:\n{said}"
            )
        return job
