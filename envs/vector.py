"""P tasks, G copies of each, judged in one batch: a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any, Self

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ..verifiers import Verdict
from .episode import EpisodeGroup
from .policy import Completion
from .rollout import group_episodes
from .state import State, describe, last_text
from .task import Task
from .text_env import TextEnv, known_options, verdict_info


class GroupVectorEnv(VectorEnv[tuple[str, ...], tuple[str, ...], Any]):
    """Put P tasks to G copies each, and judge the copies of a task together.

    Observation: P * G texts, the copies of a task next to each other.
    Action: P * G replies in that order.
    Reward: float64 array [P * G]; NaN if an infrastructure failure leaves no score.
    End: the copies of a task end together, in the step in which the last of them is done. One
    that is done earlier waits: it is in ``infos["waiting"]``, its action is ignored, its reward is
    0.0, and what its whole episode is worth is paid at the end. A group is judged with all of it
    in view, and it draws its next task as one. With ``group_size=1`` nobody waits, and every step
    is that of Gymnasium's ``SyncVectorEnv`` in the same autoreset mode.

    :attr:`groups` has the groups that ended in the last step, as records.

    Args:
        env: what puts tasks and judges replies.
        num_envs: P * G.
        group_size: G.
        autoreset_mode: what becomes of a group that has ended. ``DISABLED``: it must be
            ``reset``, all groups or those that a ``reset_mask`` marks. ``NEXT_STEP``: the next
            step ignores its actions and gives the new task, with reward 0.0. ``SAME_STEP``: the
            step that ends it gives the new task; the end is in ``infos["final_obs"]`` and
            ``infos["final_info"]``.
        max_episode_steps: a copy that is not done by then is truncated, and scored as it stands.

    Raises:
        ValueError: ``num_envs`` is not a positive multiple of ``group_size``, the mode is
            unknown, or ``max_episode_steps`` is below 1.
    """

    def __init__(
        self,
        env: TextEnv,
        *,
        num_envs: int,
        group_size: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
        max_episode_steps: int | None = None,
    ) -> None:
        whole = all(isinstance(n, Integral) for n in (num_envs, group_size))
        if not whole or group_size < 1 or num_envs < 1 or num_envs % group_size:
            raise ValueError(
                "num_envs must be a positive multiple of group_size, "
                f"got num_envs={num_envs!r} and group_size={group_size!r}"
            )
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be at least 1, got {max_episode_steps}")
        self.env, self.num_envs, self.group_size = env, num_envs, group_size
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.max_episode_steps = max_episode_steps
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self._records: Callable[[], list[EpisodeGroup]] = list
        prompts = num_envs // group_size
        self._rngs: list[np.random.Generator | None] = [None] * prompts
        self._states: list[list[State]] = [[] for _ in range(prompts)]
        self._over = [False] * prompts

    @property
    def groups(self) -> list[EpisodeGroup]:
        """The groups that ended in the last step, as records, made on access."""
        found = self._records()
        self._records = lambda: found
        return found

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """[P * G]: the copies that are done, whose next action is ignored."""
        return np.array([bool(s.ended) for group in self._states for s in group], dtype=np.bool_)

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
            options: ``{"tasks": [P indices]}`` names the tasks, ``{"task": index}`` one for all;
                ``{"reset_mask": mask}`` resets only the groups that it marks, whether they have
                ended or not. The mask is a NumPy array of P * G bools, equal within a group.

        Raises:
            TypeError: the mask is not a NumPy array of bools.
            ValueError: seeds or mask differ within a group, are of another length, or the mask
                marks nothing; a group that it does not mark was never put a task; both ``task``
                and ``tasks`` are named; or there is another option.
            IndexError: there is no such task.
        """
        options = known_options(options, ("task", "tasks", "reset_mask"))
        if {"task", "tasks"} <= set(options):
            raise ValueError("options name both 'task', for all groups, and 'tasks': name one")
        seeds = self._seeds(seed)
        marked = self._marked(options.get("reset_mask"))
        groups = len(self._states)
        named = options.get("tasks", [options.get("task")] * groups)
        if not isinstance(named, Sequence | np.ndarray):
            raise TypeError(f"tasks must be a list of {groups} indices, got {named!r:.80}")
        if len(named) != groups:
            raise ValueError(f"tasks must name {groups} tasks, got {len(named)}")
        missing = [p for p, states in enumerate(self._states) if not states and p not in marked]
        if missing:
            raise ValueError(f"reset all groups first: group {missing[0]} was never put a task")
        rngs = {
            p: self._rng(p) if seeds[p] is None else seeding.np_random(seeds[p])[0] for p in marked
        }
        # A task that there is not raises before any group has changed.
        tasks = {p: self._task(rngs[p], named[p]) for p in marked}
        for p, task in tasks.items():
            self._rngs[p] = rngs[p]
            self._put(p, task)
        self._records = list
        rows: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in [i for p in marked for i in self._places(p)]:
            rows[i] = describe(self._states[i // self.group_size][i % self.group_size])
        return self._observations(), batched(rows)

    def step(self, actions: Sequence[str]) -> tuple[tuple[str, ...], Any, Any, Any, dict[str, Any]]:
        """Take a turn in each episode; judge the groups that end with it.

        Raises:
            RuntimeError: a group has no task to reply to.
            TypeError: a reply is not text.
            ValueError: there is not one reply for each copy.
        """
        self._refuse(actions)
        over = [p for p, is_over in enumerate(self._over) if is_over]
        for p in over:  # NEXT_STEP: otherwise nothing is over here
            self._begin(p)
        begun = {i for p in over for i in self._places(p)}
        states = self._flat()
        asked = [i for i, state in enumerate(states) if not state.ended and i not in begun]
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        rewards[asked] = self._advance([states[i] for i in asked], [actions[i] for i in asked])
        self._over = [all(s.ended for s in group) for group in self._states]
        return self._result(rewards, [p for p, is_over in enumerate(self._over) if is_over])

    def close_extras(self, **kwargs: Any) -> None:
        """Give back what the rubric holds."""
        self.env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _advance(self, states: Sequence[State], replies: Sequence[str]) -> list[float]:
        """Take one turn in these episodes and return the rewards."""
        self.env.advance(states, [Completion(reply) for reply in replies])
        limit = self.max_episode_steps
        for state in states:
            if limit is not None and len(state.step_rewards) >= limit and not state.ended:
                state.ended = "truncated"
        return [state.step_rewards[-1] or 0.0 for state in states]

    def _judged(self, ended: list[int]) -> Sequence[Verdict]:
        """Judge the groups that have ended, in order."""
        self._records = list
        if not ended:
            return []
        states = [state for p in ended for state in self._states[p]]
        verdicts: Sequence[Verdict] = self.env.verdicts(states)
        tasks = [self._states[p][0].task for p in ended]
        self._records = partial(group_episodes, self.env, tasks, states, verdicts)
        if self.env.group_rubric is not None:
            verdicts = [e.verdict for group in self.groups for e in group.episodes]
        return verdicts

    def _result(
        self, rewards: NDArray[np.float64], ended: list[int]
    ) -> tuple[tuple[str, ...], Any, Any, Any, dict[str, Any]]:
        """Return the result of a step; with ``SAME_STEP``, after starting the next tasks."""
        states = self._flat()
        judged = [i for p in ended for i in self._places(p)]
        terminated, truncated = np.zeros((2, self.num_envs), dtype=np.bool_)
        over = [states[i].ended == "done" for i in judged]
        terminated[judged], truncated[judged] = over, [not done for done in over]
        verdicts = self._judged(ended)
        rewards[judged] += np.array([v.score for v in verdicts], dtype=np.float64)  # None: NaN
        rows = [describe(state) for state in states]
        for i, verdict in zip(judged, verdicts, strict=True):
            rows[i] |= verdict_info(verdict)
        more: dict[int, dict[str, Any]] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended:
            for i in judged:
                more[i] = {"final_obs": last_text(states[i]), "final_info": rows[i]}
            for p in ended:
                self._begin(p)
            rows = [describe(state) for state in self._flat()]
        for i in sorted({*range(len(states))}.difference(judged)):
            if states[i].ended:
                more[i] = {"waiting": True}
        infos = batched([more.get(i, {}) | row for i, row in enumerate(rows)] if more else rows)
        return self._observations(), rewards, terminated, truncated, infos

    def _begin(self, p: int) -> None:
        """Put a group its next task, which it draws."""
        self._put(p, self._task(self._rng(p)))

    def _task(self, rng: np.random.Generator, named: int | None = None) -> Task:
        """Return the named task, or one that is drawn."""
        return self.env.task(self.env.source.draw(rng) if named is None else named)

    def _put(self, p: int, task: Task) -> None:
        self._states[p] = [self.env.begin(task) for _ in range(self.group_size)]
        self._over[p] = False

    def _rng(self, p: int) -> np.random.Generator:
        """Return a group's random generator, new if there is none yet."""
        rng = self._rngs[p]
        if rng is None:
            rng = self._rngs[p] = seeding.np_random()[0]
        return rng

    def _places(self, p: int) -> range:
        """Return the indices of a group's copies."""
        return range(p * self.group_size, (p + 1) * self.group_size)

    def _flat(self) -> list[State]:
        return [state for states in self._states for state in states]

    def _observations(self) -> tuple[str, ...]:
        return tuple(last_text(state) for state in self._flat())

    def _refuse(self, actions: Sequence[str]) -> None:
        if isinstance(actions, str):  # a sequence, too, of replies of one character
            raise TypeError(f"expected {self.num_envs} replies, got one text: {actions!r:.80}")
        if len(actions) != self.num_envs:
            raise ValueError(f"expected {self.num_envs} replies, got {len(actions)}")
        if not all(self._states):
            raise RuntimeError("every group needs a task: call reset first")
        if self.autoreset_mode is AutoresetMode.DISABLED and any(self._over):
            raise RuntimeError(
                f"group {self._over.index(True)} has ended, and the autoreset mode is DISABLED: "
                "call reset, or reset(options={'reset_mask': terminated | truncated}) for it alone"
            )

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        groups = len(self._states)
        if seed is None:
            return [None] * groups
        if isinstance(seed, Integral):
            return [int(seed) + p for p in range(groups)]
        if isinstance(seed, str) or not isinstance(seed, Sequence | np.ndarray):
            raise TypeError(f"seed must be a whole number or a list of these, got {seed!r:.80}")
        seeds = [int(s) if isinstance(s, Integral) else s for s in seed]
        return seeds if len(seeds) == groups else self._per_group("seed", seeds)

    def _marked(self, mask: Any) -> list[int]:
        """Return the groups that a mask selects, by Gymnasium's rules."""
        if mask is None:
            return list(range(len(self._states)))
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"reset_mask must be a NumPy array of bools, got {mask!r:.80}")
        marked = np.flatnonzero(self._per_group("reset_mask", mask.tolist()))
        if not len(marked):
            raise ValueError("reset_mask must mark at least one group, it marks none")
        return [int(p) for p in marked]

    def _per_group(self, name: str, values: Sequence[Any]) -> list[Any]:
        if len(values) != self.num_envs:
            raise ValueError(f"{name} must have {self.num_envs} entries, got {len(values)}")
        rows = [
            list(values[i : i + self.group_size]) for i in range(0, self.num_envs, self.group_size)
        ]
        if any(value != row[0] for row in rows for value in row):
            raise ValueError(f"{name} must be equal within each group of {self.group_size}")
        return [row[0] for row in rows]


def batched(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the infos of copies in Gymnasium's form: arrays by key, each with a mask ``_key``.

    It is what ``VectorEnv._add_info`` makes of them one by one. If the copies' values are of
    different types it does not take the first one's: numbers become floats, a missing one NaN, and
    anything else stays as it is in an array of objects.
    """
    infos: dict[str, Any] = {}
    for key in dict.fromkeys(chain.from_iterable(rows)):
        values = [row[key] for row in rows if key in row]
        mask = np.ones(len(rows), dtype=np.bool_)
        if len(values) < len(rows):
            mask[:] = [key in row for row in rows]
        kinds = set(map(type, values))
        if all(issubclass(kind, dict) for kind in kinds):
            infos[key] = batched([row.get(key, {}) for row in rows])
        else:
            infos[key] = _array(values, kinds, mask)
        infos[f"_{key}"] = mask
    return infos


def _array(values: list[Any], kinds: set[type], mask: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the values where the mask is True, elsewhere zeros or ``None``."""
    kind = _kind(values, kinds)
    if kind is None:
        found: NDArray[Any] = np.fromiter(values, dtype=object, count=len(values))
    else:
        found = np.array(values, dtype=kind)
    if len(found) == len(mask):
        return found
    array = np.full((len(mask), *found.shape[1:]), None if kind is None else 0, dtype=found.dtype)
    array[mask] = found
    return array


def _kind(values: list[Any], kinds: set[type]) -> Any:
    """Return the dtype of all values, ``None`` if only ``object`` fits."""
    if kinds in ({float, type(None)}, {int, float}):
        return float
    kind: Any = kinds.pop()
    if kinds:
        return None
    if kind is np.ndarray:
        alike = {(value.shape, value.dtype) for value in values}
        return values[0].dtype if len(alike) == 1 else None
    if kind is int and not all(-(2**63) < value < 2**63 for value in values):
        return None
    return kind if kind in (int, float, bool) or issubclass(kind, np.number) else None
