"""What a run did, step by step: ``metrics.jsonl``, ``samples.jsonl`` and any trackers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .lines import StepLines, finite, read_rows
from .trackers import Background, Origin, Tracker, opened, require_trackers

FILE = "metrics.jsonl"
SAMPLES = "samples.jsonl"


class MetricsLog:
    """Appends one row a step to ``metrics.jsonl``, and the same numbers to trackers.

    Each row is written as one whole line, so that the file can be read at any time. A tracker that
    fails or hangs is reported once; it neither stops nor slows the run.

    Args:
        directory: made where missing.
        resume_step: rows of later steps are dropped: their steps are about to be done again.
        trackers: names (``tensorboard``, ``wandb``, ``trackio``) or :class:`Tracker` objects.
            ``None``: TensorBoard, where it is installed; its files go to ``tensorboard/``.
        config: settings of the run, for trackers that show them.

    Raises:
        ImportError: a tracker that was asked for by name is not installed.
        ValueError: there is no tracker of that name.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        resume_step: int | None = None,
        trackers: Sequence[str | Tracker] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        require_trackers(trackers)
        root = Path(directory)
        self._rows = StepLines(root / FILE, resume_step=resume_step)
        self._samples: StepLines | None = None
        if resume_step is not None and (root / SAMPLES).exists():
            self._samples = StepLines(root / SAMPLES, resume_step=resume_step)
        self.path = self._rows.path
        origin = Origin(root, dict(config or {}), resume_step, self._rows.last)
        self._trackers: list[Background] = opened(trackers, origin)

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; it needs a ``step``. A number that is not finite becomes null."""
        values = finite(row)
        self._rows.write(values)
        for tracker in self._trackers:
            tracker.write(values)

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Append a step's sample groups, as :func:`sample_groups` gives them."""
        if self._samples is None:
            self._samples = StepLines(self.path.with_name(SAMPLES))
        kept = finite(groups)
        self._samples.write({"step": step, "groups": kept})
        for tracker in self._trackers:
            tracker.samples(step, kept)

    def close(self) -> None:
        """Close the files and the trackers. Calling it twice does no harm."""
        self._rows.close()
        if self._samples is not None:
            self._samples.close()
        for tracker in self._trackers:
            tracker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Rows of a ``metrics.jsonl``; a last line that a crash cut short is left out.

    Raises:
        ValueError: another line is not a JSON object with a number as its ``step``.
    """
    return read_rows(path)
