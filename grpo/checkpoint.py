"""Checkpoints: everything that a run needs to continue to the same bits.

A checkpoint is a directory ``step-000123``:

- the model and the tokenizer as ``save_pretrained`` writes them (safetensors), so that any tool
  loads a checkpoint as a model;
- ``optimizer/00001-of-00002.safetensors`` ...: each process's part of the optimizer's state, which
  any number of processes can read; in a folder, as vLLM takes every safetensors beside the model's
  for weights;
- ``tasks.json``: the state of what chooses tasks, if it has one;
- ``reference/``: the reference model, if it is not the one that the run began with;
- ``state.json``: step, configuration, versions, and the sizes and SHA-256 digests of all other
  files.

It is written under another name and renamed when whole: a directory with that name is complete.
If the process is killed or the disk is full, the checkpoint before it is intact.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor

from ..sandbox.redaction import redact
from ..verifiers.atomic_io import remove_directory, write_directory
from .distributed import World
from .loading import load_weights, save_weights
from .records import versions

_NAME = re.compile(r"step-(\d{6,})")
_REFERENCE = "reference"


class CheckpointError(ValueError):
    """A checkpoint is missing, or is not one of this run."""


class DamagedCheckpoint(CheckpointError):
    """Files of a checkpoint are missing, cut short or changed."""


@dataclass(frozen=True, slots=True)
class State:
    """What a checkpoint holds beside the weights and the optimizer, as JSON values.

    ``tasks`` is the state of what chooses tasks, if it has one; ``row`` the metrics of the last
    step, if it was updated but not evaluated and logged yet.
    """

    step: int
    config: dict[str, Any]
    tasks: dict[str, Any] | None = None
    row: dict[str, Any] | None = None


def save_checkpoint(
    root: Path,
    model: Any,
    tokenizer: Any,
    optimizer: torch.optim.Optimizer,
    state: State,
    *,
    keep: int,
    reference: Any = None,
    world: World | None = None,
) -> Path:
    """Write a checkpoint into a directory, and remove all but the newest ``keep``.

    Every process of ``world`` calls this; of an optimizer in shards, each writes its part. A
    ``reference`` has ``save(path)``. A checkpoint of that step that exists is left as it is.

    Raises:
        OSError: it cannot be written, such as for a full disk; those before it are still there.
    """
    world = world or World.single()
    path = root / f"step-{state.step:06d}"
    sharded = world.size > 1 and is_sharded(optimizer)
    # In folders, which sweep removes whole: safetensors writes to a temporary name of its own.
    partial = [root / f".{path.name}-{i}.partial" for i in range(world.size if sharded else 1)]
    parts = [folder / "optimizer.safetensors" for folder in partial]

    def write(to: Path) -> None:
        save_weights(model, to)
        tokenizer.save_pretrained(to)
        (to / "optimizer").mkdir()
        for i, part in enumerate(parts):
            os.replace(part, to / f"optimizer/{i + 1:05d}-of-{len(parts):05d}.safetensors")
        if state.tasks is not None:
            (to / "tasks.json").write_text(json.dumps(state.tasks), encoding="utf-8")
        if reference is not None:
            reference.save(to / _REFERENCE)
        _write_state(to, state)

    try:
        if not world.on_main(path.exists):
            if sharded:
                world.on_all(lambda: _save_optimizer(optimizer, parts[world.rank]))
            elif world.is_main:
                _save_optimizer(optimizer, parts[0])
            world.on_main(lambda: write_directory(path, write))
    except (OSError, RuntimeError, SafetensorError) as error:  # torch's and safetensors' words
        kept = list_checkpoints(root)
        last = f"The last good one is {str(kept[-1])!r}" if kept else "There is none before it"
        raise OSError(
            f"cannot write the checkpoint {str(path)!r}: {error}. {last}. Make room, and resume"
        ) from error
    finally:
        if world.is_main:
            for folder in partial:
                shutil.rmtree(folder, ignore_errors=True)
    for old in list_checkpoints(root)[:-keep] if world.is_main else ():
        remove_directory(old)
    return path


def load_checkpoint(
    path: Path,
    model: Any,
    optimizer: torch.optim.Optimizer,
    reference: Any = None,
) -> State:
    """Put the weights, optimizer state and random state of a verified checkpoint in place.

    Of an optimizer in shards this process's part is read. A ``reference``, which has
    ``load(path)``, gets its state if the checkpoint has one.

    Raises:
        CheckpointError: it is of another model.
    """
    try:
        found = json.loads((path / "state.json").read_text(encoding="utf-8"))
        chosen = path / "tasks.json"
        tasks = json.loads(chosen.read_text(encoding="utf-8")) if chosen.exists() else None
        load_weights(model, path)
        # The second is where 0.2.0 wrote them.
        parts = list(path.glob("optimizer/*.safetensors")) or path.glob("optimizer-*.safetensors")
        _load_optimizer(optimizer, sorted(parts))
        if reference is not None and (path / _REFERENCE).exists():
            reference.load(path / _REFERENCE)
    except (OSError, RuntimeError, ValueError, KeyError, SafetensorError) as error:
        raise CheckpointError(
            f"{str(path)!r} is no checkpoint of this model: {error}. Load the model that the run "
            "began with, or remove the checkpoint to go on from the one before"
        ) from error
    return State(found["step"], found["config"], tasks, found.get("row"))


def _write_state(path: Path, state: State) -> None:
    written = {str(p.relative_to(path)): p for p in sorted(path.rglob("*")) if p.is_file()}
    record = {
        "step": state.step,
        "row": state.row,
        "config": redact(state.config),
        "versions": versions(),
        "files": {name: p.stat().st_size for name, p in written.items()},
        "sha256": {name: _digest(p) for name, p in written.items()},
    }
    (path / "state.json").touch(0o600)
    (path / "state.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def verify_checkpoint(path: Path) -> None:
    """Require the files that ``state.json`` lists, of the sizes and digests there.

    Raises:
        DamagedCheckpoint: files are missing, cut short or changed.
    """
    try:
        found = json.loads((path / "state.json").read_text(encoding="utf-8"))
        for name, size in found.get("files", {}).items():
            if (there := (path / name).stat().st_size) != size:
                raise ValueError(f"{name} has {there} bytes instead of {size}")
        for name, digest in found.get("sha256", {}).items():
            if _digest(path / name) != digest:
                raise ValueError(f"{name} is not what was written: its SHA-256 is another")
    except (OSError, ValueError) as error:
        raise DamagedCheckpoint(
            f"{str(path)!r} is damaged: {error}. Remove it to go on from the one before"
        ) from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_checkpoints(directory: str | Path) -> list[Path]:
    """List the complete checkpoints of a run, oldest first."""
    root = Path(directory)
    names = [m for p in root.iterdir() if (m := _NAME.fullmatch(p.name))] if root.is_dir() else []
    return [root / m[0] for m in sorted(names, key=lambda m: int(m[1]))]


def is_sharded(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether this process holds only a part of the optimizer's state."""
    return any(isinstance(p, DTensor) for p in _parameters(optimizer))


