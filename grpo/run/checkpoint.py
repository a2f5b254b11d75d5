"""Checkpoints: all that a run needs to go on as if it had never stopped.

A checkpoint is a directory ``step-000123``, or ``step-000123-update-4`` where it was taken after
the fourth part of the rollout that follows step 123:

- the model and the tokenizer as ``save_pretrained`` writes them (safetensors), so that any tool
  loads a checkpoint as a model;
- ``optimizer.pt``: the optimizer's state and torch's random state, read with
  ``weights_only=True``, which runs no code;
- ``tasks.json``: the state of what chooses tasks, where it has one;
- ``buffer.safetensors``: the rollout that is being trained on, where there is one;
- ``reference/``: the reference model, where it is not the one that the run began with;
- ``state.json``: step, configuration, versions, and the sizes and SHA-256 digests of all other
  files.

It is written under another name and renamed when whole: a directory with that name is complete.
Whoever kills the process, or fills the disk, finds the checkpoint before it as it was.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError

from ...sandbox.redaction import redact
from ...verifiers.atomic_io import remove_directory, write_directory
from ..model.loading import load_weights, save_weights
from .buffer import Buffer

_NAME = re.compile(r"step-(\d{6,})(?:-update-(\d+))?")
_BUFFER, _REFERENCE = "buffer.safetensors", "reference"


class CheckpointError(ValueError):
    """A checkpoint is missing, or is not one of this run."""


class DamagedCheckpoint(CheckpointError):
    """Files of a checkpoint are missing, cut short or changed."""


@dataclass(frozen=True, slots=True)
class State:
    """What a checkpoint holds beside the weights and the optimizer.

    Attributes:
        step: whole steps done.
        config: settings of the run, as JSON values.
        tasks: the state of what chooses tasks, as JSON values, where it has one.
        buffer: the rollout of the next step, where some of it is trained on.
    """

    step: int
    config: dict[str, Any]
    tasks: dict[str, Any] | None = None
    buffer: Buffer | None = None

    @property
    def name(self) -> str:
        """Of the directory."""
        after = f"-update-{self.buffer.done}" if self.buffer else ""
        return f"step-{self.step:06d}{after}"


def save_checkpoint(
    directory: str | Path,
    model: Any,
    tokenizer: Any,
    optimizer: Any,
    state: State,
    *,
    keep: int,
    reference: Any = None,
) -> Path:
    """Write a checkpoint into a directory, and remove all but the newest ``keep``.

    Args:
        directory: of the run's checkpoints.
        model: its weights.
        tokenizer: the model's.
        optimizer: its state.
        state: the rest.
        keep: how many are kept. The older ones go when the new one is whole.
        reference: something with ``save(path)``, where it must be kept.

    Returns:
        The checkpoint's path. Where it exists already it is left as it is.

    Raises:
        OSError: it cannot be written, such as for a full disk; those before it are still there.
    """
    root = Path(directory)
    path = root / state.name
    if not path.exists():
        try:
            write_directory(
                path, lambda to: _fill(to, model, tokenizer, optimizer, state, reference)
            )
        except (OSError, RuntimeError, SafetensorError) as error:  # torch's and safetensors' words
            kept = list_checkpoints(root)
            last = f"The last good one is {str(kept[-1])!r}" if kept else "There is none before it"
            raise OSError(
                f"cannot write the checkpoint {str(path)!r}: {error}. {last}. Make room, and resume"
            ) from error
    for old in list_checkpoints(root)[:-keep]:
        remove_directory(old)
    return path


def save_model(path: Path, model: Any, tokenizer: Any, about: dict[str, Any]) -> None:
    """Write a model alone, whole or not at all, with what is to be known of it."""

    def fill(to: Path) -> None:
        _fill_model(to, model, tokenizer)
        (to / "score.json").write_text(json.dumps(about) + "\n", encoding="utf-8")

    write_directory(path, fill)


def require_room(directory: Path, model: Any, *, checkpoints: int) -> None:
    """See that checkpoints can be written, before hours of training find out.

    Raises:
        OSError: the directory cannot be made or written to, or has too little room.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise OSError(
            f"cannot write to {str(directory)!r}: {error.strerror}. Give another out_dir"
        ) from error
    # The weights, and Adam's two moments of each.
    trained = [p for p in model.parameters() if p.requires_grad]
    size = 3 * sum(p.numel() * p.element_size() for p in trained)
    free = shutil.disk_usage(directory).free
    if free < checkpoints * size:
        raise OSError(
            f"{str(directory)!r} has {free / 2**20:.1f} MiB of free disk, and the checkpoints need "
            f"{checkpoints * size / 2**20:.1f}. Make room, lower keep_checkpoints, or give another "
            "out_dir"
        )


