"""Outcomes with their cost: on disk, and as means over seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..verifiers.atomic_io import write_text
from .study import Outcome


@dataclass(frozen=True, slots=True)
class Measured:
    """An outcome and what it cost.

    Attributes:
        arm: its name.
        seed: decides everything.
        short: whether it was the shortened run.
        source: hash of the study's file; a result of another is measured again.
        cpu_s: CPU seconds of its process, imports included.
        peak_mib: most memory that its process held, in MiB, imports included.
        outcome: what it reported.
    """

    arm: str
    seed: int
    short: bool
    source: str
    cpu_s: float
    peak_mib: float
    outcome: Outcome

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, rounded to five digits."""
        found: dict[str, Any] = _rounded(asdict(self))
        return found

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Measured:
        """Read :meth:`to_json`."""
        return cls(**{**record, "outcome": Outcome(**record["outcome"])})


Results = Mapping[str, Sequence[Measured]]
"""What was measured of each arm, in the study's order, by seed."""


def write_measured(path: Path, measured: Sequence[Measured]) -> None:
    """Write results atomically.

    Args:
        path: of JSON; its directory is made if it does not exist.
        measured: in the order they are to stand.
    """
    lines = ",\n".join(json.dumps(m.to_json()) for m in measured)
    write_text(path, f"[\n{lines}\n]\n")


def read_measured(path: Path) -> list[Measured]:
    """Read :func:`write_measured`.

    Raises:
        ValueError: the file is no such list.
    """
    try:
        return [Measured.from_json(record) for record in json.loads(path.read_text("utf-8"))]
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(
            f"{str(path)!r} holds no results of a study ({error}): remove it, and run the study"
        ) from error


def by_arm(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Group by arm, in the order of their first appearance."""
    found: dict[str, list[Measured]] = {}
    for one in measured:
        found.setdefault(one.arm, []).append(one)
    return found


def means(measured: Sequence[Measured]) -> dict[str, tuple[float, float, float]]:
    """Return mean, least and most over seeds of each value that any of them has."""
    names = dict.fromkeys(name for m in measured for name in m.outcome.values)
    found = {}
    for name in names:
        values = [m.outcome.values[name] for m in measured if name in m.outcome.values]
        known = [v for v in values if v == v and v is not None]
        if known:
            found[name] = sum(known) / len(known), min(known), max(known)
    return found


def band(measured: Sequence[Measured], name: str) -> list[tuple[float, float, float, float]]:
    """Return a curve's x, mean, least and most over the seeds that have a point there."""
    at: dict[float, list[float]] = {}
    for one in measured:
        for x, y in one.outcome.curves.get(name, ()):
            if y is not None and y == y:
                at.setdefault(x, []).append(y)
    return [(x, sum(ys) / len(ys), min(ys), max(ys)) for x, ys in sorted(at.items())]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return None if value != value else float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return value
