"""P tasks, G copies of each, judged in one batch: a Gymnasium vector environment."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .episode import EpisodeGroup
from .policy import Completion
from .rollout import grouped
from .state import State, describe
from .task import Task
from .text_env import TextEnv, findings, reward_of


class GroupVectorEnv(VectorEnv[tuple[str, ...], tuple[str, ...], Any]):
    """Put P tasks to G copies each and judge the P * G replies together.

    Observation: P * G prompts, the copies of a task next to each other.
    Action: P * G replies in that order.
    Reward: float64 array [P * G]; NaN where a fault of ours leaves no score.
    End: every episode ends after one step. The autoreset mode is ``DISABLED``: call ``reset``
    for new tasks, or ``reset(options={"reset_mask": mask})`` for some of them. After a step,
    :attr:`groups` holds what happened as episode groups.

    Args:
        env: where tasks and rubric come from.
        num_envs: P * G.
        group_size: G.

    Raises:
        ValueError: ``num_envs`` is not a positive multiple of ``group_size``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # Gymnasium's own, annotated as it is there
        "render_modes": [],
        "autoreset_mode": AutoresetMode.DISABLED,
    }

    def __init__(self, env: TextEnv, *, num_envs: int, group_size: int = 1) -> None:
        if group_size < 1 or num_envs < 1 or num_envs % group_size:
            raise ValueError(
                "num_envs must be a positive multiple of group_size, "
                f"got num_envs={num_envs} and group_size={group_size}"
            )
        self.env, self.num_envs, self.group_size = env, num_envs, group_size
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self.groups: list[EpisodeGroup] = []
        prompts = num_envs // group_size
        self._rngs: list[np.random.Generator | None] = [None] * prompts
        self._tasks: list[Task | None] = [None] * prompts

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Put new tasks, one to each group.

        Args:
            seed: group p is put the task that ``TextEnv.reset(seed=seed + p)`` puts. A list
                gives one seed for each group, or one for each copy, equal within a group.
            options: ``{"tasks": [P indices]}`` names the tasks; ``{"reset_mask": [P * G]}``
                resets only the groups it marks, equal within a group.

        Raises:
            ValueError: seeds or mask differ within a group, or are of another length.
            IndexError: there is no such task.
        """
        options = dict(options or {})
        seeds = self._seeds(seed)
        mask = self._per_group("reset_mask", options.get("reset_mask", [True] * self.num_envs))
        named = options.get("tasks")
        if named is not None and len(named) != len(self._tasks):
            raise ValueError(f"tasks must name {len(self._tasks)} tasks, got {len(named)}")
        for p, marked in enumerate(mask):
            if not marked:
                continue
            rng = self._rngs[p]
            if seeds[p] is not None or rng is None:
                rng = self._rngs[p] = seeding.np_random(seeds[p])[0]
            index = self.env.source.draw(rng) if named is None else operator.index(named[p])
            self._tasks[p] = self.env.task(index)
        self.groups = []
        tasks = self._copies()
        infos = self._infos([describe(State(task)) for task in tasks])
        return tuple(task.text for task in tasks), infos

    def step(self, actions: Sequence[str]) -> tuple[tuple[str, ...], Any, Any, Any, dict[str, Any]]:
        """Judge the replies in one batch and end every episode.

        Raises:
            RuntimeError: some group has no task to reply to.
            ValueError: there is not one reply for each copy.
        """
        if len(actions) != self.num_envs:
            raise ValueError(f"expected {self.num_envs} replies, got {len(actions)}")
        tasks = self._copies()
        states = [self.env.begin(task) for task in tasks]
        self.env.advance(states, [Completion(a) for a in actions])
        self.groups = grouped(self.env, tasks[:: self.group_size], states)
        verdicts = [e.verdict for group in self.groups for e in group.episodes]
        self._tasks = [None] * len(self._tasks)
        infos = self._infos(
            [describe(s) | findings(v) for s, v in zip(states, verdicts, strict=True)]
        )
        return (
            tuple(task.text for task in tasks),
            np.array([reward_of(v) for v in verdicts], dtype=np.float64),
            np.ones(self.num_envs, dtype=np.bool_),
            np.zeros(self.num_envs, dtype=np.bool_),
            infos,
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Give back what the rubric holds."""
        self.env.close()

    def _copies(self) -> list[Task]:
        tasks = [task for task in self._tasks if task is not None]
        if len(tasks) != len(self._tasks):
            raise RuntimeError(
                "every group needs a task: call reset, since an episode has one step "
                "and the autoreset mode is DISABLED"
            )
        return [task for task in tasks for _ in range(self.group_size)]

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        groups = len(self._tasks)
        if seed is None:
            return [None] * groups
        if isinstance(seed, int):
            return [seed + p for p in range(groups)]
        return list(seed) if len(seed) == groups else self._per_group("seed", seed)

    def _per_group(self, name: str, values: Sequence[Any]) -> list[Any]:
        if len(values) != self.num_envs:
            raise ValueError(f"{name} must have {self.num_envs} entries, got {len(values)}")
        rows = [
            list(values[i : i + self.group_size]) for i in range(0, self.num_envs, self.group_size)
        ]
        if any(value != row[0] for row in rows for value in row):
            raise ValueError(f"{name} must be equal within each group of {self.group_size}")
        return [row[0] for row in rows]

    def _infos(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for i, row in enumerate(rows):
            infos = self._add_info(infos, row, i)
        return infos
