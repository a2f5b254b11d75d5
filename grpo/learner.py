"""The training loop: collect groups, compare within them, update, and again."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..envs import EpisodeGroup, ExtendingPolicy, Refill
from ..sandbox.redaction import redact
from .config import GRPOConfig
from .credit import credit, flat_share, reads_policy, rows_of
from .distributed.crew import Crew
from .distributed.worker import Worker
from .distributed.world import World
from .loss import merge_sums
from .model.batch import Row
from .model.forward import choose_forward
from .model.passes import reading_drift
from .model.reference import Reference, make_reference
from .run.alone import alone_in
from .run.best import EarlyStop, keep_best
from .run.buffer import Buffer
from .run.checkpoint import (
    CheckpointError,
    State,
    list_checkpoints,
    load_checkpoint,
    require_room,
    save_checkpoint,
)
from .run.evaluate import Kept, Rollout, Score, evaluate
from .run.guards import (
    Ending,
    NothingToLearn,
    Patience,
    RatioExploded,
    TrainingAlarm,
    drift,
    require_finite,
    require_near,
    require_scored,
)
from .run.interrupt import stop_later, terminable
from .run.resume import find_start, read_config, require_same, write_config
from .run.tasks import splits_of
from .run.time_limit import time_limit
from .sampling.engine import Engine, ready
from .sampling.policy import ModelPolicy
from .sampling.random_numbers import derive_seed
from .update import minibatches, teaching, update_metrics
from .watch.about import write_about
from .watch.alarm import Alarm
from .watch.log import FILE, MetricsLog, read_metrics
from .watch.metrics import filter_metrics, rollout_metrics, speed
from .watch.progress import Progress
from .watch.samples import due, sample_groups
from .watch.trackers import Tracker, require_trackers

_log = logging.getLogger(__name__)


class Learner:
    """Trains a causal LM on groups of episodes by GRPO (DeepSeekMath, arXiv 2402.03300).

    Args:
        model: a causal LM, trained in place, in eval mode throughout: dropout would make the
            policy that is trained another than the one that sampled.
        tokenizer: the model's.
        rollout: ``(policy, step)`` to the groups of a training step, steps counted from 1. It
            must choose its tasks by the step alone, or keep a state, as :class:`SampledTasks` does.
        config: the settings.
        out_dir: for ``checkpoints/``, ``config.json``, ``metrics.jsonl``, ``samples.jsonl``,
            ``run.json`` and what trackers write.
        held_out: as ``rollout``, for the tasks of evaluation.
        resume: go on from the newest whole checkpoint in ``out_dir``.
        progress: show a progress bar where there is a terminal.
        on_step: called with each row of metrics.
        engine: what samples in the model's place, such as a :class:`VLLMPolicy`; it is given the
            weights of each step.
        trackers: see :class:`MetricsLog`.
        samples: groups that are kept of a step, to be read; 0 for none.
        about: what else tells this run from others, such as its environment: for ``run.json``.
        world: the processes that train together; by default those that ``torchrun`` has started.
            The main one alone asks the environment, writes, shows and calls ``on_step``.
        shard: cut weights, gradients and optimizer state up between processes (FSDP2), where
            there are several; else each has them all.

    Raises:
        CheckpointError: ``out_dir`` holds a run that would be mixed with this one, or, to
            resume, holds none or one of other settings; or another process is training there.
        OSError: ``out_dir`` cannot be written to, or its disk is too full for the checkpoints.
        ValueError: ``max_refills`` is set, and the rollout does not refill; or
            ``eval_temperature`` or ``chat_template_kwargs``, and there is an engine; or held-out
            prompts are trained on too, and ``config.allow_overlap`` is not set.
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
        engine: Engine | None = None,
        trackers: Sequence[str | Tracker] | None = None,
        samples: int = 3,
        about: Mapping[str, Any] | None = None,
        world: World | None = None,
        shard: bool = False,
    ) -> None:
        require_trackers(trackers)
        if config.max_refills and not isinstance(rollout, Refill):
            raise ValueError(
                "max_refills is set, and the rollout does not refill: make it with training_tasks, "
                "or wrap it as assay.envs.Refill does"
            )
        for name in ("eval_temperature", "chat_template_kwargs") if engine is not None else ():
            if (value := getattr(config, name)) is not None:
                raise ValueError(
                    f"{name}={value} has no effect with an engine, which samples as it was made "
                    "to: leave it at None"
                )
        splits = splits_of(rollout, held_out, config)
        self.model, self.tokenizer = model.eval(), tokenizer
        self.rollout, self.held_out, self.engine = rollout, held_out, engine
        self.config, self.out_dir = config, Path(out_dir)
        self.step = 0
        self._buffer: Buffer | None = None  # the rollout of the next step, once it is there
        self._whole = True  # False while the weights are between two optimizer steps
        self._show, self._on_step, self._alarm = progress, on_step, Alarm()
        self._trackers, self._samples = trackers, samples
        self._about = {**({"splits": splits} if splits else {}), **(about or {})}
        self._patience = Patience(config.alarm_patience)
        self._early_stop = EarlyStop(config.early_stop)
        self._ending: Ending | None = None
        self._sampler = {
            "max_new_tokens": config.max_new_tokens,
            "temperature": config.temperature,
            "rows_per_batch": config.rows_per_batch,
            "chat_template_kwargs": config.chat_template_kwargs,
        }
        self.world = world or World.join()
        self._resumed = resume
        self._seen = self._log_size()
        start = self.world.decide(lambda: self._begin(resume))
        self.forward_name, self._forward = choose_forward(model)
        _log.info("log-probabilities by the %r forward", self.forward_name)
        worker = Worker(
            model,
            tokenizer,
            self._forward,
            config,
            self.world,
            make_optimizer=self._make_optimizer,
            shard=shard,
        )
        worker.agree()
        self.optimizer, self._crew = worker.optimizer, Crew(worker, self.world, config)
        self.reference: Reference | None = None
        if config.beta:
            path = self.out_dir / "reference"
            reference = self.reference = worker.reference = make_reference(model)
            if start is None:
                self.world.decide(lambda: reference.save(path))
            else:
                reference.load(path)
        if start is not None:
            self._resume(start)
            worker.agree()
        if self.world.is_main:
            write_config(self.out_dir, config.to_json())

    def train(self) -> None:
        """Train up to ``config.steps``, or until there is nothing more to gain.

        A run ends before its last step, and well, where ``early_stop`` says so or where every
        reply has been right for ``alarm_patience`` rollouts.

        However this ends (at the end, at Ctrl-C or SIGTERM, where an environment or the learner
        raises), a checkpoint of the last optimizer step is left. A rollout that is in flight is
        dropped, and done again when the run is resumed.

        Raises:
            KeyboardInterrupt: at Ctrl-C, after the optimizer step in hand and the checkpoint.
            Terminated: the same at SIGTERM.
            TooManyUnscored: more than ``max_none_share`` of a rollout has no reward.
            RolloutTimeout: a rollout or an evaluation takes more than ``max_rollout_s``.
            NotFinite: the gradient is infinite or NaN.
            SamplerMismatch: a fresh rollout was not sampled by the model that is trained.
            RatioExploded: updates have led too far from the policy that sampled.
            NothingToLearn: ``alarm_patience`` rollouts in a row held nothing to learn from.
            OSError: a checkpoint cannot be written; those before it are still there.
            CheckpointError: another run is training in ``out_dir``, or was since this learner was
                made.
            ProcessFailed: another process raised; or, in another process, the main one did.
            ProcessLost: another process is gone.
        """
        if not self.world.is_main:
            self._crew.follow()
            return
        with self._crew.leading(), alone_in(self.out_dir):
            self._train()

    def _train(self) -> None:
        if self._log_size() != self._seen:
            raise CheckpointError(
                f"another process is training in {str(self.out_dir)!r}, or was since this learner "
                "was made: make a new one with resume, or give another out_dir"
            )
        anew = not self.step and self._buffer is None
        resumed_at = (-1 if anew else self.step) if self._resumed else None
        progress = Progress(self.config.steps, self.step, show=self._show)
        settings = redact(self.config.to_json())
        write_about(self.out_dir, settings, self._about)
        log = MetricsLog(
            self.out_dir, resume_step=resumed_at, trackers=self._trackers, config=settings
        )
        with terminable(), log, progress:
            try:
                if anew:
                    self._finish(log, progress, {"step": 0, **self._evaluate(0)})
                while self.step < self.config.steps and self._ending is None:
                    self._train_step(log, progress)
            finally:
                if self._whole and self._crew.whole:
                    self.save()
                self._seen = self._log_size()
        if self._ending is not None and self.step < self.config.steps:
            message = f"step {self.step}: {self._ending.reason}"
            if not self._ending.well:
                raise NothingToLearn(f"{message}. To go on all the same, raise alarm_patience")
            _log.warning("%s: the run ends here", message)

    def save(self) -> Path:
        """Write a checkpoint of the optimizer steps done so far, and return its path.

        In other processes than the main one it does nothing, and returns where checkpoints are.
        """
        if not self.world.is_main:
            return self._checkpoints
        used = self._buffer if self._buffer is not None and self._buffer.done else None
        chosen = self.step + (used is not None)  # the step whose rollout is not to be done again
        tasks = self.rollout.state_dict(chosen) if isinstance(self.rollout, Kept) else None
        with stop_later():
            self._crew.be_whole()
            return save_checkpoint(
                self._checkpoints,
                self.model,
                self.tokenizer,
                self._crew,
                State(self.step, self.config.to_json(), tasks, used),
                keep=self.config.keep_checkpoints,
                reference=self.reference if self.config.reference_every else None,
            )

    def policy(self, *, seed: int, **settings: Any) -> Engine:
        """The model as it is now, as a policy; ``settings`` override those of the config."""
        if self.engine is not None:
            return ready(self.engine, self.model, step=self.step, seed=seed)
        return ModelPolicy(self.model, self.tokenizer, seed=seed, **{**self._sampler, **settings})

    def _everywhere(self, *, seed: int, **settings: Any) -> ExtendingPolicy:
        """As :meth:`policy`, sampled by all processes."""
        if self.engine is not None or self.world.size == 1:
            return self.policy(seed=seed, **settings)
        return self._crew.policy(seed=seed, settings={**self._sampler, **settings})

    def _train_step(self, log: MetricsLog, progress: Progress) -> None:
        """Collect, update, evaluate where it is due, log and save."""
        step = self.step + 1
        if self._buffer is None:
            self._buffer = self._collect(step)
        rate = self._update(self._buffer)
        row = self._row(self._buffer, rate)
        self._ending = self._patience.check(row)
        self._warn(row)
        row.update(self._evaluate(step, last=self._ending is not None))
        self._ending = self._ending or self._early_stop.check(row)
        if self._ending is not None:
            row["ending"] = self._ending.reason
        self._finish(log, progress, row)
        if self.config.save_every and step % self.config.save_every == 0:
            self.save()

    def _collect(self, step: int) -> Buffer:
        """Roll out, compare, and refuse a rollout in which too much is unscored."""
        started = time.perf_counter()
        policy = self._everywhere(seed=derive_seed(self.config.seed, step))
        with time_limit(self.config.max_rollout_s, f"the rollout of step {step}"):
            groups = self.rollout(policy, step)
        filtered = filter_metrics(self.rollout)
        if not groups and not filtered:
            raise ValueError(f"the rollout of step {step} gave no episodes: expected at least one")
        require_scored(groups, step, self.config.max_none_share)
        found = {**rollout_metrics(groups), **filtered}
        found["seconds/rollout"] = time.perf_counter() - started
        rows = self._rows(groups, found) if groups else []
        found["zero_variance"] = flat_share(groups, rows)
        return Buffer(step, rows, found, samples=self._to_be_read(groups, rows, step))

    def _to_be_read(
        self, groups: Sequence[EpisodeGroup], rows: Sequence[Row], step: int
    ) -> list[dict[str, Any]]:
        """A few of the groups, where a step's are kept."""
        if not groups or not self._samples or not due(step, self.config.steps):
            return []
        advantages = iter([row.mean_advantage for row in rows])  # only what is scored has a row
        of_episodes = [
            None if e.reward is None else next(advantages, None) for g in groups for e in g.episodes
        ]
        seed, count = self.config.seed, self._samples
        return sample_groups(groups, step=step, seed=seed, count=count, advantages=of_episodes)

    def _rows(self, groups: Sequence[EpisodeGroup], found: dict[str, float]) -> list[Row]:
        """Rows of all episodes that have a reward, with their advantages.

        ``found`` gets the sampler's mismatch where that is corrected: the rows have none then.
        """
        rows, reading = rows_of(groups), None
        if self.reference is not None:
            rows = self._crew.with_reference(rows)
        if reads_policy(self.config):
            reading = self._crew.read(rows)
        if reading is not None and self.config.correction != "none":
            found["mismatch"] = reading_drift(rows, reading)
        return credit(groups, rows, self.config, reading)

    def _make_optimizer(self, trained: Sequence[torch.nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            trained,
            lr=self.config.learning_rate,
            betas=(0.9, 0.999),
            weight_decay=self.config.weight_decay,
            fused=True,
        )

    def _update(self, buffer: Buffer) -> float:
        """Take the optimizer steps that are left of a rollout; the learning rate they take."""
        rate = self.config.rate(buffer.step)
        parts = minibatches(buffer.rows, self.config, buffer.step) if buffer.rows else []
        every = self.config.save_every_updates
        for part in parts[buffer.done :]:
            try:
                with stop_later():
                    self._take(part, buffer, rate)
            except RatioExploded:
                self._buffer = None  # the rest tells nothing, and would tell nothing when resumed
                raise
            if every and buffer.done % every == 0 and buffer.done < len(parts):
                self.save()
        return rate

    def _take(self, part: Sequence[Row], buffer: Buffer, rate: float) -> None:
        """One optimizer step, unless there is nothing in it to learn from."""
        if not teaching(part, self.config):  # momentum alone must not move the weights
            buffer.done += 1
            return
        started = time.perf_counter()
        sums, norm = self._crew.gradient(part)
        require_near(sums, self.config, buffer.step, fresh=not buffer.norms)
        require_finite(sums["loss"], norm, buffer.step)
        self._whole = False
        self._crew.step(rate)
        buffer.first = buffer.first or sums
        merge_sums(buffer.sums, sums)
        buffer.norms.append(norm)
        buffer.done += 1
        self._whole = True
        buffer.seconds += time.perf_counter() - started

    def _row(self, buffer: Buffer, rate: float) -> dict[str, Any]:
        row = {"step": buffer.step, **buffer.found}
        row |= update_metrics(buffer.sums, buffer.norms, rate)
        row.setdefault("mismatch", drift(buffer.first))
        row["drift"] = drift(buffer.sums)
        row["seconds/update"] = buffer.seconds
        return row | speed(row)

    def _evaluate(self, step: int, *, last: bool = False) -> dict[str, float]:
        """Held-out numbers, where they are due: at the start, every few steps, at the end."""
        every = self.config.eval_every
        now = every and (last or step % every == 0 or step == self.config.steps)
        if not now or self.held_out is None:
            return {}
        started = time.perf_counter()
        with time_limit(self.config.max_rollout_s, f"the evaluation of step {step}"):
            found = self.score(step=step).to_metrics()
        return {**found, "seconds/evaluation": time.perf_counter() - started}

    def score(self, *, step: int = 0) -> Score:
        """Evaluate the model as it is now; the same sampling seed every time.

        Raises:
            ValueError: the learner was given no held-out tasks, or fewer replies to each than
                ``eval_samples``.
        """
        if self.held_out is None:
            raise ValueError("the learner has no held-out tasks: pass held_out")
        heat = self.config.eval_temperature
        policy = self._everywhere(
            seed=derive_seed(self.config.seed), **({} if heat is None else {"temperature": heat})
        )
        return evaluate(policy, self.held_out, step=step, samples=self.config.eval_samples)

    def _warn(self, row: dict[str, Any]) -> None:
        message = self._alarm.check(row)
        if message is not None:
            row["alarm"] = message
            warnings.warn(f"step {row['step']}: {message}", TrainingAlarm, stacklevel=3)

    def _finish(self, log: MetricsLog, progress: Progress, row: dict[str, Any]) -> None:
        """The step is over: its row is written, and what goes by whole steps takes notice."""
        with stop_later():
            samples = self._buffer.samples if self._buffer is not None else []
            self.step, self._buffer = row["step"], None
            every = self.config.reference_every
            if self.reference is not None and every and self.step and self.step % every == 0:
                self._crew.refresh_reference()
            if samples:
                log.samples(self.step, samples)
            log.write(row)
            if self.config.keep_best:
                keep_best(self.out_dir / "best", self.model, self.tokenizer, row)
        progress.update(row)
        if self._on_step is not None:
            self._on_step(row)

    def _log_size(self) -> int:
        """Bytes of the metrics: every run that trains in ``out_dir`` begins by writing some."""
        path = self.out_dir / FILE
        return path.stat().st_size if path.exists() else 0

    @property
    def _checkpoints(self) -> Path:
        return self.out_dir / "checkpoints"

    def _begin(self, resume: bool) -> Path | None:
        """Where the run begins; see that it can, before hours of training find out."""
        start = find_start(self.out_dir, resume=resume)
        kept = len(list_checkpoints(self._checkpoints))
        wanted = self.config.keep_checkpoints + 1 - kept if self.config.save_every else 1
        require_room(self.out_dir, self.model, checkpoints=max(1, wanted))
        if resume and start is None:
            require_same(self.config.to_json(), read_config(self.out_dir), self.out_dir)
        return start

    def _resume(self, checkpoint: Path) -> None:
        state = load_checkpoint(checkpoint, self.model, self._crew, self.reference)
        require_same(self.config.to_json(), state.config, checkpoint)
        self.step, self._buffer = state.step, state.buffer
        if isinstance(self.rollout, Kept):
            if state.tasks is None:
                raise CheckpointError(
                    f"{str(checkpoint)!r} keeps no state of its tasks: resume with the tasks that "
                    "the run began with"
                )
            self.rollout.load_state_dict(state.tasks)
        metrics = self.out_dir / FILE
        for row in read_metrics(metrics) if metrics.exists() else ():
            if row["step"] > state.step:
                continue
            if row["step"]:
                self._alarm.check(row)  # these count rows in a row
                self._ending = self._patience.check(row)
            self._ending = self._early_stop.check(row) or self._ending