def _parameters(optimizer: torch.optim.Optimizer) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _save_optimizer(optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Write this process's part of an optimizer's state, and torch's random state.

    A tensor's name is its parameter's place and its own; a sharded one is cut along its first
    dimension. Other values are JSON in the file's metadata.
    """
    tensors, others = {"rng": torch.get_rng_state()}, {}
    for place, parameter in enumerate(_parameters(optimizer)):
        for name, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                mine: Tensor = value.to_local() if isinstance(value, DTensor) else value
                tensors[f"{place}/{name}"] = mine.detach().cpu().contiguous()
            else:
                others[f"{place}/{name}"] = json.dumps(value)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, metadata=others)


def _load_optimizer(optimizer: torch.optim.Optimizer, paths: Sequence[Path]) -> None:
    """Read what any number of processes wrote by :func:`_save_optimizer`; one tensor at a time."""
    if not paths:
        raise ValueError("there is no optimizer/*.safetensors in it")
    parameters = _parameters(optimizer)
    state: dict[int, dict[str, Any]] = {}
    with ExitStack() as stack:
        files = [stack.enter_context(safe_open(path, framework="pt")) for path in paths]
        torch.set_rng_state(files[0].get_tensor("rng"))
        for key, text in (files[0].metadata() or {}).items():
            place, _, name = key.partition("/")
            state.setdefault(int(place), {})[name] = json.loads(text)
        for key in sorted({*files[0].keys()} - {"rng"}):
            place, _, name = key.partition("/")
            parts = [file.get_tensor(key) for file in files]
            value = torch.cat(parts) if parts[0].dim() else parts[0]
            p = parameters[int(place)] if int(place) < len(parameters) else None
            if p is None or (value.dim() and value.shape != p.shape):
                raise ValueError(f"{key} of shape {list(value.shape)} is of another model")
            if value.dim() and isinstance(p, DTensor):
                value = distribute_tensor(
                    value.to(p.device), p.device_mesh, p.placements, src_data_rank=None
                )
            state.setdefault(int(place), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
