"""Run one trial in its own process: ``python -m assay.study.arm``."""

from __future__ import annotations

import argparse
import importlib
import resource
import shutil
import time
from pathlib import Path

from ..verifiers.atomic_io import write_directory
from .measured import Measured, write_measured
from .study import Study, Trial


def main() -> None:
    """Run an arm on one thread and write what it did; without an arm, prepare a seed's start."""
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("seed", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--arm")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--source", default="")
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    import torch

    torch.set_num_threads(1)  # more gain little on so small a model, and would change sums
    study: Study = importlib.import_module(asked.module).STUDY
    if asked.arm is None:
        prepare(study, asked.seed, asked.short, asked.start)
        return
    if not study.resumes:
        shutil.rmtree(asked.folder, ignore_errors=True)  # an interrupted trial may have left it
    asked.folder.mkdir(parents=True, exist_ok=True)
    trial = Trial(asked.seed, asked.short, asked.folder, asked.start)
    outcome = study.arms[asked.arm](trial)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cost = time.process_time(), peak
    done = Measured(asked.arm, asked.seed, asked.short, asked.source, *cost, outcome)
    write_measured(asked.file, [done])


def prepare(study: Study, seed: int, short: bool, start: Path) -> None:
    """Write atomically what all arms of a seed begin with."""
    if study.prepare is None:
        return
    make = study.prepare
    shutil.rmtree(start, ignore_errors=True)
    write_directory(start, lambda partial: make(Trial(seed, short, partial, partial)))


if __name__ == "__main__":
    main()
