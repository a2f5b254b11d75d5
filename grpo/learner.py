"""The training loop: collect groups, compare within them, update, and again."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from ..envs import EpisodeGroup
from .arithmetic.sums import merge_sums
from .config import GRPOConfig
from .credit import credit, reads_policy, rows_of
from .model.batch import Row
from .model.forward import choose_forward
from .model.passes import read_rows, with_reference
from .model.reference import Reference, make_reference
from .run.checkpoint import (
    CheckpointError,
    State,
    list_checkpoints,
    load_checkpoint,
    require_room,
    save_checkpoint,
)
from .run.evaluate import Kept, Rollout, Score, evaluate
from .run.interrupt import interrupt_later
from .sampling.policy import ModelPolicy
from .sampling.random_numbers import derive_seed
from .update import accumulate_gradient, minibatches, teaching, update_metrics
from .watch.log import FILE, MetricsLog, read_metrics
from .watch.report import Alarm, Progress, filter_metrics, rollout_metrics

_log = logging.getLogger(__name__)
_MAY_CHANGE = ("steps", "eval_every", "save_every", "keep_checkpoints", "max_none_share")


class TooManyUnscored(RuntimeError):
    """So many episodes have no reward that training would follow what is left by accident."""


class NotFinite(RuntimeError):
    """The loss or its gradient is infinite or NaN; it has not reached the weights."""


class TrainingAlarm(UserWarning):
    """Training goes on, but there is nothing in the rewards to learn from."""


class Learner:
    """Trains a causal LM on groups of episodes by GRPO (DeepSeekMath, arXiv 2402.03300).

    Args:
        model: a causal LM, trained in place, in eval mode throughout: dropout would make the
            policy that is trained another than the one that sampled.
        tokenizer: the model's.
        rollout: ``(policy, step)`` to the groups of a training step, steps counted from 1. It
            must choose its tasks by the step alone, or keep a state, as :class:`SampledTasks` does.
        config: the settings.
        out_dir: for ``checkpoints/``, ``metrics.jsonl`` and ``tensorboard/``.
        held_out: as ``rollout``, for the tasks of evaluation.
        resume: go on from the newest checkpoint in ``out_dir``.
        progress: show a progress bar where there is a terminal.
        on_step: called with each row of metrics.

    Raises:
        CheckpointError: ``out_dir`` holds a run that would be mixed with this one, or, to
            resume, holds none or one of other settings.
        OSError: ``out_dir`` cannot be written to, or its disk is too full for the checkpoints.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        rollout: Rollout,
        config: GRPOConfig,
        out_dir: str | Path,
        *,
        held_out: Rollout | None = None,
        resume: bool = False,
        progress: bool = True,
        on_step: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self.rollout, self.held_out = rollout, held_out
        self.config, self.out_dir = config, Path(out_dir)
        self.step = 0
        self._whole = True  # False while the weights are between two steps
        self._show, self._on_step, self._stalled = progress, on_step, Alarm()
        self._sampler = {
            "max_new_tokens": config.max_new_tokens,
            "temperature": config.temperature,
            "rows_per_batch": config.rows_per_batch,
        }
        self.optimizer = torch.optim.AdamW(
            [p for p in model.parameters() if p.requires_grad],
            lr=config.learning_rate,
            betas=(0.9, 0.999),
            weight_decay=config.weight_decay,
            fused=True,
        )
        self._resumed = resume
        kept = self._kept_checkpoints(resume)
        wanted = config.keep_checkpoints + 1 - len(kept) if config.save_every else 1
        require_room(self.out_dir, model, checkpoints=max(1, wanted))
        self.forward_name, self._forward = choose_forward(model)
        _log.info("log-probabilities by the %r forward", self.forward_name)
        if resume:
            self._resume(kept[-1])
        self.reference = _reference(model, self.out_dir, resume) if config.beta else None

    def train(self) -> None:
        """Train up to ``config.steps``.

        A checkpoint of the last whole step is left however this ends: at the end, at Ctrl-C,
        or where an environment or the learner raises. (Only where something raises between two
        optimizer steps of one rollout is there none: those weights belong to no step.)

        Raises:
            KeyboardInterrupt: at Ctrl-C, after the checkpoint is written.
            TooManyUnscored: more than ``max_none_share`` of a rollout has no reward.
            NotFinite: the gradient is infinite or NaN.
        """
        resumed_at = self.step if self._resumed else None
        progress = Progress(self.config.steps, self.step, show=self._show)
        with MetricsLog(self.out_dir, resume_step=resumed_at) as log, progress:
            try:
                if self.step == 0:
                    self._write(log, progress, {"step": 0, **self._evaluate(0)})
                while self.step < self.config.steps:
                    self._train_step(log, progress)
                    if self.config.save_every and self.step % self.config.save_every == 0:
                        self.save()
            finally:
                if self._whole:
                    self.save()

    def save(self) -> Path:
        """Write a checkpoint of the steps done so far, and return its path."""
        tasks = self.rollout.state_dict(self.step) if isinstance(self.rollout, Kept) else None
        state = State(self.step, self.config.to_json(), tasks)
        with interrupt_later():
            return save_checkpoint(
                self._checkpoints,
                self.model,
                self.tokenizer,
                self.optimizer,
                state,
                keep=self.config.keep_checkpoints,
            )

    def policy(self, *, seed: int, **settings: Any) -> ModelPolicy:
        """The model as it is now, as a policy; ``settings`` override those of the config."""
        return ModelPolicy(self.model, self.tokenizer, seed=seed, **{**self._sampler, **settings})

    def _train_step(self, log: MetricsLog, progress: Progress) -> None:
        """Collect, update, evaluate where it is due, and log."""
        step = self.step + 1
        started = time.perf_counter()
        groups = self._collect(step)
        collected = time.perf_counter()
        rows = self._rows(groups)
        row: dict[str, Any] = {}
        try:
            with interrupt_later():
                updated = self._update(rows, step)
                found = {**rollout_metrics(groups), **filter_metrics(self.rollout)}
                row = {"step": step, **found, **updated}
                self.step, self._whole = step, True
            row["seconds/rollout"] = collected - started
            row["seconds/update"] = time.perf_counter() - collected
            self._alarm(row)
            row.update(self._evaluate(step))
        finally:  # a step that is done has its row, whatever stops the run
            if row:
                self._write(log, progress, row)

    def _collect(self, step: int) -> Sequence[EpisodeGroup]:
        """Roll out, and refuse a rollout in which too much is unscored."""
        groups = self.rollout(self.policy(seed=derive_seed(self.config.seed, step)), step)
        total, masked = sum(len(g.episodes) for g in groups), sum(g.masked for g in groups)
        if not total:
            raise ValueError(f"the rollout of step {step} gave no episodes: expected at least one")
        if masked / total > self.config.max_none_share:
            reasons = Counter(
                f"{e.status.value}: {e.verdict.reason}"
                for g in groups
                for e in g.episodes
                if e.reward is None
            )
            raise TooManyUnscored(
                f"step {step}: {masked} of {total} episodes have no reward, more than the share of "
                f"{self.config.max_none_share} that max_none_share allows. Most common: "
                f"{reasons.most_common(1)[0][0]!r}. Mend that and resume; no update was made"
            )
        return groups

    def _rows(self, groups: Sequence[EpisodeGroup]) -> list[Row]:
        """Rows of all episodes that have a reward, with their advantages."""
        rows, model, forward = rows_of(groups), self.model, self._forward
        heat, budget = self.config.temperature, self.config.tokens_per_batch
        if self.reference is not None:
            rows = with_reference(rows, self.reference, forward, temperature=heat, budget=budget)
        reading = None
        if reads_policy(self.config):
            reading = read_rows(model, forward, rows, temperature=heat, budget=budget)
        return credit(groups, rows, self.config, reading)

    def _update(self, rows: Sequence[Row], step: int) -> dict[str, float]:
        """Take the optimizer steps that a rollout is good for."""
        rate = self.config.learning_rate * min(1.0, step / max(1, self.config.warmup_steps))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        sums: dict[str, float] = {}
        norms = []
        for part in minibatches(rows, self.config, step):
            if not teaching(part, self.config):
                continue  # nothing to learn from; momentum alone must not move the weights
            self.optimizer.zero_grad(set_to_none=True)
            found = accumulate_gradient(self.model, self._forward, part, self.config)
            merge_sums(sums, found)
            norms.append(self._optimizer_step(step, found["loss"]))
        return update_metrics(sums, norms, rate)

    def _optimizer_step(self, step: int, loss: float) -> float:
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm)
        # The loss too: a bound cuts the gradient of a ratio that is no number to zero.
        if not math.isfinite(loss) or not torch.isfinite(norm):
            raise NotFinite(
                f"step {step}: the loss is {loss} and the gradient's length {float(norm)}; "
                "nothing has reached the weights. Lower learning_rate, or raise warmup_steps, "
                "and resume"
            )
        self._whole = False
        self.optimizer.step()
        return float(norm)

    def _evaluate(self, step: int) -> dict[str, float]:
        """Held-out numbers, where they are due: at the start, every few steps, at the end."""
        every = self.config.eval_every
        if self.held_out is None or not every:
            return {}
        if step % every and step != self.config.steps:
            return {}
        return _held_out(self.score(step=step))

    def score(self, *, step: int = 0) -> Score:
        """Evaluate the model as it is now; the same sampling seed every time.

        Raises:
            ValueError: the learner was given no held-out tasks.
        """
        if self.held_out is None:
            raise ValueError("the learner has no held-out tasks: pass held_out")
        return evaluate(self.policy(seed=derive_seed(self.config.seed)), self.held_out, step=step)

    def _alarm(self, row: dict[str, Any]) -> None:
        message = self._stalled.check(row)
        if message is not None:
            row["alarm"] = message
            warnings.warn(f"step {row['step']}: {message}", TrainingAlarm, stacklevel=3)

    def _write(self, log: MetricsLog, progress: Progress, row: dict[str, Any]) -> None:
        log.write(row)
        progress.update(row)
        if self._on_step is not None:
            self._on_step(row)

    @property
    def _checkpoints(self) -> Path:
        return self.out_dir / "checkpoints"

    def _kept_checkpoints(self, resume: bool) -> list[Path]:
        """Those of the run that is resumed; refuse to resume nothing, and to mix two runs."""
        found = list_checkpoints(self._checkpoints)
        if resume and not found:
            raise CheckpointError(
                f"nothing to resume: {str(self._checkpoints)!r} holds no checkpoint. Start anew, "
                "without resume and in another out_dir"
            )
        if not resume and (found or (self.out_dir / FILE).exists()):
            raise CheckpointError(
                f"{str(self.out_dir)!r} already holds a run: resume it, or give another out_dir"
            )
        return found

    def _resume(self, checkpoint: Path) -> None:
        state = load_checkpoint(checkpoint, self.model, self.optimizer)
        mine = self.config.to_json()
        changed = [k for k in mine if k not in _MAY_CHANGE and state.config.get(k) != mine[k]]
        if changed:
            before = {k: state.config.get(k) for k in changed}
            raise CheckpointError(
                f"{str(checkpoint)!r} was made with other settings: {before}. Resume with those; "
                f"only {', '.join(_MAY_CHANGE)} may change"
            )
        self.step = state.step
        if isinstance(self.rollout, Kept):
            if state.tasks is None:
                raise CheckpointError(
                    f"{str(checkpoint)!r} keeps no state of its tasks: resume with the tasks that "
                    "the run began with"
                )
            self.rollout.load_state_dict(state.tasks)
        metrics = self.out_dir / FILE
        for row in read_metrics(metrics) if metrics.exists() else ():
            if 0 < row["step"] <= state.step:
                self._stalled.check(row)  # it counts rollouts in a row


def _reference(model: Any, out_dir: Path, resume: bool) -> Reference:
    """The model as it was at the start of the run, kept beside it for when it is resumed."""
    path = out_dir / "reference"
    reference = make_reference(model)
    if resume:
        reference.load(path)
    else:
        reference.save(path)
    return reference


def _held_out(score: Score) -> dict[str, float]:
    return {
        "held_out/pass_at_1": score.pass_at_1,
        "held_out/reward": score.reward,
        "held_out/scored": score.scored,
        "held_out/masked": score.masked,
        "held_out/truncated": score.truncated,
    }
