"""Where a run begins: in an empty directory, or where it was stopped."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...sandbox.redaction import redact
from ...verifiers.atomic_io import remove_directory, sweep, write_json
from ..watch.log import FILE, read_metrics
from .alone import LOCK, alone_in
from .checkpoint import CheckpointError, DamagedCheckpoint, list_checkpoints, read_state, versions

MAY_CHANGE = (
    "steps",
    "eval_every",
    "save_every",
    "save_every_updates",
    "keep_checkpoints",
    "keep_best",
    "early_stop",
    "max_none_share",
    "max_rollout_s",
    "max_mismatch",
    "max_drift",
    "alarm_patience",
    "learning_rate",
    "warmup_steps",
    "schedule",
    "max_grad_norm",
)
_CONFIG = "config.json"
_log = logging.getLogger(__name__)


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged; the one before it is used."""


def begun(out_dir: str | Path) -> bool:
    """Whether a run was begun there: pass it on as ``resume`` to begin or to go on, as may be."""
    return (Path(out_dir) / _CONFIG).exists()


def find_start(out_dir: Path, *, resume: bool) -> Path | None:
    """The checkpoint to go on from; ``None`` to begin at the beginning.

    A damaged checkpoint is warned of and put aside, and the one before it is taken. A run that was
    killed before its first checkpoint and its first step begins again.

    Raises:
        CheckpointError: there is nothing to resume, or a run that would be mixed with another; or
            another process is training there.
    """
    if (out_dir / LOCK).exists():
        with alone_in(out_dir):
            pass
    checkpoints = out_dir / "checkpoints"
    found = list_checkpoints(checkpoints)
    if not resume:
        if found or (out_dir / FILE).exists():
            raise CheckpointError(
                f"{str(out_dir)!r} already holds a run: resume it, or give another out_dir"
            )
        return None
    sweep(checkpoints)
    for path in reversed(found):
        try:
            read_state(path)
        except DamagedCheckpoint as error:
            aside = path.with_name(f"damaged-{path.name}")
            warnings.warn(f"{error}. It is put aside as {aside.name!r}", CheckpointWarning, 3)
            if aside.exists():
                remove_directory(aside)
            os.replace(path, aside)
            continue
        return path
    damaged = [path.name for path in sorted(checkpoints.glob("damaged-*"))]
    steps = max((row["step"] for row in _rows(out_dir)), default=0)
    if damaged or steps or not (out_dir / _CONFIG).exists():
        only = f"only {', '.join(damaged)}" if damaged else "no checkpoint"
        lost = f", and {FILE} the rows of {steps} step(s)" if steps else ""
        raise CheckpointError(
            f"nothing to resume: {str(checkpoints)!r} holds {only}{lost}. Put a whole checkpoint "
            "there, or start anew, without resume and in another out_dir"
        )
    _log.info("the run was stopped before its first checkpoint: it begins again")
    return None


def _rows(out_dir: Path) -> list[dict[str, Any]]:
    return read_metrics(out_dir / FILE) if (out_dir / FILE).exists() else []


def require_same(settings: Mapping[str, Any], before: Mapping[str, Any], where: Path) -> None:
    """See that a run goes on with the settings that it began with, but for some.

    Raises:
        CheckpointError: others have changed.
    """
    known = {k: v for k, v in settings.items() if k in before}
    changed = {k: before[k] for k, v in known.items() if k not in MAY_CHANGE and before[k] != v}
    if changed:
        raise CheckpointError(
            f"{str(where)!r} was made with other settings: {changed}. Resume with those; only "
            f"{', '.join(MAY_CHANGE)} may change"
        )


def read_config(out_dir: Path) -> dict[str, Any]:
    """The settings that a run was last started with."""
    found: dict[str, Any] = json.loads((out_dir / _CONFIG).read_text(encoding="utf-8"))["config"]
    return found


def write_config(out_dir: Path, settings: Mapping[str, Any]) -> None:
    """Write ``config.json``: settings without secrets, and versions."""
    record = {"config": redact(settings), "versions": versions()}
    write_json(out_dir / _CONFIG, record, indent=2, mode=0o600)