def load_checkpoint(path: str | Path, model: Any, optimizer: Any, reference: Any = None) -> State:
    """Put a checkpoint's weights, optimizer state and random state in place.

    Args:
        path: of the checkpoint.
        model: gets its weights.
        optimizer: gets its state.
        reference: something with ``load(path)``; it gets its state where the checkpoint has one.

    Raises:
        DamagedCheckpoint: files of it are missing, cut short or changed.
        CheckpointError: it is of another model.
    """
    path = Path(path)
    found = read_state(path)
    try:
        chosen = path / "tasks.json"
        tasks = json.loads(chosen.read_text(encoding="utf-8")) if chosen.exists() else None
        buffer = Buffer.load(path / _BUFFER) if (path / _BUFFER).exists() else None
        saved = torch.load(path / "optimizer.pt", weights_only=True, map_location="cpu")
        # Through transformers, which knows where names on disk differ from those in memory.
        load_weights(model, path)
        optimizer.load_state_dict(saved["optimizer"])
        if reference is not None and (path / _REFERENCE).exists():
            reference.load(path / _REFERENCE)
    except (OSError, RuntimeError, ValueError, KeyError, SafetensorError) as error:
        raise CheckpointError(
            f"{str(path)!r} is no checkpoint of this model: {error}. Load the model that the run "
            "began with, or remove the checkpoint to go on from the one before"
        ) from error
    torch.set_rng_state(saved["rng"])
    return State(step=found["step"], config=found["config"], tasks=tasks, buffer=buffer)


def read_state(path: Path) -> dict[str, Any]:
    """Return what ``state.json`` says, if all files are as they were written.

    Raises:
        DamagedCheckpoint: they are not.
    """
    try:
        found: dict[str, Any] = json.loads((path / "state.json").read_text(encoding="utf-8"))
        for name, size in found.get("files", {}).items():
            there = (path / name).stat().st_size
            if there != size:
                raise ValueError(f"{name} has {there} bytes instead of {size}")
        for name, digest in found.get("sha256", {}).items():
            if _digest(path / name) != digest:
                raise ValueError(f"{name} is not what was written: its SHA-256 is another")
    except (OSError, ValueError) as error:
        raise DamagedCheckpoint(
            f"{str(path)!r} is damaged: {error}. Remove it to go on from the one before"
        ) from error
    return found


def list_checkpoints(directory: str | Path) -> list[Path]:
    """Whole checkpoints of a run, oldest first."""
    root = Path(directory)
    names = [m for p in root.iterdir() if (m := _NAME.fullmatch(p.name))] if root.is_dir() else []
    return [root / m[0] for m in sorted(names, key=lambda m: (int(m[1]), int(m[2] or 0)))]


def versions() -> dict[str, str]:
    """Of what a run's bits depend on."""
    try:
        mine = version("assay")
    except PackageNotFoundError:  # run from a checkout that is not installed
        mine = "unknown"
    return {
        "assay": mine,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def _fill(
    path: Path, model: Any, tokenizer: Any, optimizer: Any, state: State, reference: Any
) -> None:
    _fill_model(path, model, tokenizer)
    torch.save(
        {"optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, path / "optimizer.pt"
    )
    if state.tasks is not None:
        (path / "tasks.json").write_text(json.dumps(state.tasks), encoding="utf-8")
    if state.buffer is not None:
        state.buffer.save(path / _BUFFER)
    if reference is not None:
        reference.save(path / _REFERENCE)
    written = sorted(p for p in path.rglob("*") if p.is_file())
    record = {
        "step": state.step,
        "updates": state.buffer.done if state.buffer else 0,
        "config": redact(state.config),
        "versions": versions(),
        "files": {str(p.relative_to(path)): p.stat().st_size for p in written},
        "sha256": {str(p.relative_to(path)): _digest(p) for p in written},
    }
    (path / "state.json").touch(0o600)
    (path / "state.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fill_model(path: Path, model: Any, tokenizer: Any) -> None:
    save_weights(model, path)
    tokenizer.save_pretrained(path)
