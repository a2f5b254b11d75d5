"""Data for the page: the run, a summary of all groups, and one group in full."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from ...envs import DataError, Episode, EpisodeGroup
from ...verifiers import Verifier
from ..plan import Plan
from ..run_files import GROUPS, SUMMARY, group_of, is_run, read_costs, read_groups, read_plan
from ..summary import Tally, costs_of
from ..vote import many_answers

_SHORT = 160
SAMPLES = "samples.jsonl"


def open_pages(run: Path, other: Path | None = None) -> Pages:
    """Open a run of ``assay eval``, or the samples of a training run.

    Args:
        run: its directory.
        other: a second evaluation, whose verdicts stand beside the first one's.

    Raises:
        DataError: there is nothing to browse.
    """
    for path in (run, *([] if other is None else [other])):
        if not path.is_dir():
            raise DataError(f"there is no directory {path}: give that of a run")
    if is_run(run) and (other is None or is_run(other)):
        return EvaluationPages(run, other)
    if (run / SAMPLES).is_file() and other is None:
        return SamplePages(run)
    if other is not None:
        raise DataError(
            f"{other if is_run(run) else run} is no evaluation, and only two evaluations are shown "
            f"side by side: give the directories of `assay eval` or `assay rescore`, or {run} alone"
        )
    raise DataError(
        f"{run} holds no replies: give the directory of `assay eval`, of `assay rescore`, or of a "
        f"training run with its {SAMPLES}"
    )


class EvaluationPages:
    """An evaluation, also one that is still going on. Groups are read from disk when asked for."""

    def __init__(self, directory: Path, other: Path | None = None) -> None:
        self.directory, self.plan = directory, read_plan(directory)
        self.other = other
        self._starts: list[int] = []
        self._read = 0
        self._rows: list[dict[str, Any]] = []
        self._lock = Lock()
        self._others = {} if other is None else {g.task.id: g for g in read_groups(other)}
        self._scan()

    def run(self) -> dict[str, Any]:
        """Name, plan, summary and costs."""
        return {
            "name": self.directory.resolve().name,
            "kind": "evaluation",
            "other": None if self.other is None else self.other.resolve().name,
            "plan": self.plan.to_json(),
            "summary": self._summary(),
            "costs": costs_of(read_costs(self.directory)),
            "done": len(self._rows),
        }

    def _summary(self) -> dict[str, Any]:
        """Return the summary of a finished run, or one of the groups so far."""
        kept = self.directory / SUMMARY
        if len(self._rows) == self.plan.data["tasks"] and kept.is_file():
            with suppress(ValueError):
                found = json.loads(kept.read_text(encoding="utf-8"))
                if isinstance(found, dict):
                    return found
        tally = Tally(many_answers=_many_answers(self.plan))
        for group in read_groups(self.directory):
            tally.add(group)
        return tally.summary(seed=self.plan.seed)

    def index(self) -> dict[str, Any]:
        """Return a summary of every group."""
        self._scan()
        return {"groups": self._rows}

    def group(self, place: int) -> dict[str, Any]:
        """Return one group in full."""
        with (self.directory / GROUPS).open("rb") as file:
            file.seek(self._starts[place])
            group = group_of(file.readline(), f"{self.directory / GROUPS}, line {place + 1}")
        return _whole(group, self._others.get(group.task.id))

    def _scan(self) -> None:
        """Read new lines; all of them if ``--resume`` has removed some that were read."""
        with self._lock, (self.directory / GROUPS).open("rb") as file:
            if file.seek(0, os.SEEK_END) < self._read:
                self._starts, self._rows, self._read = [], [], 0
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                group = group_of(line, f"{self.directory / GROUPS}, line {len(self._rows) + 1}")
                self._starts.append(self._read)
                whole = _whole(group, self._others.get(group.task.id))
                self._rows.append(_short(whole, len(line)))
                self._read += len(line)


class SamplePages:
    """The groups that a training run kept to be read, newest step last."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._groups: list[dict[str, Any]] = []
        with (directory / SAMPLES).open("rb") as file:
            lines = [line for line in file if line.endswith(b"\n")]
        for number, line in enumerate(lines):
            try:
                row = json.loads(line)
                self._groups += [_sample(row["step"], group) for group in row["groups"]]
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(
                    f"{directory / SAMPLES}, line {number + 1} holds no samples "
                    f"({type(error).__name__}: {error})"
                ) from error

    def run(self) -> dict[str, Any]:
        """Return the run's name and which of its replies these are."""
        return {
            "name": self.directory.resolve().name,
            "kind": "training",
            "other": None,
            "done": len(self._groups),
            "about": self._about(),
        }

    def _about(self) -> str:
        """Return which replies were kept; those of other steps and groups are on no disk."""
        data = [group["metadata"] for group in self._groups]
        steps = sorted({group["step"] for group in data})
        if not steps:
            return "Samples of a training run: none so far."
        replies = sum(len(group["replies"]) for group in self._groups)
        kinds = ", ".join(dict.fromkeys(str(group["kept as"]) for group in data))
        many = f"{len(steps):,} steps from {steps[0]} to {steps[-1]}"
        span = many if len(steps) > 1 else f"step {steps[0]}"
        return (
            f"Samples of a training run, not all of its groups: {len(data):,} groups, with "
            f"{replies:,} of their {sum(group['replies in all'] for group in data):,} replies, of "
            f"{span}. Kept of each step: {kinds}. Counts and scores are of "
            "these alone; the curves of the whole run are in its report (assay report)."
        )

    def index(self) -> dict[str, Any]:
        """Return a summary of every group."""
        return {"groups": [_short(group, 0) for group in self._groups]}

    def group(self, place: int) -> dict[str, Any]:
        """Return one group in full."""
        return self._groups[place]


