"""A training loop over examples, and what a run of it keeps on disk."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import torch

from assay.grpo import CheckpointError, begun
from assay.grpo.guards import require_finite
from assay.grpo.log import MetricsLog
from assay.verifiers.atomic_io import replacing, write_json

Metrics = dict[str, Any]
_CHECKPOINT, _MAY_CHANGE = "checkpoint.pt", ("steps", "epochs", "save_every", "eval_every")


@dataclass(frozen=True, slots=True, kw_only=True)
class FitConfig:
    """Settings of training on examples.

    Attributes:
        epochs: passes over the examples; the last step may reach into the next one.
        steps: optimizer steps, instead of ``epochs``.
        batch_size: examples of an optimizer step. All are seen once before any is seen twice.
        learning_rate: of AdamW, after the warm-up. The default suits SFT of a pretrained model;
            DPO needs a tenth or less.
        warmup_steps: steps over which it rises linearly.
        weight_decay: of AdamW.
        max_grad_norm: longer gradients are scaled down to this length.
        tokens_per_batch: padded tokens of one forward and backward pass. It changes memory and
            speed, not the gradient.
        save_every: steps between checkpoints; 0 for only at the end.
        seed: of the order.

    Raises:
        ValueError: a setting is out of its range.
    """

    epochs: int = 1
    steps: int | None = None
    batch_size: int = 64
    learning_rate: float = 1e-5
    warmup_steps: int = 10
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    tokens_per_batch: int = 16384
    save_every: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "tokens_per_batch"):
            self._require(name, getattr(self, name) >= 1, "at least 1")
        for name in ("warmup_steps", "weight_decay", "save_every"):
            self._require(name, getattr(self, name) >= 0, "at least 0")
        for name in ("learning_rate", "max_grad_norm"):
            self._require(name, getattr(self, name) > 0, "above 0")
        self._require("steps", self.steps is None or self.steps >= 0, "None or at least 0")

    def _require(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}")

    def steps_for(self, examples: int) -> int:
        """Return the number of optimizer steps on so many examples."""
        if self.steps is not None:
            return self.steps
        return math.ceil(self.epochs * examples / min(self.batch_size, examples))


def fit(
    model: Any,
    tokenizer: Any,
    examples: int,
    gradient: Callable[[Sequence[int]], Metrics],
    config: FitConfig,
    *,
    out_dir: str | Path | None = None,
    resume: bool = False,
    on_step: Callable[[Metrics], bool | None] | None = None,
) -> list[Metrics]:
    """Take optimizer steps on batches of examples.

    Which examples a step takes depends on the step and the seed alone, so a resumed run ends
    with the bits of the unbroken one.

    Args:
        model: trained in place, in eval mode: no dropout.
        tokenizer: saved beside the trained model.
        examples: how many there are, at least 1.
        gradient: adds to the model's gradient for the examples with these numbers, and returns
            metrics, ``loss`` among them.
        config: the settings.
        out_dir: of the run, see :class:`Run`; nothing is written without it.
        resume: go on from the checkpoint in ``out_dir``.
        on_step: called with each row of metrics; true ends the run.

    Returns:
        Metrics of the steps that were taken.

    Raises:
        CheckpointError: ``out_dir`` holds another run, or nothing to resume.
        NotFinite: a gradient is infinite or NaN; it has not reached the weights.
        ValueError: there is no example.
    """
    if examples < 1:
        raise ValueError("training needs at least one example, got none")
    parameters = [p for p in model.eval().parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, weight_decay=config.weight_decay, fused=True)
    optimizer.zero_grad(set_to_none=True)
    found: list[Metrics] = []
    parts = {"model": model, "optimizer": optimizer}
    with Run(out_dir, parts, asdict(config), resume=resume) as run:
        steps = config.steps_for(examples)
        batches = islice(_batches(examples, config.batch_size, config.seed), run.step, steps)
        for step, numbers in enumerate(batches, start=run.step + 1):
            rate = config.learning_rate * min(1.0, step / max(1, config.warmup_steps))
            metrics = gradient(numbers)
            most = config.max_grad_norm
            norm = descend(optimizer, metrics["loss"], rate=rate, max_norm=most, step=step)
            found.append({"step": step, **metrics, "grad_norm": norm, "lr": rate})
            last = (on_step is not None and bool(on_step(found[-1]))) or step == steps
            every = config.save_every
            run.write(found[-1], save=last or (every > 0 and step % every == 0))
            if last:
                break
        run.finish(model, tokenizer)
    return found


def descend(
    optimizer: torch.optim.Optimizer, loss: float, *, rate: float, max_norm: float, step: int
) -> float:
    """Take an optimizer step by the gradient that is there, clear it, and return its length.

    Raises:
        NotFinite: the loss or the gradient is infinite or NaN; it has not reached the weights.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, max_norm))
    require_finite(loss, norm, step)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm


