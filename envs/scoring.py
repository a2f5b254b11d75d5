"""Score stored completions: rows of a file in, one verdict for each out, resumable."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ..verifiers import Status, Verdict, Verifier
from ..verifiers.atomic_io import replacing
from ..verifiers.nearest import did_you_mean
from .datasets.reading import DataError, read_values
from .datasets.source import Rows, Source
from .task import Task
from .text_env import TextEnv
from .trl.tools import text_of


@dataclass(frozen=True, slots=True)
class StoredCompletion:
    """One row to score.

    Attributes:
        row: its number in the file, from 0.
        task: the task it answers.
        text: the reply.
    """

    row: int
    task: Task
    text: str

    @property
    def digest(self) -> str:
        """The hash of the text that a stored verdict is about."""
        hashed = hashlib.sha256(self.text.encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Scored:
    """A verdict and the row that it is about.

    Attributes:
        row: its number in the file of completions, from 0.
        task: id of the task.
        digest: of the completion.
        verdict: what the rubric found.
        judged_by: digest of the task and the rubric: whether the verdict still stands.
    """

    row: int
    task: str
    digest: str
    verdict: Verdict
    judged_by: str = ""

    @property
    def subject(self) -> tuple[str, str, str]:
        """The identity of what was judged and by what: rows with equal ones share a verdict."""
        return self.task, self.digest, self.judged_by

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {
            "row": self.row,
            "task": self.task,
            "status": self.verdict.status.value,
            "score": self.verdict.score,
            "rewards": dict(self.verdict.parts),
            "reason": self.verdict.reason,
            "extracted": self.verdict.extracted,
            "completion_sha256": self.digest,
            "judged_by": self.judged_by,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        verdict = Verdict(
            Status(row["status"]), row["score"], row["reason"], row["extracted"], row["rewards"]
        )
        return cls(row["row"], row["task"], row["completion_sha256"], verdict, row["judged_by"])


def read_completions(path: str | Path, source: Source) -> list[StoredCompletion]:
    """Read rows ``{"task": <task id or row number>, "completion": <text>}``.

    A completion may be chat messages, of which the last, the assistant's, is read.

    A string names a task by its id; an integer names it by its place, from 0, and so do digits in
    a string, as a CSV file has them. Where ids are digits, both name a task by its id.

    Raises:
        DataError: the file is missing or empty, a line is not JSON or lacks a field, or there
            is no such task.
    """
    return _stored(path, "task", lambda row, _, place: _find(source, row["task"], place))


def read_referenced(path: str | Path) -> list[StoredCompletion]:
    """Read rows ``{"reference": <known answer>, "completion": <text>}``; ``"task"`` may name them.

    Raises:
        DataError: the file is missing or empty, a line is not JSON or lacks a field.
    """

    def task(row: Mapping[str, Any], number: int, _: str) -> Task:
        return Task("(not stored)", row["reference"], id=str(row.get("task", number)))

    return _stored(path, "reference", task)


def _stored(
    path: str | Path, field: str, task_of: Callable[[Mapping[str, Any], int, str], Task]
) -> list[StoredCompletion]:
    """Read rows with a completion and a field that says what it answers."""
    if not Path(path).is_file():
        fault = "that is a folder" if Path(path).is_dir() else "no such file"
        raise DataError(
            f"{fault}: {path}. Give a JSONL, JSON, CSV or Parquet file with the fields {field!r} "
            "and 'completion'"
        )
    rows = []
    for number, (place, row) in enumerate(read_values(Path(path))):
        if not isinstance(row, dict) or {field, "completion"} - set(row):
            raise DataError(
                f"{place}: a row needs the fields {field!r} and 'completion', "
                f"got {', '.join(row) if isinstance(row, dict) else type(row).__name__}. Add them"
                f"{', or name the environment' if field == 'reference' else ''}"
            )
        text = row["completion"]
        last = text[-1] if isinstance(text, list) and text else text
        if isinstance(last, dict) and last.get("role") == "assistant":  # a chat, as TRL stores it
            text = text_of(last)
        if not isinstance(text, str):
            raise DataError(
                f"{place}: completion must be text, or chat messages that end with the "
                f"assistant's, got {type(text).__name__}"
            )
        rows.append(StoredCompletion(number, task_of(row, number, place), text))
    if not rows:
        raise DataError(f"{path} holds no rows")
    return rows


def _find(source: Source, key: Any, place: str) -> Task:
    ids = source.index if isinstance(source, Rows) else {}
    named = next(iter(ids), "").isdecimal()
    if named and isinstance(key, int) and not isinstance(key, bool):
        key = str(key)
    if isinstance(key, str) and key in ids:
        return source.task(ids[key])
    if isinstance(key, str) and key.isdecimal() and not named:
        key = int(key)
    if isinstance(key, int) and not isinstance(key, bool):
        try:
            return source.task(key)
        except IndexError as error:
            raise DataError(f"{place}: {error}") from error
    if isinstance(key, str) and ids:
        hint = did_you_mean(key, ids, f"Ids look like {next(iter(ids))}.")
        raise DataError(f"{place}: no task has the id {key!r}. {hint}")
    wanted = "a task id or a row number" if ids else "a task number"
    raise DataError(f"{place}: task must be {wanted}, got {key!r}")


def score(
    env: TextEnv,
    rows: Sequence[StoredCompletion],
    *,
    known: Sequence[Scored] = (),
    batch: int = 256,
    progress: Callable[[Sequence[Scored]], None] | None = None,
) -> list[Scored]:
    """Judge stored completions in batches, in order.

    Args:
        env: whose rubric judges.
        rows: what to judge.
        known: verdicts from an earlier run. One that has a score, and is about the same text,
            the same task and the same rubric, is kept, whatever its row; the rest are judged
            again.
        batch: rows judged together.
        progress: called with the new verdicts after each batch, the kept ones first.

    Raises:
        TypeError: ``rows`` is a file's name.
        ValueError: none of the known verdicts is about these rows, so they are another run's.
    """
    if isinstance(rows, str | Path):
        raise TypeError(f"rows must be stored completions: read_completions({str(rows)!r}, source)")
    judges = {row.task.id: _judged_by(env, row.task) for row in rows}
    subjects = {row.row: (row.task.id, row.digest, judges[row.task.id]) for row in rows}
    if known and not {s.subject for s in known} & set(subjects.values()):
        raise ValueError(
            "the earlier verdicts are about other completions, other tasks or another rubric, "
            "so there is nothing to resume: keep them, and write to another file"
        )
    kept = {s.subject: s for s in known if s.verdict.score is not None}
    done = {r: replace(kept[about], row=r) for r, about in subjects.items() if about in kept}
    if progress is not None:
        progress(list(done.values()))
    todo = [row for row in rows if row.row not in done]
    for at in range(0, len(todo), batch):
        part = todo[at : at + batch]
        verdicts = env.rubric.verify_many([r.text for r in part], [r.task.reference for r in part])
        found = [
            Scored(r.row, r.task.id, r.digest, v, judges[r.task.id])
            for r, v in zip(part, verdicts, strict=True)
        ]
        done.update((s.row, s) for s in found)
        if progress is not None:
            progress(found)
    return [done[row.row] for row in rows]


def _judged_by(env: TextEnv, task: Task) -> str:
    """Return what identifies a stored verdict's rubric and task."""
    key = [env.name, env.rubric.to_json(), [dict(m) for m in task.messages], task.reference]
    text = json.dumps(key, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def refuse_unwritable(path: str | Path) -> None:
    """Find out before the work whether its result can be written; nothing is left behind.

    Raises:
        DataError: the path is a folder, or its folder cannot be written to or made.
    """
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{path} is a folder: give the name of a file")
    if target.suffix == ".gz":
        raise DataError(f"verdicts are written as plain JSONL: give a name without .gz, not {path}")
    folder = next(p for p in target.absolute().parents if p.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {folder} takes no new file ({error.strerror}). Give another path"
        ) from error


def write_scored(path: str | Path, rows: Sequence[Scored]) -> None:
    """Write verdicts as JSONL atomically."""
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row.to_json()) + "\n" for row in rows)