Pages = EvaluationPages | SamplePages


def _short(group: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return the summary of a group in full, whose line in the file has so many bytes."""
    replies = group["replies"]
    said = [m for m in group["prompt"] if m["role"] == "user"] or group["prompt"]
    return {
        "id": _one_line(group["id"]),
        "prompt": _one_line(said[-1]["content"]),
        "statuses": [reply["status"] for reply in replies],
        "scores": [reply["score"] for reply in replies],
        "changed": sum(_changed(reply, reply["other"]) for reply in replies),
        "bytes": size,
    }


def _whole(group: EpisodeGroup, other: EpisodeGroup | None) -> dict[str, Any]:
    beside = dict(enumerate(other.episodes if other else ()))
    return {
        "id": group.task.id,
        "prompt": [dict(m) for m in group.task.messages],
        "reference": group.task.reference,
        "metadata": dict(group.task.metadata),
        "replies": [
            {
                "turns": [dict(m) for m in episode.turns],
                **_finding(episode),
                "truncated": episode.truncated,
                "other": _finding(beside[i]) if i in beside else None,
                "same_reply": i in beside and beside[i].turns == episode.turns,
            }
            for i, episode in enumerate(group.episodes)
        ],
    }


def _finding(episode: Episode) -> dict[str, Any]:
    found = episode.verdict.to_json()
    del found["seconds"]
    return found


def _changed(reply: Mapping[str, Any], other: Mapping[str, Any] | None) -> bool:
    return other is not None and any(reply[name] != other[name] for name in ("status", "score"))


def _many_answers(plan: Plan) -> bool:
    """Return whether several answers may be correct, as far as the verifier's record shows."""
    try:
        return many_answers(Verifier.from_json(plan.verifier["rubric"]))
    except (ValueError, KeyError, TypeError, OSError, ImportError):  # a verifier of one's own
        return False


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * _SHORT].split())[:_SHORT]


def _sample(step: int, group: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"step {step}, {group['kept_as']}: {group['task']}",
        "prompt": [{"role": "user", "content": group["prompt"]}],
        "reference": None,
        "metadata": {"step": step, "kept as": group["kept_as"], "replies in all": group["size"]},
        "replies": [
            {
                "turns": [{"role": "assistant", "content": reply["text"]}],
                "status": reply["status"],
                "score": reply["reward"],
                "reason": reply["reason"],
                "extracted": None,
                "parts": {
                    **reply["rewards"],
                    **({} if reply["advantage"] is None else {"advantage": reply["advantage"]}),
                },
                "tokens": reply["tokens"],
                "truncated": reply["truncated"],
                "other": None,
                "same_reply": False,
            }
            for reply in group["replies"]
        ],
    }
