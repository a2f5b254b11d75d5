"""A file of JSON rows, one a step, that can be read at any time and outlives a full disk."""

from __future__ import annotations

import contextlib
import json
import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...verifiers.atomic_io import write_text


class WatchWarning(UserWarning):
    """Something that watches a run has failed; the run goes on."""


class StepLines:
    """Appends rows to a JSONL file, whole lines only.

    Where a row cannot be written (a full disk), what was written of it is taken back, the failure
    is reported once, and later rows are tried again: training does not stop for its log.

    Args:
        path: its directory is made where missing.
        resume_step: rows of later steps are dropped: their steps are about to be done again.

    Attributes:
        last: the last step of the file as it was found, before rows were dropped; -1 without any.
    """

    def __init__(self, path: Path, *, resume_step: int | None = None) -> None:
        self.path, self.last = path, -1
        self._failed = False
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume_step is not None and path.exists():
            self._drop_after(resume_step)
        self._file = path.open("ab", buffering=0)

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; it needs a ``step``."""
        line = (json.dumps(row, allow_nan=False) + "\n").encode()
        end = os.fstat(self._file.fileno()).st_size
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError("the disk is full")
        except OSError as error:
            self._take_back(end)
            if not self._failed:
                self._failed = True
                message = f"cannot write {self.path.name}: {error}. Training goes on without"
                warnings.warn(message, WatchWarning, stacklevel=3)

    def close(self) -> None:
        """Close the file. Calling it twice does no harm."""
        self._file.close()

    def _take_back(self, end: int) -> None:
        with contextlib.suppress(OSError):  # the disk may be gone altogether
            os.truncate(self._file.fileno(), end)

    def _drop_after(self, step: int) -> None:
        rows = read_rows(self.path)
        self.last = max((row["step"] for row in rows), default=-1)
        kept = "".join(json.dumps(row) + "\n" for row in rows if row["step"] <= step)
        write_text(self.path, kept)


def finite(value: Any) -> Any:
    """A copy of JSON values in which numbers that are not finite are ``None``: JSON has none."""
    if isinstance(value, Mapping):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """Rows of a JSONL file of steps; a last line that a crash cut short is left out.

    Raises:
        ValueError: another line is not a JSON object with a number as its ``step``.
    """
    whole = Path(path).read_text(encoding="utf-8").split("\n")[:-1]
    rows = []
    for number, line in enumerate(whole, start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: expected JSON, got {line!r:.200}") from error
        if not isinstance(row, dict) or type(row.get("step")) not in (int, float):
            raise ValueError(
                f"{path}, line {number}: expected an object with a number as its 'step', "
                f"got {line!r:.200}"
            )
        rows.append(row)
    return rows
