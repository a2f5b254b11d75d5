"""Run one trial in a process of its own, which :mod:`.run` forks."""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from ..verifiers.atomic_io import write_directory
from .measured import Measured, write_measured
from .study import Study, Trial


@dataclass(frozen=True, slots=True)
class Job:
    """One trial of an arm, or without an arm the start that all arms of a seed share.

    Attributes:
        module: the study's.
        arm: its name.
        trial: its seed and folders; without an arm the start is what is written.
        source: hash of the study's file.
        file: where the result goes.
    """

    module: str
    arm: str | None
    trial: Trial
    source: str
    file: Path = Path()


def run(job: Job, errors: Path) -> None:
    """Run a job on one thread; what it prints is dropped, and its errors go to a file."""
    with errors.open("wb") as file, open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import torch

    torch.set_num_threads(1)  # more gain little on so small a model, and would change sums
    study: Study = importlib.import_module(job.module).STUDY
    trial = job.trial
    if job.arm is None:
        prepare(study, trial)
        return
    if not study.resumes:
        shutil.rmtree(trial.folder, ignore_errors=True)  # an interrupted trial may have left it
    trial.folder.mkdir(parents=True, exist_ok=True)
    before = time.process_time()
    outcome = study.arms[job.arm](trial)
    cost = (
        time.process_time() - before,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
    done = Measured(job.arm, trial.seed, trial.short, job.source, *cost, outcome)
    write_measured(job.file, [done])


def prepare(study: Study, trial: Trial) -> None:
    """Write atomically what all arms of a seed begin with."""
    if (make := study.prepare) is None:
        return
    shutil.rmtree(trial.start, ignore_errors=True)
    write_directory(trial.start, lambda to: make(replace(trial, folder=to, start=to)))
