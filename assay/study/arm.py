"""Run one trial in a process of its own, which :mod:`.run` forks."""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from ..verifiers.atomic_io import write_directory
from .measured import Measured, write_measured
from .study import Study, Trial


@dataclass(frozen=True, slots=True)
class Job:
    """One arm with one seed, or with no arm the start that all arms of a seed share.

    Attributes:
        module: the study's.
        arm: its name.
        seed: decides everything.
        file: where the result goes.
        folder: the trial's own.
        start: what the study's ``prepare`` wrote, or is to write.
        source: hash of the study's file.
        short: whether to take a few seconds only.
    """

    module: str
    arm: str | None
    seed: int
    file: Path
    folder: Path
    start: Path
    source: str
    short: bool


def run(job: Job, errors: Path) -> None:
    """Run a job on one thread; what it prints is dropped, and its errors go to a file."""
    with errors.open("wb") as file, open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import torch

    torch.set_num_threads(1)  # more gain little on so small a model, and would change sums
    study: Study = importlib.import_module(job.module).STUDY
    if job.arm is None:
        prepare(study, job)
        return
    if not study.resumes:
        shutil.rmtree(job.folder, ignore_errors=True)  # an interrupted trial may have left it
    job.folder.mkdir(parents=True, exist_ok=True)
    before = time.process_time()
    outcome = study.arms[job.arm](Trial(job.seed, job.short, job.folder, job.start))
    cost = (
        time.process_time() - before,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
    done = Measured(job.arm, job.seed, job.short, job.source, *cost, outcome)
    write_measured(job.file, [done])


def prepare(study: Study, job: Job) -> None:
    """Write atomically what all arms of a seed begin with."""
    if study.prepare is None:
        return
    make = study.prepare
    shutil.rmtree(job.start, ignore_errors=True)
    write_directory(job.start, lambda partial: make(Trial(job.seed, job.short, partial, partial)))
