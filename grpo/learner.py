"""The training loop: roll out, compare within groups, update, and again."""

from __future__ import annotations

import logging
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from ..envs import EpisodeGroup, ExtendingPolicy, Refill
from ..envs.group_summary import Score, rollout_metrics, sample_groups
from ..sandbox.pool.threads import Threads
from ..sandbox.redaction import redact
from .batch import Row
from .checkpoint import (
    CheckpointError,
    State,
    is_sharded,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from .config import GRPOConfig
from .credit import credit, flat_share, reading_drift, reads_policy, rows_of
from .distributed import World
from .draw import derive_seed
from .guards import (
    EarlyStop,
    NothingToLearn,
    Patience,
    StopReason,
    TrainingAlarm,
    drift,
    require_finite,
    require_near,
    require_scored,
)
from .interrupt import Signals, time_limit
from .log import MetricsLog, Progress, Tracker, filter_metrics, keeps_samples, require_trackers
from .logprobs import choose_forward
from .loss import merge_sums
from .records import FILE, read_metrics, write_about
from .reference import Reference
from .run_directory import (
    find_start,
    keep_best,
    read_config,
    require_room,
    require_same,
    run_lock,
    write_config,
)
from .sampler import Engine, ModelPolicy
from .tasks import Rollout, StatefulRollout, Tasks, inner_rollout, score_of, splits_of
from .update import Updater, minibatches, rows_with_gradient, update_metrics

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Step:
    """A step in progress: rows to train on, metrics of its rollout, sample groups.

    ``sums`` are those of its optimizer steps (:func:`~assay.grpo.accumulate_gradient`), ``first``
    of the first alone, which the sampler's weights took; ``norms`` the lengths of the gradients.
    """

    number: int
    rows: list[Row]
    found: dict[str, float]
    samples: list[dict[str, Any]]
    sums: dict[str, float] = field(default_factory=dict)
    norms: list[float] = field(default_factory=list)
    first: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


class Learner:
    """Trains a causal LM on groups of episodes by GRPO (DeepSeekMath, arXiv 2402.03300).

    Args:
        model: a causal LM, trained in place, in eval mode throughout: dropout would make the
            policy that is trained another than the one that sampled.
        tokenizer: the model's.
        rollout: ``(policy, step)`` to the groups of a training step, steps counted from 1. It
            must choose its tasks by the step alone, or keep a state, as :class:`SampledTasks` does.
            With several processes each plays its share of the tasks of :func:`training_tasks`;
            a rollout of your own is called in the main process alone.
        config: the settings.
        out_dir: for ``checkpoints/``, ``config.json``, ``metrics.jsonl``, ``samples.jsonl``,
            ``run.json`` and what trackers write.
        held_out: as ``rollout``, for the tasks of evaluation.
        resume: go on from the newest whole checkpoint in ``out_dir``.
        progress: show a progress bar if the error stream is a terminal.
        on_step: called with each row of metrics.
        engine: what samples in the model's place, such as a :class:`VLLMPolicy`; it is given the
            weights of each step. The main process's is used.
        trackers: see :class:`~assay.grpo.log.MetricsLog`.
        samples: groups that are kept of a step, to be read; 0 for none.
        about: what else identifies the run, such as its environment: for ``run.json``.
        world: the processes that train together; by default those that ``torchrun`` has started.
            The main one alone writes, shows and calls ``on_step``.
        shard: cut weights, gradients and optimizer state up between processes (FSDP2).

    Raises:
        CheckpointError: ``out_dir`` holds a run that would be mixed with this one, or, to
            resume, holds none or one of other settings; or another process is training there.
        OSError: ``out_dir`` cannot be written to, or its disk is too full for the checkpoints.
        ValueError: the rollout or the engine cannot do what ``config`` asks for; or held-out
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
        self.world = world or World.join()
        self._served = self.world.on_main(lambda: engine is not None)
        _require_fitting(config, rollout, held_out, engine, served=self._served)
        splits = splits_of(rollout, held_out, config)
        self.model, self.tokenizer = model.eval(), tokenizer
        self.rollout, self.held_out, self.engine = rollout, held_out, engine
        self.config, self.out_dir = config, Path(out_dir)
        self.step = 0
        self._whole = True  # False while an optimizer step changes the weights
        self._unlogged: tuple[dict[str, Any], list[dict[str, Any]]] | None = None
        self._show, self._on_step = progress, on_step
        self._trackers, self._samples = trackers, samples
        self._about = {**({"splits": splits} if splits else {}), **(about or {})}
        self._patience = Patience(config.alarm_patience)
        self._early_stop = EarlyStop(config.early_stop)
        self._ending: StopReason | None = None
        self._resumed = resume
        # Of rollouts, if max_staleness is above 0.
        self._ahead: deque[Future[tuple[Sequence[EpisodeGroup], dict[str, float]]]] = deque()
        self._saved: tuple[int, bool] | None = None  # what the newest checkpoint holds
        self._records: tuple[MetricsLog, Progress] | None = None  # in the main process
        self._checkpoints = self.out_dir / "checkpoints"
        self._seen = self._log_size()
        start = self.world.on_main(lambda: self._begin(resume))
        self.forward_name, forward = choose_forward(model)
        _log.info("log-probabilities by the %r forward", self.forward_name)
        self._updater = Updater(model, forward, config, self.world, shard=shard)
        self.optimizer = self._updater.optimizer
        self.reference: Reference | None = None
        if config.beta:
            path = self.out_dir / "reference"
            reference = self.reference = Reference(model)
            if start is None:
                self.world.on_main(lambda: reference.save(path))
            else:
                reference.load(path)
        if start is not None:
            self._resume(start)
            self._updater.split()
        if self.world.is_main:
            write_config(self.out_dir, config.to_json())

    def train(self) -> None:
        """Train up to ``config.steps``, or until there is nothing more to gain.

        A run ends before its last step, and well, if ``early_stop`` says so or if every reply has
        been right for ``alarm_patience`` rollouts. However it ends (at the end, at Ctrl-C or
        SIGTERM, by an error), a checkpoint is left. A signal drops a rollout that is in flight,
        which is done again when the run is resumed, and completes the updates of a step.
        After an error between two updates of a step its later updates are dropped.

        Raises:
            KeyboardInterrupt, Terminated: after the updates in hand and the checkpoint.
            RuntimeError: one of the guards: TooManyUnscored, RolloutTimeout, NotFinite,
                SamplerMismatch, RatioExploded, NothingToLearn; see "Alarms" in docs/learner.md.
            OSError: a checkpoint cannot be written; those before it are still there.
            CheckpointError: another run is training in ``out_dir``, or was since this learner was
                made.
            ProcessFailed, ProcessLost: another process raised, or is gone.
        """
        with ExitStack() as stack:
            self.world.on_main(lambda: stack.enter_context(run_lock(self.out_dir)))
            self.world.on_main(self._require_alone)
            signals = self.world.signals = stack.enter_context(Signals())
            anew = not self.step
            if self.step >= self.config.steps and self.world.is_main:
                done = f"the run has done {self.step} steps, and steps is {self.config.steps}"
                _log.warning("%s: nothing is left to train. To go on, raise steps", done)
            self._thread = Threads(1, "assay-rollout")
            self._records = self._open(stack, anew) if self.world.is_main else None
            try:
                if anew:
                    self._finish({"step": 0, **self._evaluate(0)})
                if self._unlogged is not None:  # the run was stopped in an evaluation
                    self._conclude(*self._unlogged)
                while self.step < self.config.steps and self._ending is None:
                    self.world.on_all(signals.deliver)  # raises in all if one was asked to stop
                    step = self._collect(self.step + 1)
                    self._conclude(self._update(step), step.samples)
                    if self.config.save_every and step.number % self.config.save_every == 0:
                        self.save()
            finally:
                self._ahead.clear()
                self._thread.close(cancel=True)  # rollouts ahead that have not begun are dropped
                if self._whole:
                    self.save()
                self._seen = self._log_size()
        if self._ending is not None and self.step < self.config.steps:
            message = f"step {self.step}: {self._ending.reason}"
            if not self._ending.well:
                raise NothingToLearn(f"{message}. To go on all the same, raise alarm_patience")
            _log.warning("%s: the run ends here", message)

    def save(self) -> Path:
        """Write a checkpoint of the steps done so far, and return its path.

        All processes call this, unless :meth:`train` has just written it.
        """
        world = self.world
        if self._saved == (self.step, self._unlogged is None):
            return self._checkpoints / f"step-{self.step:06d}"
        if world.lost:  # the shards of others are lost
            if is_sharded(self.optimizer) or not world.is_main:
                return self._checkpoints
            world = World.single()
        row = None if self._unlogged is None else self._unlogged[0]
        tasks = (
            self.rollout.state_dict(self.step)
            if isinstance(self.rollout, StatefulRollout)
            else None
        )
        with Signals():
            self._updater.restore()
            path = save_checkpoint(
                self._checkpoints,
                self.model,
                self.tokenizer,
                self.optimizer,
                State(self.step, self.config.to_json(), tasks, row),
                keep=self.config.keep_checkpoints,
                reference=self.reference if self.config.reference_every else None,
                world=world,
            )
        self._saved = self.step, self._unlogged is None
        return path

    def policy(self, *, seed: int, **settings: Any) -> ExtendingPolicy:
        """Return the current model as a policy; ``settings`` override those of the config."""
        if self.engine is not None:
            engine: Any = self.engine
            engine.sync(self.model, self.step)
            if settings:  # of an evaluation
                return cast(ExtendingPolicy, engine.stream(seed, **settings))
            engine.reseed(seed)
            return self.engine
        names = ("max_new_tokens", "temperature", "rows_per_batch", "chat_template_kwargs")
        chosen = {name: getattr(self.config, name) for name in names} | settings
        return ModelPolicy(self.model, self.tokenizer, seed=seed, **chosen)

    def score(self, *, step: int = 0) -> Score:
        """Evaluate the current model, with the same sampling seed every time.

        Raises:
            ValueError: the learner was given no held-out tasks, or fewer replies to each than
                ``eval_samples``.
        """
        rollout = self.held_out
        if rollout is None:
            raise ValueError("the learner has no held-out tasks: pass held_out")
        heat, seed = self.config.eval_temperature, derive_seed(self.config.seed)
        settings = {} if heat is None else {"temperature": heat}
        found = self._play(rollout, step, seed, **settings)
        return score_of(found, self.config.eval_samples)

    def _conclude(self, row: dict[str, Any], samples: Sequence[Mapping[str, Any]]) -> None:
        """Evaluate and log a step whose updates are done."""
        found = dict(row)
        self._ending = self._patience.check(found)
        if self._patience.alarm is not None:
            found["alarm"] = self._patience.alarm
            if self.world.is_main:
                warnings.warn(f"step {self.step}: {found['alarm']}", TrainingAlarm, stacklevel=2)
        found.update(self._evaluate(found["step"], last=self._ending is not None))
        self._ending = self._ending or self._early_stop.check(found)
        if self._ending is not None:
            found["ending"] = self._ending.reason
        self._finish(found, samples)
        self._unlogged = None

    def _collect(self, number: int) -> _Step:
        """Roll out, compare, and refuse a rollout in which too much is unscored."""
        started = time.perf_counter()
        with time_limit(self.config.max_rollout_s, f"the rollout of step {number}"):
            if self.config.max_staleness:
                groups, filtered = self.world.on_main(lambda: self._next(number), breakable=True)
            else:
                seed = derive_seed(self.config.seed, number)
                groups = self._play(self.rollout, number, seed)
                filtered = self.world.on_main(lambda: filter_metrics(self.rollout))
                self.world.on_main(self._free_engine)
        if not groups and not filtered:
            raise ValueError(
                f"the rollout of step {number} gave no episodes: expected at least one"
            )
        require_scored(groups, number, self.config.max_none_share)
        found = {**rollout_metrics(groups), **filtered}
        found["seconds/rollout"] = time.perf_counter() - started
        rows = self._rows(groups, found) if groups else []
        found["zero_variance"] = flat_share(groups, rows)
        samples = []
        if groups and self._samples and keeps_samples(number, self.config.steps):
            known = iter([row.mean_advantage for row in rows])  # only what is scored has a row
            of = [None if e.reward is None else next(known) for g in groups for e in g.episodes]
            seed = self.config.seed
            order = sorted(range(len(groups)), key=lambda i: derive_seed(seed, number, i))
            samples = sample_groups(groups, order, count=self._samples, advantages=of)
        return _Step(number, rows, found, samples)

    def _play(
        self, rollout: Rollout, step: int, seed: int, **settings: Any
    ) -> Sequence[EpisodeGroup]:
        """Roll out: the processes share the tasks, or the main one plays all."""
        if isinstance(inner_rollout(rollout), Tasks) and not self._served:
            return rollout(self.policy(seed=seed, world=self.world, **settings), step)
        return self.world.on_main(
            lambda: rollout(self.policy(seed=seed, **settings), step), breakable=True
        )

    def _free_engine(self) -> None:
        """Free the memory of an engine that sleeps while the model is trained."""
        engine: Any = self.engine
        if level := getattr(engine, "sleep_level", 0):
            engine.sleep(level)

    def _next(self, number: int) -> tuple[Sequence[EpisodeGroup], dict[str, float]]:
        """Return the rollout of a step, and begin those of up to ``max_staleness`` later steps."""
        engine: Any = self.engine
        engine.sync(self.model, self.step)
        last = min(number + self.config.max_staleness, self.config.steps)

        def play(step: int) -> tuple[Sequence[EpisodeGroup], dict[str, float]]:
            began = engine.step
            groups = self.rollout(engine.stream(derive_seed(self.config.seed, step)), step)
            return groups, {**filter_metrics(self.rollout), "staleness": float(step - 1 - began)}

        for step in range(number + len(self._ahead), last + 1):
            self._ahead.append(self._thread.submit(partial(play, step)))
        return self._ahead.popleft().result()

    def _rows(self, groups: Sequence[EpisodeGroup], found: dict[str, float]) -> list[Row]:
        """Make rows of all episodes that have a reward, with their advantages.

        ``found`` gets the sampler's mismatch if that is corrected: the rows have none then.
        """
        rows, reading = rows_of(groups), None
        if self.reference is not None:
            with self.reference.reading():
                read = self._updater.read(rows)
            rows = [replace(r, reference=x.logprobs) for r, x in zip(rows, read, strict=True)]
        if reads_policy(self.config):
            reading = self._updater.read(rows)
        if reading is not None and self.config.correction != "none":
            found["mismatch"] = reading_drift(rows, reading)
        return credit(groups, rows, self.config, reading)

    def _update(self, step: _Step) -> dict[str, Any]:
        """Take the optimizer steps of a rollout, and sum them up.

        After an error between two of them the later ones are dropped, and the step counts as done.
        """
        rate = self.config.rate(step.number)
        done = False
        try:
            for part in minibatches(step.rows, self.config, step.number) if step.rows else []:
                # Momentum alone must not move the weights.
                if rows_with_gradient(part, self.config):
                    self._take(part, step, rate)
            done = True
        finally:
            if done or step.norms:
                self.step = step.number
                row = self._row(step, rate)
                self._unlogged = row, step.samples
        return row

    def _take(self, part: Sequence[Row], step: _Step, rate: float) -> None:
        """Take one optimizer step."""
        started = time.perf_counter()
        sums, norm = self._updater.gradient(part)
        fresh = not step.norms and not self.config.max_staleness
        require_near(sums, self.config, step.number, fresh=fresh)
        require_finite(sums["loss"], norm, step.number)
        self._whole = False
        self._updater.step(rate)
        self._whole = True
        step.first = step.first or sums
        merge_sums(step.sums, sums)
        step.norms.append(norm)
        step.seconds += time.perf_counter() - started

    def _row(self, step: _Step, rate: float) -> dict[str, Any]:
        row: dict[str, Any] = {"step": step.number, **step.found}
        row |= update_metrics(step.sums, step.norms, rate)
        row.setdefault("mismatch", drift(step.first))
        row["drift"] = drift(step.sums)
        row["seconds/update"] = step.seconds
        seconds = step.seconds + row["seconds/rollout"]
        return row | {"tokens/s": row["tokens/sampled"] / max(seconds, 1e-9)}

    def _evaluate(self, step: int, *, last: bool = False) -> dict[str, float]:
        """Evaluate on held-out tasks if it is due: at the start, every few steps, at the end."""
        every = self.config.eval_every
        now = every and (last or step % every == 0 or step == self.config.steps)
        if not now or self.held_out is None:
            return {}
        started = time.perf_counter()
        with time_limit(self.config.max_rollout_s, f"the evaluation of step {step}"):
            found = self.score(step=step).to_metrics()
        return {**found, "seconds/evaluation": time.perf_counter() - started}

    def _finish(self, row: dict[str, Any], samples: Sequence[Mapping[str, Any]] = ()) -> None:
        """Log the step, and run what happens once a step."""
        self.step = row["step"]
        self._refresh_reference()

        def write() -> None:
            if self._records is None:
                return
            log, progress = self._records
            # First: a step whose row is logged is not concluded again.
            if self.config.keep_best:
                keep_best(self.out_dir / "best", self.model, self.tokenizer, row)
            if samples:
                log.samples(self.step, samples)
            log.write(row)
            progress.update(row)
            if self._on_step is not None:
                self._on_step(row)

        self.world.on_main(write)

    def _refresh_reference(self) -> None:
        every = self.config.reference_every
        if self.reference is not None and every and self.step and self.step % every == 0:
            self.reference.refresh(self.model)

    def _open(self, stack: ExitStack, anew: bool) -> tuple[MetricsLog, Progress]:
        """Open what the main process writes and shows; the stack closes it."""
        resumed_at = (-1 if anew else self.step) if self._resumed else None
        progress = Progress(self.config.steps, self.step, show=self._show)
        config, trackers = redact(self.config.to_json()), self._trackers
        write_about(self.out_dir, config, self._about)
        log = MetricsLog(self.out_dir, resume_step=resumed_at, trackers=trackers, config=config)
        return stack.enter_context(log), stack.enter_context(progress)

    def _require_alone(self) -> None:
        if self._log_size() != self._seen:
            raise CheckpointError(
                f"another process is training in {str(self.out_dir)!r}, or was since this learner "
                "was made: make a new one with resume, or give another out_dir"
            )

    def _log_size(self) -> int:
        """Return the size of the metrics: every run in ``out_dir`` begins by writing some."""
        path = self.out_dir / FILE
        return path.stat().st_size if path.exists() else 0

    def _begin(self, resume: bool) -> Path | None:
        """Find where the run begins, and require the disk space that it needs."""
        start = find_start(self.out_dir, resume=resume)
        kept = len(list_checkpoints(self._checkpoints))
        config = self.config
        wanted = max(1, config.keep_checkpoints + 1 - kept if config.save_every else 1)
        # The best model and the one before it; the reference, and those of checkpoints.
        copies = 2 * config.keep_best
        if config.beta:
            copies += (start is None) + (wanted if config.reference_every else 0)
        require_room(self.out_dir, self.model, checkpoints=wanted, copies=copies)
        if resume and start is None:
            require_same(self.config.to_json(), read_config(self.out_dir), self.out_dir)
        return start

    def _resume(self, checkpoint: Path) -> None:
        state = load_checkpoint(checkpoint, self.model, self.optimizer, self.reference)
        require_same(self.config.to_json(), state.config, checkpoint)
        self.step = state.step
        self._unlogged = None if state.row is None else (state.row, [])
        if isinstance(self.rollout, StatefulRollout):
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
            if row["step"] == state.step:  # the checkpoint was written before its row
                self._unlogged = None
                self._refresh_reference()
            if row["step"]:
                self._ending = self._patience.check(row)  # it counts rows in a row
            self._ending = self._early_stop.check(row) or self._ending


def _require_fitting(
    config: GRPOConfig,
    rollout: Rollout,
    held_out: Rollout | None,
    engine: Engine | None,
    *,
    served: bool,
) -> None:
    """Refuse settings that these rollouts or this engine cannot follow."""
    for name in ("keep_best", "early_stop"):
        if getattr(config, name) and held_out is None:
            raise ValueError(f"{name} needs evaluations, and there is no held_out: pass its tasks")
    if config.max_refills and not isinstance(rollout, Refill):
        raise ValueError(
            "max_refills is set, and the rollout does not refill: make it with training_tasks, "
            "or wrap it as assay.envs.Refill does"
        )
    if config.eval_temperature is not None and engine is not None and not hasattr(engine, "stream"):
        raise ValueError(
            f"eval_temperature={config.eval_temperature} needs an engine that samples at several, "
            "such as VLLMPolicy: give one, or leave it at None"
        )
    given, own = config.chat_template_kwargs, getattr(engine, "chat_template_kwargs", None)
    if engine is not None and given is not None and given != own:
        raise ValueError(
            f"chat_template_kwargs={given} has no effect with an engine that was made with {own}: "
            "give both the same"
        )
    ahead = config.max_staleness
    if ahead and (not served or (engine is not None and not hasattr(engine, "stream"))):
        raise ValueError(
            f"max_staleness={ahead} needs an engine that samples while the model is trained, such "
            "as VLLMPolicy: give one, or set max_staleness to 0"
        )
    if ahead and getattr(engine, "sleep_level", 0):
        raise ValueError(
            f"max_staleness={ahead} samples while the model is trained, and the engine sleeps "
            "then: set its sleep_level or max_staleness to 0"
        )
    if ahead and isinstance(inner_rollout(rollout), StatefulRollout):
        raise ValueError(
            f"max_staleness={ahead} plays tasks before those of earlier steps are trained on, and "
            "this rollout chooses tasks by their results: use scheduled tasks, or set it to 0"
        )
