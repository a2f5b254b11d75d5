"""What a run did, step by step: ``metrics.jsonl``, and TensorBoard where it is installed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FILE = "metrics.jsonl"


class MetricsLog:
    """Appends one row a step to ``metrics.jsonl``, and the same numbers to TensorBoard.

    Each row is written and flushed as one whole line, so that the file can be read at any time.

    Args:
        directory: made where missing; TensorBoard's files go to ``tensorboard/`` in it.
        resume_step: rows of later steps are dropped: their steps are about to be done again.
        tensorboard: write TensorBoard files too, where it is installed.
    """

    def __init__(
        self, directory: str | Path, *, resume_step: int | None = None, tensorboard: bool = True
    ) -> None:
        self.path = Path(directory) / FILE
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if resume_step is not None and self.path.exists():
            self._drop_after(resume_step)
        self._file = self.path.open("a", encoding="utf-8")
        self._board = _board(self.path.parent / "tensorboard", resume_step) if tensorboard else None

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; it needs a ``step``. A number that is not finite becomes null."""
        values = {k: _plain(v) for k, v in row.items()}
        self._file.write(json.dumps(values, allow_nan=False) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in values.items():
                if name != "step" and isinstance(value, int | float):
                    self._board.add_scalar(name, value, row["step"])

    def close(self) -> None:
        """Close the files. Calling it twice does no harm."""
        self._file.close()
        if self._board is not None:
            self._board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _drop_after(self, step: int) -> None:
        kept = [row for row in read_metrics(self.path) if row["step"] <= step]
        temporary = self.path.with_suffix(".partial")
        temporary.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        os.replace(temporary, self.path)


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Rows of a ``metrics.jsonl``; a last line that a crash cut short is left out.

    Raises:
        ValueError: another line is not JSON.
    """
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    whole, rest = lines[:-1], lines[-1]  # what follows the last newline is no whole line
    del rest
    rows = []
    for number, line in enumerate(whole, start=1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: expected JSON, got {line!r}") from error
    return rows


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _board(directory: Path, resume_step: int | None) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # Without purge_step the steps that are done again would show up twice.
    purge = None if resume_step is None else resume_step + 1
    return SummaryWriter(str(directory), purge_step=purge)
