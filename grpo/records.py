"""Files of a run that can be read at any time: rows by step, ``run.json``, sample groups."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..sandbox.redaction import redact
from ..verifiers.atomic_io import write_json, write_text


class WatchWarning(UserWarning):
    """Something that watches a run has failed; the run goes on."""


class StepLines:
    """Appends rows to a JSONL file, whole lines only, as :class:`~assay.grpo.log.MetricsLog` says.

    If a row cannot be written (a full disk), what was written of it is taken back, the failure
    is reported once, and later rows are tried again: training does not stop for its log.

    Attributes:
        last: the last step of the file as it was found, before rows were dropped; -1 without any.
    """

    def __init__(self, path: Path, *, resume_step: int | None = None) -> None:
        self.path, self.last = path, -1
        self._failed = False
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume_step is not None and path.exists():
            rows = read_metrics(path)
            self.last = max((row["step"] for row in rows), default=-1)
            kept = [json.dumps(row) + "\n" for row in rows if row["step"] <= resume_step]
            write_text(path, "".join(kept))

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; it needs a ``step``."""
        line = (json.dumps(row, allow_nan=False) + "\n").encode()
        try:
            with self.path.open("ab", buffering=0) as file:
                end = file.tell()
                if file.write(line) != len(line):
                    file.truncate(end)
                    raise OSError("the disk is full")
        except OSError as error:
            if not self._failed:
                message = f"cannot write {self.path.name}: {error}. Training goes on without"
                warnings.warn(message, WatchWarning, stacklevel=3)
            self._failed = True


def finite(value: Any) -> Any:
    """Copy JSON values, with ``None`` for numbers that are not finite, which JSON lacks."""
    if isinstance(value, Mapping):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Read the rows of a ``metrics.jsonl``; a last line that a crash cut short is left out.

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


ABOUT, FILE, SAMPLES = "run.json", "metrics.jsonl", "samples.jsonl"


def write_about(
    directory: str | Path, config: Mapping[str, Any], about: Mapping[str, Any] | None = None
) -> None:
    """Write ``run.json``: ``config``, ``about``, ``versions``, ``machine`` and ``started``.

    No secret is written. A run that is resumed adds its start to those before. A file that cannot
    be written is reported; the run goes on.
    """
    path = Path(directory) / ABOUT
    before = read_about(directory)
    record = {
        "config": redact(config),
        "about": {**before.get("about", {}), **redact(about or {})},
        "versions": versions(),
        "machine": _machine(),
        "started": [*before.get("started", []), datetime.now(UTC).isoformat(timespec="seconds")],
    }
    try:
        write_json(path, record, indent=2, mode=0o600)
    except OSError as error:
        warnings.warn(f"cannot write {path.name}: {error}", WatchWarning, stacklevel=2)


def read_about(directory: str | Path) -> dict[str, Any]:
    """Read ``run.json``; if it is missing, the newest checkpoint's settings, or nothing."""
    root = Path(directory)
    for path in (root / ABOUT, *sorted(root.glob("checkpoints/step-*/state.json"), reverse=True)):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # a description of the run: what cannot be read is passed over
        if isinstance(found, dict):
            return found
    return {}


def versions() -> dict[str, str]:
    """Return the versions of what a run's bits depend on."""
    found = {"python": platform.python_version()}
    for name in ("assay", "torch", "transformers", "tokenizers", "safetensors", "peft", "numpy"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _machine() -> dict[str, Any]:
    import torch

    gpu = {"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}
    threads = torch.get_num_threads()
    return {"system": platform.platform(), "cores": os.cpu_count(), "threads": threads, **gpu}