def read_scored(path: str | Path) -> list[Scored]:
    """Read verdicts that :func:`write_scored` wrote.

    Raises:
        DataError: a line is not one of its.
    """
    found = []
    for place, row in read_values(Path(path)):
        try:
            found.append(Scored.from_json(row))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{place}: not a verdict that score wrote ({type(error).__name__}: {error}). "
                "Give another --out, or run without --resume"
            ) from error
    return found


@dataclass(frozen=True, slots=True)
class Compared:
    """The verdicts of two judges on one completion."""

    stored: StoredCompletion
    first: Verdict
    second: Verdict

    @property
    def agree(self) -> bool:
        """Whether both give the same score, or both none."""
        return self.first.score == self.second.score

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values, with the whole completion."""
        verdicts = {"first": self.first.to_json(), "second": self.second.to_json()}
        for verdict in verdicts.values():
            del verdict["seconds"]  # it differs from run to run
        return {
            "row": self.stored.row,
            "task": self.stored.task.id,
            "reference": self.stored.task.reference,
            "completion": self.stored.text,
            **verdicts,
        }


def compare(
    first: Verifier,
    second: Verifier,
    rows: Sequence[StoredCompletion],
    *,
    batch: int = 256,
    progress: Callable[[int], None] | None = None,
) -> list[Compared]:
    """Judge stored completions with both, in batches, in order."""
    found: list[Compared] = []
    for at in range(0, len(rows), batch):
        part = rows[at : at + batch]
        replies, references = [r.text for r in part], [r.task.reference for r in part]
        verdicts = zip(
            part,
            first.verify_many(replies, references),
            second.verify_many(replies, references),
            strict=True,
        )
        found += [Compared(*row) for row in verdicts]
        if progress is not None:
            progress(len(part))
    return found


def status_pairs(rows: Sequence[Compared]) -> list[tuple[str, str, int]]:
    """Count pairs of statuses of the two judges, most frequent first."""
    pairs = Counter((row.first.status.value, row.second.status.value) for row in rows)
    return [(a, b, count) for (a, b), count in pairs.most_common()]
