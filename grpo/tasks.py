"""Rollouts of tasks, for training and for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ..envs import EpisodeGroup, Policy, Refill, Sampler, Task, TextEnv, play, scheduled
from ..envs.datasets.splits import refuse_overlap, refuse_training
from ..envs.group_summary import Score
from ..envs.rollout import play_in_chunks
from ..verifiers import Rubric
from .advantage import require_rewards
from .config import GRPOConfig
from .distributed import World
from .sampler import encode_all

Rollout = Callable[[Policy, int], Sequence[EpisodeGroup]]
"""``(policy, step)`` to groups of episodes: where a learner meets an environment.

It must choose its tasks by the step alone (training: other tasks at each step; held-out: the
same ones always), or be :class:`StatefulRollout`, so that a resumed run sees what the unbroken one
would have seen.
"""


def inner_rollout(rollout: Rollout) -> Rollout:
    """Return the rollout that dynamic sampling repeats, or the rollout itself."""
    return rollout.rollout if isinstance(rollout, Refill) else rollout


@runtime_checkable
class StatefulRollout(Protocol):
    """A rollout with a state, which checkpoints keep."""

    def state_dict(self, step: int) -> dict[str, Any]:
        """Return the state after a step as plain JSON values."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


def evaluate(policy: Policy, rollout: Rollout, *, step: int = 0, samples: int = 1) -> Score:
    """Roll out the held-out tasks once and sum up.

    Raises:
        ValueError: a task has fewer episodes than ``samples``.
    """
    return score_of(rollout(policy, step), samples)


def score_of(groups: Sequence[EpisodeGroup], samples: int) -> Score:
    """Sum up held-out groups, each of which must have ``samples`` episodes or more."""
    fewest = min((len(group.episodes) for group in groups), default=samples)
    if fewest < samples:
        raise ValueError(
            f"eval_samples is {samples}, and the held-out rollout plays a task {fewest} times: "
            f"make it with held_out_tasks(env, count, group_size={samples})"
        )
    return Score.of(groups)


PlayTasks = Callable[[Policy, Sequence[Task], int], Sequence[EpisodeGroup]]
"""``(policy, tasks, group_size)`` to a group for each task."""


def training_tasks(
    env: TextEnv,
    config: GRPOConfig,
    sampler: Sampler | None = None,
    *,
    play_tasks: PlayTasks | None = None,
) -> Rollout:
    """Roll out ``prompts_per_step`` tasks a step, ``group_size`` episodes each.

    Which tasks a step takes depends on the step and ``config.seed`` alone, or on the sampler if
    there is one; its state is kept in checkpoints. With ``max_refills`` a step plays more tasks in
    place of groups that teach nothing, as :class:`~assay.envs.Refill` does. ``play_tasks`` plays
    the tasks if the environment itself does not: programs that ask the policy.

    Raises:
        ValueError: the tasks are for evaluation, or the package's sample, and ``config`` does not
            allow them; or ``reward_weights`` names a reward that the environment does not give.
    """
    refuse_training(env, allow_test_split=config.allow_test_split, allow_sample=config.allow_sample)
    # A turn may end with a verdict of other names, and a group's rewards have names of their own.
    if isinstance(env.rubric, Rubric) and env.max_turns == 1 and env.group_rubric is None:
        require_rewards(config, env.rubric.parts)
    rollout = SampledTasks(env, config, sampler) if sampler else ScheduledTasks(env, config)
    rollout.play_tasks = play_tasks
    if not config.max_refills:
        return rollout
    attempts, share = 1 + config.max_refills, config.max_none_share
    return Refill(rollout, config.prompts_per_step, attempts=attempts, max_none_share=share)


