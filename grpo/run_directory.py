"""The directory of a run: one learner at a time, its settings, where it begins, its best model."""

from __future__ import annotations

import fcntl
import json
import logging
import math
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..sandbox.redaction import redact
from ..verifiers.atomic_io import remove_directory, sweep, write_directory, write_json
from .checkpoint import CheckpointError, DamagedCheckpoint, list_checkpoints, verify_checkpoint
from .guards import METRIC
from .loading import save_weights
from .records import FILE, read_metrics, versions

_log = logging.getLogger(__name__)
_CONFIG, _LOCK = "config.json", ".lock"
MAY_CHANGE = (
    *("steps", "eval_every", "save_every", "keep_checkpoints", "keep_best", "early_stop"),
    *("max_none_share", "max_rollout_s", "max_mismatch", "max_drift", "alarm_patience"),
    *("learning_rate", "warmup_steps", "schedule", "max_grad_norm"),
)
"""Settings that may differ if a run is resumed."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged; the one before it is used."""


_held: set[Path] = set()  # by this process, which the kernel would let in again


@contextmanager
def run_lock(out_dir: Path) -> Iterator[None]:
    """Hold the directory. However the process ends, the kernel lets go of it.

    Raises:
        CheckpointError: another process, or another learner of this one, is training in it.
    """
    taken = CheckpointError(
        f"another process is training in {str(out_dir)!r}: wait for it or stop it, or give "
        "another out_dir"
    )
    out_dir.mkdir(parents=True, exist_ok=True)
    held = out_dir.resolve()
    if held in _held:  # opening the file again and closing it would give up the lock
        raise taken
    handle = os.open(out_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            # Not flock: workers that were forked would hold on to it after this process is killed.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise taken from None
        except OSError:  # some network file systems have no locks
            pass
        _held.add(held)
        yield
    finally:
        _held.discard(held)
        os.close(handle)


def require_room(directory: Path, model: Any, *, checkpoints: int, copies: int = 0) -> None:
    """Raise OSError if the checkpoints, and copies of the model, do not fit on the disk."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise OSError(
            f"cannot write to {str(directory)!r}: {error.strerror}. Give another out_dir"
        ) from error
    weights = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    # A checkpoint has the weights, and Adam's two moments of each.
    needed, free = weights * (3 * checkpoints + copies), shutil.disk_usage(directory).free
    if free < needed:
        raise OSError(
            f"{str(directory)!r} has {free / 2**20:.1f} MiB of free disk, and checkpoints and "
            f"models need {needed / 2**20:.1f}. Make room, lower keep_checkpoints, or give "
            "another out_dir"
        )


def begun(out_dir: str | Path) -> bool:
    """Return whether a run was begun there; pass it as ``resume`` to begin or to go on."""
    return (Path(out_dir) / _CONFIG).exists()


def find_start(out_dir: Path, *, resume: bool) -> Path | None:
    """Find the checkpoint to go on from; ``None`` to begin at the beginning.

    A damaged checkpoint is warned of and put aside, and the one before it is taken. A run that was
    killed before its first checkpoint and its first step begins again.

    Raises:
        CheckpointError: nothing can be resumed, or a run that would be mixed with another; or
            another process is training there.
    """
    if (out_dir / _LOCK).exists():
        with run_lock(out_dir):
            pass
    checkpoints, metrics = out_dir / "checkpoints", out_dir / FILE
    found = list_checkpoints(checkpoints)
    if not resume:
        if found or metrics.exists():
            raise CheckpointError(
                f"{str(out_dir)!r} already holds a run: resume it, or give another out_dir"
            )
        return None
    sweep(checkpoints)
    for path in reversed(found):
        try:
            verify_checkpoint(path)
        except DamagedCheckpoint as error:
            aside = path.with_name(f"damaged-{path.name}")
            warnings.warn(f"{error}. It is put aside as {aside.name!r}", CheckpointWarning, 3)
            if aside.exists():
                remove_directory(aside)
            os.replace(path, aside)
            continue
        return path
    damaged = [path.name for path in sorted(checkpoints.glob("damaged-*"))]
    rows = read_metrics(metrics) if metrics.exists() else []
    steps = max((row["step"] for row in rows), default=0)
    if damaged or steps or not begun(out_dir):
        only = f"only {', '.join(damaged)}" if damaged else "no checkpoint"
        lost = f", and {FILE} the rows of {steps} step(s)" if steps else ""
        raise CheckpointError(
            f"nothing to resume: {str(checkpoints)!r} holds {only}{lost}. Put a whole checkpoint "
            "there, or start anew, without resume and in another out_dir"
        )
    _log.info("the run was stopped before its first checkpoint: it begins again")
    return None


def require_same(settings: Mapping[str, Any], before: Mapping[str, Any], where: Path) -> None:
    """Raise CheckpointError if settings that must stay differ from those that a run began with."""
    given = json.loads(json.dumps(redact(settings)))  # as they were written
    known = {k: v for k, v in given.items() if k in before and k not in MAY_CHANGE}
    if changed := {k: before[k] for k, v in known.items() if before[k] != v}:
        raise CheckpointError(
            f"{str(where)!r} was made with other settings: {changed}. Resume with those; only "
            f"{', '.join(MAY_CHANGE)} may change"
        )


def read_config(out_dir: Path) -> dict[str, Any]:
    """Read the settings that a run was last started with."""
    found: dict[str, Any] = json.loads((out_dir / _CONFIG).read_text(encoding="utf-8"))["config"]
    return found


def write_config(out_dir: Path, settings: Mapping[str, Any]) -> None:
    """Write ``config.json``: settings without secrets, and versions."""
    record = {"config": redact(settings), "versions": versions()}
    write_json(out_dir / _CONFIG, record, indent=2, mode=0o600)


def keep_best(directory: Path, model: Any, tokenizer: Any, row: Mapping[str, Any]) -> None:
    """Keep a model as ``directory/step-000123`` if its row has a better evaluation than those kept.

    The new one is whole before the old one goes.
    """
    value = row.get(METRIC)
    sweep(directory)
    before = sorted(p for p in directory.iterdir() if p.is_dir()) if directory.is_dir() else []
    bars = [json.loads((p / "score.json").read_text(encoding="utf-8"))[METRIC] for p in before]
    if value is None or math.isnan(value) or value <= max(bars, default=-math.inf):
        return

    def fill(to: Path) -> None:
        save_weights(model, to)
        tokenizer.save_pretrained(to)
        about = {"step": row["step"], METRIC: value}
        (to / "score.json").write_text(json.dumps(about) + "\n", encoding="utf-8")

    path = directory / f"step-{row['step']:06d}"
    if path in before:  # an earlier branch of a run that was resumed from before it
        remove_directory(path)
    write_directory(path, fill)
    for old in before:
        if old != path:
            remove_directory(old)
