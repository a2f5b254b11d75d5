"""Checkpoints, and the directory of a run: all that it needs to go on as if it had never stopped.

A checkpoint is a directory ``step-000123``:

- the model and the tokenizer as ``save_pretrained`` writes them (safetensors), so that any tool
  loads a checkpoint as a model;
- ``optimizer-00001-of-00002.safetensors`` ...: each process's part of the optimizer's state, which
  any number of processes can read;
- ``tasks.json``: the state of what chooses tasks, if it has one;
- ``reference/``: the reference model, if it is not the one that the run began with;
- ``state.json``: step, configuration, versions, and the sizes and SHA-256 digests of all other
  files.

It is written under another name and renamed when whole: a directory with that name is complete.
Whoever kills the process, or fills the disk, finds the checkpoint before it as it was.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import math
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor

from ..sandbox.redaction import redact
from ..verifiers.atomic_io import remove_directory, sweep, write_directory, write_json
from .distributed import World
from .guards import Ending
from .loading import load_weights, save_weights
from .records import FILE, read_metrics, versions

_log = logging.getLogger(__name__)
_NAME = re.compile(r"step-(\d{6,})")
_CONFIG, _LOCK, _REFERENCE = "config.json", ".lock", "reference"
METRIC = "held_out/reward"
MAY_CHANGE = (
    *("steps", "eval_every", "save_every", "keep_checkpoints", "keep_best", "early_stop"),
    *("max_none_share", "max_rollout_s", "max_mismatch", "max_drift", "alarm_patience"),
    *("learning_rate", "warmup_steps", "schedule", "max_grad_norm"),
)
"""Settings that may differ if a run is resumed."""


class CheckpointError(ValueError):
    """A checkpoint is missing, or is not one of this run."""


class DamagedCheckpoint(CheckpointError):
    """Files of a checkpoint are missing, cut short or changed."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged; the one before it is used."""


@dataclass(frozen=True, slots=True)
class State:
    """What a checkpoint holds beside the weights and the optimizer.

    Attributes:
        step: steps done.
        config: settings of the run, as JSON values.
        tasks: the state of what chooses tasks, as JSON values, if it has one.
        row: metrics of the last step, if it was updated but not evaluated and logged yet.
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
        for i, part in enumerate(parts):
            os.replace(part, to / f"optimizer-{i + 1:05d}-of-{len(parts):05d}.safetensors")
        if state.tasks is not None:
            (to / "tasks.json").write_text(json.dumps(state.tasks), encoding="utf-8")
        if reference is not None:
            reference.save(to / _REFERENCE)
        _write_state(to, state)

    try:
        if not world.decide(path.exists):
            if sharded:
                world.together(lambda: _save_optimizer(optimizer, parts[world.rank]))
            elif world.is_main:
                _save_optimizer(optimizer, parts[0])
            world.decide(lambda: write_directory(path, write))
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
    *,
    verify: bool = True,
) -> State:
    """Put a checkpoint's weights, optimizer state and random state in place.

    Args:
        path: of the checkpoint.
        model: gets its weights.
        optimizer: gets its state, or this process's part of it.
        reference: something with ``load(path)``; it gets its state if the checkpoint has one.
        verify: compare the files' digests with what was written.

    Raises:
        DamagedCheckpoint: files of it are missing, cut short or changed.
        CheckpointError: it is of another model.
    """
    found = _read_state(path, verify=verify)
    try:
        chosen = path / "tasks.json"
        tasks = json.loads(chosen.read_text(encoding="utf-8")) if chosen.exists() else None
        load_weights(model, path)
        _load_optimizer(optimizer, sorted(path.glob("optimizer-*.safetensors")))
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


def _read_state(path: Path, *, verify: bool = True) -> dict[str, Any]:
    """What ``state.json`` says, if all files have the sizes, and the digests, it lists."""
    try:
        found: dict[str, Any] = json.loads((path / "state.json").read_text(encoding="utf-8"))
        for name, size in found.get("files", {}).items():
            if (there := (path / name).stat().st_size) != size:
                raise ValueError(f"{name} has {there} bytes instead of {size}")
        for name, digest in found.get("sha256", {}).items() if verify else ():
            if _digest(path / name) != digest:
                raise ValueError(f"{name} is not what was written: its SHA-256 is another")
    except (OSError, ValueError) as error:
        raise DamagedCheckpoint(
            f"{str(path)!r} is damaged: {error}. Remove it to go on from the one before"
        ) from error
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_checkpoints(directory: str | Path) -> list[Path]:
    """Whole checkpoints of a run, oldest first."""
    root = Path(directory)
    names = [m for p in root.iterdir() if (m := _NAME.fullmatch(p.name))] if root.is_dir() else []
    return [root / m[0] for m in sorted(names, key=lambda m: int(m[1]))]


def is_sharded(optimizer: torch.optim.Optimizer) -> bool:
    """Whether this process has but a part of the optimizer's state."""
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
        raise ValueError("there is no optimizer-*.safetensors in it")
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


# The directory of a run

_held: set[Path] = set()  # by this process, which the kernel would let in again


@contextmanager
def alone_in(out_dir: Path) -> Iterator[None]:
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
    sizes = [p.numel() * p.element_size() for p in model.parameters() if p.requires_grad]
    needed, free = 3 * sum(sizes) * checkpoints, shutil.disk_usage(directory).free
    if free < needed:
        raise OSError(
            f"{str(directory)!r} has {free / 2**20:.1f} MiB of free disk, and the checkpoints need "
            f"{needed / 2**20:.1f}. Make room, lower keep_checkpoints, or give another out_dir"
        )


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
    if (out_dir / _LOCK).exists():
        with alone_in(out_dir):
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
            _read_state(path)
        except DamagedCheckpoint as error:
            aside = path.with_name(f"damaged-{path.name}")
            warnings.warn(f"{error}. It is put aside as {aside.name!r}", CheckpointWarning, 3)
            if aside.exists():
                remove_directory(aside)
            os.replace(path, aside)
            continue
        return path
    damaged = [path.name for path in sorted(checkpoints.glob("damaged-*"))]
    steps = (
        max((row["step"] for row in read_metrics(metrics)), default=0) if metrics.exists() else 0
    )
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
    """See that a run goes on with the settings that it began with, but for some.

    Raises:
        CheckpointError: others have changed.
    """
    known = {k: v for k, v in settings.items() if k in before and k not in MAY_CHANGE}
    if changed := {k: before[k] for k, v in known.items() if before[k] != v}:
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


class EarlyStop:
    """Counts evaluations in a row without a better one; so many end the run, 0 never."""

    def __init__(self, evaluations: int) -> None:
        self._most, self._since, self._best = evaluations, 0, -math.inf

    def check(self, row: Mapping[str, Any]) -> Ending | None:
        """Take a row, with an evaluation or without; say why the run ends, if it does."""
        value = row.get(METRIC)
        if value is None:
            return None
        better = value > self._best  # False for NaN
        self._best, self._since = (value, 0) if better else (self._best, self._since + 1)
        if not self._most or self._since < self._most:
            return None
        return Ending(
            f"{self._since} evaluations in a row were no better than {METRIC} = {self._best:.4g}",
            True,
        )


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
