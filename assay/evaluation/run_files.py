"""A run's directory: whole lines, on disk in batches, and cut back to whole batches after a kill.

``run.json``     what was evaluated (:class:`~assay.evaluation.plan.Plan`)
``groups.jsonl`` an :class:`~assay.envs.EpisodeGroup` a line, in the order of the tasks; no times,
                 so that a resumed run equals one left alone
``costs.jsonl``  for each group: seconds and tokens
``summary.json`` made from the groups
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any, Self

from ..envs import DataError, EpisodeGroup
from ..verifiers.atomic_io import write_settings
from .plan import Plan

PLAN, GROUPS, COSTS, SUMMARY = "run.json", "groups.jsonl", "costs.jsonl", "summary.json"


def is_run(path: Path) -> bool:
    """Return whether a directory contains an evaluation."""
    return (path / PLAN).is_file() and (path / GROUPS).is_file()


def read_plan(directory: Path) -> Plan:
    """Read the plan of a run.

    Raises:
        DataError: it is no directory of a run.
    """
    path = directory / PLAN
    if not path.is_file() or (directory / "metrics.jsonl").is_file():
        raise _no_run(directory)
    try:
        return Plan.from_json(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def _no_run(directory: Path) -> DataError:
    if not directory.is_dir():
        return DataError(f"there is no directory {directory}: give one that `assay eval` wrote")
    if (directory / "metrics.jsonl").is_file():
        return DataError(
            f"{directory} is a training run, and no evaluation: `assay report {directory}` and "
            f"`assay view {directory}` show it, and `assay eval` evaluates its model"
        )
    return DataError(f"{directory} holds no {PLAN}: give a directory that `assay eval` wrote")


def read_groups(directory: Path) -> Iterator[EpisodeGroup]:
    """Yield the groups of a run in task order, without a truncated last line.

    Raises:
        DataError: a line is no group.
    """
    for number, line in enumerate(_whole_lines(directory / GROUPS)):
        yield group_of(line, f"{directory / GROUPS}, line {number + 1}")


def group_of(line: bytes, place: str) -> EpisodeGroup:
    """Parse the group in a line.

    Raises:
        DataError: it is none.
    """
    try:
        return EpisodeGroup.from_json(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{place} is no group ({type(error).__name__}: {error}). Run the evaluation again"
        ) from error


def read_costs(directory: Path) -> list[dict[str, Any]]:
    """Read seconds and tokens by group, at most one for each group; unknown ones are omitted."""
    path = directory / COSTS
    try:
        return [json.loads(line) for line in _whole_lines(path)] if path.is_file() else []
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}): remove it, groups do not need it") from error


def _whole_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


def group_line(group: EpisodeGroup) -> str:
    """Format a group as a line, without tokens and seconds."""
    kept = [replace(e, verdict=replace(e.verdict, seconds=0.0), spans=()) for e in group.episodes]
    return json.dumps(EpisodeGroup(group.task, tuple(kept)).to_json()) + "\n"


class RunWriter:
    """Add batches of groups to a run; a context manager that locks the run.

    Args:
        directory: of the run; made if it is not there.
        plan: what is evaluated.
        resume: continue if groups exist.

    Attributes:
        done: groups that are there.

    Raises:
        DataError: the directory holds a run and ``resume`` is false, holds one of another plan,
            or another process writes to it.
    """

    def __init__(self, directory: Path, plan: Plan, *, resume: bool) -> None:
        self.directory, self.plan = directory, plan
        self._open = ExitStack()
        if directory.exists() and not directory.is_dir():
            raise DataError(f"{directory} is no directory: give another --out")
        with self._open as opened:
            directory.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what a full disk refused is not written again when the file is closed.
            self._groups = opened.enter_context((directory / GROUPS).open("a+b", buffering=0))
            self._lock()
            # A run that ended before its first group may start again: nothing is lost.
            begun = resume or (directory / GROUPS).stat().st_size > 0
            there = (directory / PLAN).exists() and begun
            if there:
                self._refuse_another(read_plan(directory), resume)
            elif (directory / GROUPS).stat().st_size:
                raise DataError(f"{directory} has {GROUPS} and no {PLAN}: give another --out")
            self._costs = opened.enter_context((directory / COSTS).open("a+b", buffering=0))
            if not there:
                write_settings(directory / PLAN, plan.to_json())
            self.done = self._cut_back()
            self._open = opened.pop_all()

    def _lock(self) -> None:
        """Keep others out until the file is closed, or this process ends."""
        try:
            fcntl.flock(self._groups, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(
                f"another process writes to {self.directory}: wait until it ends"
            ) from error

    def _refuse_another(self, known: Plan, resume: bool) -> None:
        if not resume:
            raise DataError(
                f"{self.directory} holds a run: give another --out, or --resume to complete it"
            )
        differing = known.differences(self.plan)
        if differing:
            raise DataError(
                f"{self.directory} holds another run, so it cannot be resumed (there against "
                "here):\n  " + "\n  ".join(differing) + "\nGive another --out"
            )

    def add(self, groups: Sequence[EpisodeGroup], costs: Sequence[Mapping[str, Any]]) -> None:
        """Add a batch; when this returns, it is on disk."""
        _append(self._costs, "".join(json.dumps(cost) + "\n" for cost in costs))
        _append(self._groups, "".join(map(group_line, groups)))
        self.done += len(groups)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def _cut_back(self) -> int:
        """Forget what a kill left of a batch: what is kept is what a batch's seeds begin after.

        Costs are written first, so there are as many, unless somebody took them away: that is no
        reason to forget groups.
        """
        kept = _lines(self._groups)
        if kept < self.plan.data["tasks"]:
            kept -= kept % self.plan.batch
        for file in (self._groups, self._costs):
            file.truncate(_end_of(file, kept))
            os.fsync(file.fileno())
        return kept


def _append(file: FileIO, text: str) -> None:
    """Append lines atomically: all, or none if the disk is full."""
    left, end = memoryview(text.encode()), file.seek(0, os.SEEK_END)
    try:
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(end)
        raise


def _lines(file: FileIO) -> int:
    with Path(str(file.name)).open("rb") as lines:
        return sum(line.endswith(b"\n") for line in lines)


def _end_of(file: FileIO, lines: int) -> int:
    """Return the offset in bytes at which the first N lines end."""
    with Path(str(file.name)).open("rb") as known:
        return sum(map(len, islice(known, lines)))