def held_out_tasks(
    env: TextEnv, count: int, *, group_size: int = 1, play_tasks: PlayTasks | None = None
) -> Rollout:
    """Roll out the first ``count`` different tasks of an environment, or all, every time.

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
    rollout = HeldOutTasks(env, list(different.values()), group_size)
    rollout.play_tasks = play_tasks
    return rollout


class Tasks:
    """A rollout of tasks, of which each of the policy's processes plays a share."""

    env: TextEnv
    too_long: int | None = None
    """Tasks that ``max_prompt_tokens`` left out, until they are logged; None without a limit."""
    play_tasks: PlayTasks | None = None

    def _play(
        self, policy: Any, tasks: Sequence[Task], group_size: int, config: GRPOConfig | None = None
    ) -> list[EpisodeGroup]:
        """Play tasks, in chunks if there is a config; all processes get all groups."""
        if config is not None and config.max_prompt_tokens:
            options = getattr(policy, "chat_template_kwargs", None)
            ids = [encode_all(policy.tokenizer, [t.messages], [()], options)[0] for t in tasks]
            known, most = zip(tasks, ids, strict=True), config.max_prompt_tokens
            short = [task for task, prompt in known if len(prompt) <= most]
            self.too_long = (self.too_long or 0) + len(tasks) - len(short)
            tasks = short

        def play_here(mine: Sequence[Task]) -> list[EpisodeGroup]:
            if mine and self.play_tasks is not None:
                return list(self.play_tasks(policy, mine, group_size))
            sizes = chunk_sizes(config, len(mine)) if config is not None else []
            if len(sizes) < 2:  # nothing to go on with meanwhile
                return play(self.env, policy, mine, group_size) if mine else []
            return play_in_chunks(self.env, policy, mine, group_size, sizes=sizes)

        world: World | None = getattr(policy, "world", None)
        if world is None:
            return play_here(tasks)
        first, end = (len(tasks) * (world.rank + i) // world.size for i in (0, 1))
        start = policy.rows.next
        policy.rows.next = start + first * group_size
        found = world.on_all(lambda: play_here(tasks[first:end]), breakable=True)
        policy.rows.next = start + len(tasks) * group_size
        return [group for part in found for group in part]


def chunk_sizes(config: GRPOConfig, tasks: int) -> list[int]:
    """Return the tasks of each chunk of a rollout, by ``rollout_chunks`` or ``rows_per_batch``."""
    if config.rollout_chunks:
        count = min(config.rollout_chunks, tasks)
        return [tasks * (i + 1) // count - tasks * i // count for i in range(count)]
    most = max(1, config.rows_per_batch // config.group_size)
    return [min(most, tasks - start) for start in range(0, tasks, most)]


class ScheduledTasks(Tasks):
    """Tasks in scheduled order."""

    def __init__(self, env: TextEnv, config: GRPOConfig) -> None:
        self.env, self.config = env, config

    def __call__(self, policy: Policy, step: int) -> Sequence[EpisodeGroup]:
        """Roll out a step's tasks."""
        size = self.config.prompts_per_step
        tasks = scheduled(self.env, size, first=(step - 1) * size, seed=self.config.seed)
        return self._play(policy, list(tasks), self.config.group_size, self.config)


class SampledTasks(Tasks):
    """Tasks that a sampler chooses; a :class:`StatefulRollout` rollout."""

    def __init__(self, env: TextEnv, config: GRPOConfig, sampler: Sampler) -> None:
        self.env, self.config, self.sampler = env, config, sampler
        self._found: Sequence[EpisodeGroup] = ()
        self._step = 0

    def __call__(self, policy: Policy, step: int) -> Sequence[EpisodeGroup]:
        """Roll out a step's tasks. The sampler is updated once the step is over."""
        self._update(step - 1)
        indices = self.sampler.indices(step, self.config.prompts_per_step)
        tasks = [self.env.task(i) for i in indices]
        self._found = self._play(policy, tasks, self.config.group_size, self.config)
        self._step = step
        return self._found

    def state_dict(self, step: int) -> dict[str, Any]:
        """Return the sampler's state after a step; what came later is left out."""
        self._update(step)
        return self.sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from where :meth:`state_dict` was called."""
        self.sampler.load_state_dict(state)
        self._found = ()

    def _update(self, step: int) -> None:
        # A step that was broken off is rolled out again, and must not be counted twice.
        if self._found and self._step <= step:
            self.sampler.update(self._found)
            self._found = ()


class HeldOutTasks(Tasks):
    """The same tasks at every step."""

    def __init__(self, env: TextEnv, tasks: Sequence[Task], group_size: int) -> None:
        self.env, self.tasks, self.group_size = env, tasks, group_size

    def __call__(self, policy: Policy, step: int) -> Sequence[EpisodeGroup]:
        """Play the tasks."""
        return self._play(policy, self.tasks, self.group_size)


def splits_of(rollout: Rollout, held_out: Rollout | None, config: GRPOConfig) -> dict[str, Any]:
    """Return which splits a run trains and evaluates on, and refuse prompts that both have.

    Rollouts that neither :func:`training_tasks` nor :func:`held_out_tasks` made say nothing.

    Raises:
        ValueError: prompts are in both, and ``config`` does not allow it.
    """
    inner, found = inner_rollout(rollout), dict[str, Any]()
    train = inner.env.source if isinstance(inner, Tasks) else None
    if train is not None:
        found["train"] = train.split
    if isinstance(held_out, HeldOutTasks):
        test, allow = held_out.env.source, config.allow_overlap
        found["held_out"] = test.split
        if train is not None:
            found["overlap"] = refuse_overlap(train, test, held_out.tasks, allow=allow)
    return found
