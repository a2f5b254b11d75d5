"""``run.json``: what a run was told, and what it ran on."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ...sandbox.redaction import redact
from ...verifiers.atomic_io import write_json
from .lines import WatchWarning

ABOUT = "run.json"
_PACKAGES = ("assay", "torch", "transformers", "tokenizers", "safetensors", "peft", "numpy")


def write_about(
    directory: str | Path, config: Mapping[str, Any], about: Mapping[str, Any] | None = None
) -> None:
    """Write ``run.json``: ``config``, ``about``, ``versions``, ``machine`` and its ``started``.

    No secret is written. A run that is resumed adds its start to those before. A file that cannot
    be written is reported; the run goes on.

    Args:
        directory: of the run.
        config: its settings, as JSON values.
        about: whatever else tells it from others, such as its environment and model; JSON values.
    """
    path = Path(directory) / ABOUT
    before = read_about(directory)
    record = {
        "config": redact(config),
        "about": {**before.get("about", {}), **redact(about or {})},
        "versions": _versions(),
        "machine": _machine(),
        "started": [*before.get("started", []), datetime.now(UTC).isoformat(timespec="seconds")],
    }
    try:
        write_json(path, record, indent=2, mode=0o600)
    except OSError as error:
        warnings.warn(f"cannot write {path.name}: {error}", WatchWarning, stacklevel=2)


def read_about(directory: str | Path) -> dict[str, Any]:
    """What ``run.json`` says; where there is none, the newest checkpoint's settings, or nothing."""
    root = Path(directory)
    for path in (root / ABOUT, *sorted(root.glob("checkpoints/step-*/state.json"), reverse=True)):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # it tells about a run and is no part of it: what is broken is passed over
        if isinstance(found, dict):
            return found
    return {}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, Any]:
    import torch

    machine: dict[str, Any] = {
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    if torch.cuda.is_available():
        machine["gpu"] = torch.cuda.get_device_name()
    return machine
