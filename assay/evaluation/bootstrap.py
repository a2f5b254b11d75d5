"""Bootstrap intervals of means over tasks, which are resampled with replacement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..envs import wilson_interval
from ..envs.seeding import rng_at

DRAWS = 2000
LEVEL = 0.95
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over tasks.

    Attributes:
        value: the mean; ``None`` if no task counts.
        low: lower end of its 95 % interval; ``None`` if fewer than two tasks count.
        high: upper end.
        tasks: that count.
    """

    value: float | None
    low: float | None
    high: float | None
    tasks: int

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {"value": self.value, "low": self.low, "high": self.high, "tasks": self.tasks}


def bootstrap(
    columns: Sequence[Sequence[float | None]], *, seed: int = 0, draws: int = DRAWS
) -> list[Estimate]:
    """Return the mean of each column with its 95 % percentile interval (Efron 1979; Efron and
    Tibshirani 1993, section 13.3).

    Replies to one task are correlated, so tasks are resampled, all columns by the same draws. If
    all tasks have one value, which resampling would report as certain, it is Wilson's interval.

    Args:
        columns: each a value in [0, 1] for each task, in the same order; ``None`` for one that
            does not count.
        seed: of the draws.
        draws: how many.
    """  # noqa: D205  # the sources belong to the sentence
    if not columns:
        return []
    known = np.array([[v is not None for v in column] for column in columns], dtype=float)
    values = np.array([[0.0 if v is None else v for v in column] for column in columns])
    means = _drawn_means(values, known, seed, draws) if values.shape[1] else None
    return [
        _estimate(column, None if means is None else means[i]) for i, column in enumerate(columns)
    ]


def _drawn_means(values: Any, known: Any, seed: int, draws: int) -> Any:
    """Return resampled means, [columns, draws]: NaN if a draw has no task that counts."""
    tasks = values.shape[1]
    rng = rng_at("assay-eval-bootstrap", seed)
    parts = []
    for at in range(0, draws, _AT_ONCE):
        size = (min(_AT_ONCE, draws - at), tasks)
        picked = rng.integers(tasks, size=size)
        times = np.stack([np.bincount(row, minlength=tasks) for row in picked])  # [draws, tasks]
        with np.errstate(invalid="ignore"):
            parts.append((values @ times.T) / (known @ times.T))
    return np.concatenate(parts, axis=1)


def _estimate(column: Sequence[float | None], drawn: Any) -> Estimate:
    counted = [v for v in column if v is not None]
    if not counted:
        return Estimate(None, None, None, 0)
    mean = sum(counted) / len(counted)
    if len(counted) < 2:
        return Estimate(mean, None, None, 1)
    if min(counted) == max(counted):
        return Estimate(mean, *wilson_interval(mean * len(counted), len(counted)), len(counted))
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.nanpercentile(drawn, [tail, 100 - tail])
    return Estimate(mean, float(low), float(high), len(counted))