class Run:
    """A run on disk: ``config.json``, ``metrics.jsonl``, ``checkpoint.pt``, at the end ``model/``.

    Args:
        out_dir: where; nothing is written with ``None``.
        parts: modules and optimizers, whose state the checkpoint holds.
        settings: of the run, as plain values.
        resume: go on from the checkpoint, or begin again if a killed run has left none.

    Attributes:
        step: steps that are done.

    Raises:
        CheckpointError: ``out_dir`` holds another run, or nothing to resume.
        ValueError: several processes train together, who would all write.
    """

    def __init__(
        self,
        out_dir: str | Path | None,
        parts: Mapping[str, Any],
        settings: Mapping[str, Any],
        *,
        resume: bool,
    ) -> None:
        if os.environ.get("WORLD_SIZE", "1") != "1":
            raise ValueError("this trainer is one process: start it without torchrun")
        self._parts, self.step = parts, 0
        self._settings = {k: v for k, v in settings.items() if k not in _MAY_CHANGE}
        self._root = None if out_dir is None else Path(out_dir)
        self._log: MetricsLog | None = None
        if self._root is None:
            return
        if begun(self._root) and not resume:
            raise CheckpointError(
                f"{str(out_dir)!r} already holds a run: resume it, or give another out_dir"
            )
        if resume and not begun(self._root):
            raise CheckpointError(f"nothing to resume in {str(out_dir)!r}: start without resume")
        if (self._root / _CHECKPOINT).exists():
            self._load(self._root / _CHECKPOINT)
        write_json(self._root / "config.json", {"config": dict(settings)}, mode=0o600)
        self._resume_step = (self.step or -1) if resume else None

    def __enter__(self) -> Self:
        if self._root is not None:
            self._log = MetricsLog(self._root, resume_step=self._resume_step)
        return self

    def __exit__(self, *_: object) -> None:
        if self._log is not None:
            self._log.close()

    def write(self, row: Metrics, *, save: bool) -> None:
        """Log a step that is done, and write the checkpoint if asked for."""
        self.step = row["step"]
        if self._root is None or self._log is None:
            return
        self._log.write(row)
        if save:
            state = {name: part.state_dict() for name, part in self._parts.items()}
            with replacing(self._root / _CHECKPOINT) as path:
                torch.save({"step": self.step, "settings": self._settings, "parts": state}, path)

    def finish(self, model: Any, tokenizer: Any) -> None:
        """Write the trained model where ``load_model`` reads it."""
        if self._root is not None:
            for part in (model, tokenizer):
                part.save_pretrained(self._root / "model")

    def _load(self, path: Path) -> None:
        found = torch.load(path, weights_only=True, map_location="cpu")
        if found["settings"] != self._settings:
            raise CheckpointError(
                f"{str(path)!r} was made with other settings: {found['settings']}. Resume "
                f"with those; only {', '.join(_MAY_CHANGE)} may change"
            )
        for name, part in self._parts.items():
            part.load_state_dict(found["parts"][name])
        self.step = found["step"]


def _batches(examples: int, size: int, seed: int) -> Iterator[list[int]]:
    """Yield the numbers of each step's examples, without end: one shuffled pass after another."""
    generator = torch.Generator().manual_seed(seed)
    order: list[int] = []
    while True:
        if len(order) < size:
            order += torch.randperm(examples, generator=generator).tolist()
        yield order[:size]
        order = order[size:]
