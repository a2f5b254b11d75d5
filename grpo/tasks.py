"""From an environment to what a learner rolls out: training tasks, held-out tasks."""

from __future__ import annotations

from collections.abc import Sequence

from ..envs import EpisodeGroup, Policy, Task, TextEnv, play, rollout
from .config import GRPOConfig
from .evaluate import Rollout


def training_tasks(env: TextEnv, config: GRPOConfig) -> Rollout:
    """``prompts_per_step`` tasks a step in scheduled order, ``group_size`` episodes each.

    Which tasks a step takes depends on the step and ``config.seed`` alone.
    """

    def roll(policy: Policy, step: int) -> Sequence[EpisodeGroup]:
        return rollout(
            env,
            policy,
            config.prompts_per_step,
            config.group_size,
            first=(step - 1) * config.prompts_per_step,
            seed=config.seed,
        )

    return roll


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
    tasks = list(different.values())

    def roll(policy: Policy, _: int) -> Sequence[EpisodeGroup]:
        return play(env, policy, tasks, group_size)

    return roll
