"""A training loop over examples that are there already: what SFT, RFT and DPO share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import torch

from ..model.batch import Batch, Row, by_prompt, micro_batches
from ..model.forward import Forward, choose_forward
from ..run.checkpoint import State, load_checkpoint, save_checkpoint
from ..run.guards import NotFinite
from ..run.resume import find_start, require_same, write_config
from ..watch.log import MetricsLog

Metrics = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitConfig:
    """Settings of training on examples.

    Attributes:
        epochs: passes over the examples; the last step may reach into the next one.
        steps: optimizer steps, instead of ``epochs``.
        batch_size: examples of an optimizer step: replies, or DPO's pairs. All are seen once
            before any is seen twice.
        learning_rate: of AdamW, after the warm-up. The default suits SFT of a pretrained model;
            DPO wants a tenth or less.
        warmup_steps: steps over which it rises linearly.
        weight_decay: of AdamW.
        max_grad_norm: longer gradients are scaled down to this length.
        tokens_per_batch: padded tokens of one forward and backward pass. It changes memory and
            speed, not the gradient.
        save_every: steps between checkpoints; 0 for only at the end. None without ``out_dir``.
        keep_checkpoints: how many of the newest are kept.
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
    keep_checkpoints: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "tokens_per_batch", "keep_checkpoints"):
            self._require(name, getattr(self, name) >= 1, "at least 1")
        for name in ("warmup_steps", "weight_decay", "save_every"):
            self._require(name, getattr(self, name) >= 0, "at least 0")
        for name in ("learning_rate", "max_grad_norm"):
            self._require(name, getattr(self, name) > 0, "above 0")
        self._require("steps", self.steps is None or self.steps >= 0, "None or at least 0")

    def _require(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}")

    def to_json(self) -> dict[str, Any]:
        """A dict of plain JSON values."""
        return asdict(self)

    def steps_for(self, examples: int) -> int:
        """Optimizer steps on so many examples."""
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

    Which examples a step takes depends on the step and the seed alone, so a run that is
    resumed ends with the weights of the unbroken one, to the bit.

    Args:
        model: trained in place, in eval mode: no dropout.
        tokenizer: goes into checkpoints.
        examples: how many there are, at least 1.
        gradient: adds to the model's gradient for the examples with these numbers, and returns
            metrics, ``loss`` among them.
        config: the settings.
        out_dir: for ``metrics.jsonl`` and ``checkpoints/``; nothing is written without it.
        resume: go on from the newest whole checkpoint in ``out_dir``.
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
    optimizer = torch.optim.AdamW(
        parameters, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
    )
    found: list[Metrics] = []
    with _Run(out_dir, (model, tokenizer, optimizer), config, resume=resume) as run:
        steps = config.steps_for(examples)
        batches = islice(_batches(examples, config.batch_size, config.seed), run.done, steps)
        for step, numbers in enumerate(batches, start=run.done + 1):
            rate = config.learning_rate * min(1.0, step / max(1, config.warmup_steps))
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad(set_to_none=True)
            metrics = gradient(numbers)
            norm = float(torch.nn.utils.clip_grad_norm_(parameters, config.max_grad_norm))
            if not math.isfinite(metrics["loss"]) or not math.isfinite(norm):
                raise NotFinite(
                    f"step {step}: the loss is {metrics['loss']} and the gradient's length {norm}; "
                    "nothing has reached the weights. Lower learning_rate, or raise warmup_steps"
                )
            optimizer.step()
            found.append({"step": step, **metrics, "grad_norm": norm, "lr": rate})
            last = (on_step is not None and bool(on_step(found[-1]))) or step == steps
            run.write(found[-1], save=last)
            if last:
                break
    return found


class _Run:
    """What a run keeps on disk: nothing without a directory.

    Attributes:
        done: steps that were done before.
    """

    def __init__(
        self,
        out_dir: str | Path | None,
        parts: tuple[Any, Any, Any],
        config: FitConfig,
        *,
        resume: bool,
    ) -> None:
        self._parts, self._config, self.done = parts, config, 0
        self._settings = {**config.to_json(), "epochs": 0}  # it may change, as steps may
        self._log: MetricsLog | None = None
        if out_dir is None:
            return
        root = Path(out_dir)
        self._checkpoints = root / "checkpoints"
        start = find_start(root, resume=resume)
        if start is not None:
            state = load_checkpoint(start, parts[0], parts[2])
            require_same(self._settings, state.config, start)
            self.done = state.step
        write_config(root, config.to_json())
        self._log = MetricsLog(root, resume_step=self.done if resume else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._log is not None:
            self._log.close()

    def write(self, row: Metrics, *, save: bool) -> None:
        """Log a step, and write a checkpoint where it is due or asked for."""
        if self._log is None:
            return
        self._log.write(row)
        every, step = self._config.save_every, row["step"]
        if save or (every and step % every == 0):
            state, keep = State(step, self._settings), self._config.keep_checkpoints
            save_checkpoint(self._checkpoints, *self._parts, state, keep=keep)


def likelihood_gradient(
    model: Any,
    forward: Forward,
    rows: Sequence[Row],
    *,
    denominator: float,
    budget: int,
    temperature: float = 1.0,
) -> float:
    """Add the gradient of ``-sum_it A_it log p_it / denominator`` to the model's.

    With A of 1 that is supervised training. DeepSeekMath (arXiv 2402.03300, section 5.2) puts
    all of SFT, RFT, DPO, PPO and GRPO this way: they differ in the coefficient A of the gradient
    of log p.

    Args:
        model: whose parameters' ``grad`` is added to.
        forward: see :mod:`assay.grpo.model.forward`.
        rows: with the coefficients as their ``advantages``.
        denominator: of the whole optimizer step, so that it does not matter how rows are cut.
        budget: padded tokens of one forward and backward pass.
        temperature: divides the logits.

    Returns:
        The loss.
    """
    total = 0.0
    for groups in micro_batches(by_prompt(rows), budget=budget):
        batch = Batch.of(groups, device=model.device)
        logprobs, _ = forward(model, batch, temperature)
        weighed = (logprobs * batch.advantages).masked_fill(~batch.mask, 0.0)
        loss = -weighed.sum() / denominator
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        total += float(loss.detach())
    return total


def forward_for(model: Any, rows: Sequence[Row]) -> Forward:
    """The forward that fits: there is a prefix to share only where prompts repeat."""
    repeated = len({row.prompt for row in rows}) < len(rows)
    return choose_forward(model, among=("shared", "padded") if repeated else ("padded",))[1]


def _batches(examples: int, size: int, seed: int) -> Iterator[list[int]]:
    """Numbers of each step's examples, without end: one shuffled pass after another."""
    generator = torch.Generator().manual_seed(seed)
    order: list[int] = []
    while True:
        if len(order) < size:
            order += torch.randperm(examples, generator=generator).tolist()
        yield order[:size]
        order = order[size:]
