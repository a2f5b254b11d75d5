"""Checkpoints: all that a run needs to go on as if it had never stopped.

A checkpoint is a directory ``step-000123``:

- the model and the tokenizer as ``save_pretrained`` writes them (safetensors), so that any tool
  loads a checkpoint as a model;
- ``optimizer.pt``: the optimizer's state and torch's random state, read with
  ``weights_only=True``, which runs no code;
- ``state.json``: step, configuration and versions;
- ``tasks.json``: the state of what chooses tasks, where it has one.

It is written under another name and renamed when whole: a directory with that name is complete.
Checkpoints are taken between steps only, where a rollout has been used up (all of its mu passes
done), so there is no half-used rollout to save.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from ..model.loading import load_weights, save_weights

_NAME = re.compile(r"step-(\d{6,})")


class CheckpointError(ValueError):
    """A checkpoint is missing, or is not one of this run."""


@dataclass(frozen=True, slots=True)
class State:
    """What a checkpoint holds beside the weights and the optimizer.

    Attributes:
        step: steps done.
        config: settings of the run, as JSON values.
        tasks: the state of what chooses tasks, as JSON values, where it has one.
    """

    step: int
    config: dict[str, Any]
    tasks: dict[str, Any] | None = None


def save_checkpoint(
    directory: str | Path, model: Any, tokenizer: Any, optimizer: Any, state: State, *, keep: int
) -> Path:
    """Write ``directory/step-NNNNNN`` and remove all but the newest ``keep``.

    Returns:
        The checkpoint's path. Where it exists already it is left as it is.
    """
    root = Path(directory)
    path = root / f"step-{state.step:06d}"
    if not path.exists():
        temporary = root / f".{path.name}.partial"
        shutil.rmtree(temporary, ignore_errors=True)  # a crash may have left one
        temporary.mkdir(parents=True)
        _fill(temporary, model, tokenizer, optimizer, state)
        _flush(temporary)
        os.replace(temporary, path)
    for old in list_checkpoints(root)[:-keep]:
        shutil.rmtree(old)
    return path


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
    size = 3 * sum(p.numel() * p.element_size() for p in model.parameters())
    free = shutil.disk_usage(directory).free
    if free < checkpoints * size:
        raise OSError(
            f"{str(directory)!r} has {free / 2**20:.1f} MiB of free disk, and the checkpoints need "
            f"{checkpoints * size / 2**20:.1f}. Make room, lower keep_checkpoints, or give another "
            "out_dir"
        )


def load_checkpoint(path: str | Path, model: Any, optimizer: Any) -> State:
    """Put a checkpoint's weights, optimizer state and random state in place.

    Raises:
        CheckpointError: it is not complete, or is of another model.
    """
    path = Path(path)
    try:
        found = json.loads((path / "state.json").read_text(encoding="utf-8"))
        chosen = path / "tasks.json"
        tasks = json.loads(chosen.read_text(encoding="utf-8")) if chosen.exists() else None
        saved = torch.load(path / "optimizer.pt", weights_only=True, map_location="cpu")
        load_weights(model, path)
        optimizer.load_state_dict(saved["optimizer"])
    except (OSError, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{str(path)!r} is no checkpoint of this model: {error}. Load the model that the run "
            "began with, or remove the checkpoint to go on from the one before"
        ) from error
    torch.set_rng_state(saved["rng"])
    return State(step=found["step"], config=found["config"], tasks=tasks)


def list_checkpoints(directory: str | Path) -> list[Path]:
    """Whole checkpoints of a run, oldest first."""
    root = Path(directory)
    found = [p for p in root.iterdir() if _NAME.fullmatch(p.name)] if root.is_dir() else []
    return sorted(found, key=lambda p: int(p.name.split("-")[1]))


def _fill(path: Path, model: Any, tokenizer: Any, optimizer: Any, state: State) -> None:
    save_weights(model, path)
    tokenizer.save_pretrained(path)
    torch.save(
        {"optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, path / "optimizer.pt"
    )
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    record = {"step": state.step, "config": state.config, "versions": versions}
    (path / "state.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if state.tasks is not None:
        (path / "tasks.json").write_text(json.dumps(state.tasks), encoding="utf-8")


def _flush(path: Path) -> None:
    """Have the files on disk before the name says that they are whole."""
    for file in path.rglob("*"):
        if file.is_file():
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
