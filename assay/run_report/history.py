"""Read a run's metrics, samples and settings from its directory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..grpo.records import FILE, SAMPLES, read_about, read_metrics


@dataclass(frozen=True, slots=True)
class Series:
    """A metric over the steps that have it, oldest first."""

    steps: list[int]
    values: list[float]

    def last(self, count: int = 1) -> float | None:
        """Return the mean of the last values, ``None`` if there are none."""
        values = self.values[-count:]
        return sum(values) / len(values) if values else None


@dataclass(frozen=True, slots=True)
class History:
    """A run's rows, samples and settings.

    Attributes:
        name: the run's directory or file, as it was given.
        rows: of metrics, by step; the later row if a step has two.
        samples: ``{"step": ..., "groups": [...]}``, by step.
        config: its settings; empty if they are not known.
        about: its environment, model, or whatever else it was started with.
        versions: of packages.
        machine: it ran on.
        started: times of its start and of each time it was resumed.
    """

    name: str
    rows: Sequence[Mapping[str, Any]]
    samples: Sequence[Mapping[str, Any]] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    started: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """Names of all metrics, in the order of their first appearance."""
        found = {name: None for row in self.rows for name, v in row.items() if _is_number(v)}
        found.pop("step", None)
        return list(found)

    @property
    def steps(self) -> int:
        """The last step."""
        return int(self.rows[-1]["step"])

    def series(self, name: str) -> Series:
        """Return a metric at the steps where it is finite."""
        found = [(int(r["step"]), float(r[name])) for r in self.rows if _is_number(r.get(name))]
        return Series([step for step, _ in found], [value for _, value in found])

    def seconds(self) -> float:
        """Return the sum of all ``seconds/...``: without checkpoints and interruptions."""
        parts = [name for name in self.names if name.startswith("seconds/")]
        return sum(value for part in parts for value in self.series(part).values)

    @property
    def alarms(self) -> list[tuple[int, str]]:
        """Step and text of each alarm."""
        return [(int(r["step"]), str(r["alarm"])) for r in self.rows if r.get("alarm")]


def read_history(run: str | Path) -> History:
    """Read a run's directory, or a JSONL file of metrics alone, such as another trainer's.

    Raises:
        ValueError: there is no such run, it has no rows, or its file cannot be read.
    """
    path = Path(run)
    file = path / FILE if path.is_dir() else path
    if (path / "groups.jsonl").is_file():
        raise ValueError(f"{str(run)!r} is an evaluation: `assay view {run}` shows it")
    if not file.is_file():
        raise ValueError(
            f"{str(run)!r} is no run: expected a directory with {FILE} in it, or such a file"
        )
    rows = {int(row["step"]): row for row in read_metrics(file)}
    if not rows:
        raise ValueError(f"{str(file)!r} has no rows yet: train for at least one step")
    home = file.parent if file.name == FILE else None
    kept = home / SAMPLES if home else None
    samples = read_metrics(kept) if kept and kept.is_file() else []
    found = read_about(home) if home else {}
    return History(
        name=str(run),
        rows=[rows[step] for step in sorted(rows)],
        samples=sorted(samples, key=lambda row: float(row["step"])),
        config=found.get("config", {}),
        about=found.get("about", {}),
        versions=found.get("versions", {}),
        machine=found.get("machine", {}),
        started=found.get("started", []),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)
