"""From an environment to what a learner rolls out: training tasks, held-out tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...envs import EpisodeGroup, Policy, Refill, Sampler, Task, TextEnv, play, scheduled
from ...envs.rollout import play_in_chunks
from ...envs.splits import refuse_overlap, refuse_training
from ..config import GRPOConfig
from .chunks import chunk_sizes
from .evaluate import Rollout


def training_tasks(env: TextEnv, config: GRPOConfig, sampler: Sampler | None = None) -> Rollout:
    """``prompts_per_step`` tasks a step, ``group_size`` episodes each.

    Which tasks a step takes depends on the step and ``config.seed`` alone, or, where there is a
    sampler, on it; its state is kept in checkpoints.

    With ``max_refills`` a step plays more tasks in place of groups that teach nothing, as
    :class:`~assay.envs.Refill` does.

    Args:
        env: of the tasks.
        config: how many, and in how many chunks.
        sampler: chooses the tasks; without one they come in scheduled order.

    Raises:
        ValueError: the tasks are for evaluation, or the package's sample, and ``config`` does not
            allow them.
    """
    refuse_training(env, allow_test_split=config.allow_test_split, allow_sample=config.allow_sample)
    rollout = SampledTasks(env, config, sampler) if sampler else ScheduledTasks(env, config)
    if not config.max_refills:
        return rollout
    return Refill(
        rollout,
        config.prompts_per_step,
        attempts=1 + config.max_refills,
        max_none_share=config.max_none_share,
    )


class ScheduledTasks:
    """``prompts_per_step`` tasks a step in scheduled order, ``group_size`` episodes each."""

    def __init__(self, env: TextEnv, config: GRPOConfig) -> None:
        self.env, self.config = env, config

    def __call__(self, policy: Policy, step: int) -> Sequence[EpisodeGroup]:
        """Roll out a step's tasks."""
        size = self.config.prompts_per_step
        tasks = scheduled(self.env, size, first=(step - 1) * size, seed=self.config.seed)
        return _play(self.env, policy, list(tasks), self.config)


def _play(
    env: TextEnv, policy: Policy, tasks: Sequence[Task], config: GRPOConfig
) -> list[EpisodeGroup]:
    sizes = chunk_sizes(config, len(tasks))
    if len(sizes) == 1:  # nothing to go on with meanwhile
        return play(env, policy, tasks, config.group_size)
    return play_in_chunks(env, policy, tasks, config.group_size, sizes=sizes)


class SampledTasks:
    """``prompts_per_step`` tasks a step that a sampler chooses, ``group_size`` episodes each.

    A :class:`~assay.grpo.Learner` keeps the sampler's state in its checkpoints, so a resumed run
    trains on the tasks that the unbroken one would have.
    """

    def __init__(self, env: TextEnv, config: GRPOConfig, sampler: Sampler) -> None:
        self.env, self.config, self.sampler = env, config, sampler
        self._found: Sequence[EpisodeGroup] = ()
        self._step = 0

    def __call__(self, policy: Policy, step: int) -> Sequence[EpisodeGroup]:
        """Roll out a step's tasks. The sampler is told of them once the step is over."""
        self._tell(step - 1)
        indices = self.sampler.indices(step, self.config.prompts_per_step)
        tasks = [self.env.task(i) for i in indices]
        self._step, self._found = step, _play(self.env, policy, tasks, self.config)
        return self._found

    def state_dict(self, step: int) -> dict[str, Any]:
        """The sampler's state after a step; what came later is left out."""
        self._tell(step)
        return self.sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from where :meth:`state_dict` was called."""
        self.sampler.load_state_dict(state)
        self._found = ()

    def _tell(self, step: int) -> None:
        # A step that was broken off is rolled out again, and must not be counted twice.
        if self._found and self._step <= step:
            self.sampler.update(self._found)
            self._found = ()


def held_out_tasks(env: TextEnv, count: int, *, group_size: int = 1) -> Rollout:
    """The first ``count`` different tasks of an environment, the same ones every time.

    Where it has fewer, all of them.

    Args:
        env: of tasks that are not trained on.
        count: how many tasks.
        group_size: replies to each.

    Raises:
        ValueError: ``count`` is below 1.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    tries = range(20 * count if env.source.size is None else min(count, env.source.size))
    different: dict[str, Task] = {}
    for index in tries:
        task = env.task(index)
        different.setdefault(task.text, task)
        if len(different) == count:
            break
    return HeldOutTasks(env, list(different.values()), group_size)


class HeldOutTasks:
    """The same tasks at every step, ``group_size`` episodes each."""

    def __init__(self, env: TextEnv, tasks: Sequence[Task], group_size: int) -> None:
        self.env, self.tasks, self.group_size = env, tasks, group_size

    def __call__(self, policy: Policy, step: int) -> Sequence[EpisodeGroup]:
        """Play the tasks."""
        return play(self.env, policy, self.tasks, self.group_size)


def splits_of(rollout: Rollout, held_out: Rollout | None, config: GRPOConfig) -> dict[str, Any]:
    """Return which splits a run trains and evaluates on, and refuse prompts that both have.

    Rollouts that neither :func:`training_tasks` nor :func:`held_out_tasks` made say nothing.

    Raises:
        ValueError: prompts are in both, and ``config`` does not allow it.
    """
    if isinstance(rollout, Refill):
        rollout = rollout.rollout
    found: dict[str, Any] = {}
    train = rollout.env.source if isinstance(rollout, ScheduledTasks | SampledTasks) else None
    if train is not None:
        found["train"] = train.split
    if isinstance(held_out, HeldOutTasks):
        source = held_out.env.source
        found["held_out"] = source.split
        if train is not None:
            found["overlap"] = refuse_overlap(
                train, source, held_out.tasks, allow=config.allow_overlap
            )
    return found
