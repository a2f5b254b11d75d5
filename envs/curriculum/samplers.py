"""Which tasks a step trains on: samplers that are seeded, learn from outcomes, and resume.

A sampler selects the tasks of a step and is updated with the outcomes::

    tasks = [env.task(i) for i in sampler.indices(step, groups)]
    found = play(env, policy, tasks, group_size)
    sampler.update(found)

Its selection depends on its arguments, the step and the outcomes so far, in order, and
on nothing else.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..datasets.mixed import Mixed
from ..datasets.source import Rows, Source
from ..episode import EpisodeGroup
from ..seeding import Floats, rng_at
from ..task import Task
from .difficulty import difficulty as metadata_difficulty
from .pass_rates import PassRates, outcomes


class Sampler(ABC):
    """Select the tasks of each step.

    Args:
        source: of the tasks; an environment's ``source``.
        seed: another seed makes other choices.
    """

    def __init__(self, source: Source, *, seed: int = 0) -> None:
        self.source, self.seed = source, seed

    @abstractmethod
    def indices(self, step: int, groups: int) -> list[int]:
        """Return the indices of a step's tasks, without side effects.

        Args:
            step: from 1, as the learner counts.
            groups: how many tasks.

        Raises:
            ValueError: the step or the number of groups is below 1.
        """

    def update(self, groups: Sequence[EpisodeGroup]) -> None:  # noqa: B027  # some learn nothing
        """Take in what came of a step's tasks, those too that a filter keeps from training.

        Call it once for each step, in the order of steps.
        """

    def state_dict(self) -> dict[str, Any]:
        """Return plain JSON values from which an equal sampler continues with the same choices."""
        parameters = inspect.signature(type(self)).parameters
        options = {name: getattr(self, name) for name in parameters if name not in _NOT_PLAIN}
        return {"sampler": type(self).__name__, "size": self.source.size, "options": options}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of :meth:`state_dict`.

        Raises:
            ValueError: it is the state of a sampler of another kind, size or options.
        """
        mine = Sampler.state_dict(self)
        other = {key: state.get(key) for key in mine}
        if other != mine:
            raise ValueError(
                f"the state is of another sampler: expected {mine}, got {other}. Make the sampler "
                "with the same arguments, or start without the state"
            )


_NOT_PLAIN = ("source", "rates", "difficulty")


class Uniform(Sampler):
    """Every task once an epoch, each epoch shuffled; of endless sources, new tasks for ever.

    These are the tasks that :func:`~assay.envs.rollout` and the learner take without a sampler.
    The number of groups must be the same at each step.
    """

    def indices(self, step: int, groups: int) -> list[int]:
        """Return the source's own schedule."""
        _refuse(step, groups)
        first = (step - 1) * groups
        return [self.source.schedule(first + i, self.seed) for i in range(groups)]


class _OverArms(Sampler):
    """A sampler over arms: tasks, or the sources of an unlimited mixture."""

    def __init__(self, source: Source, *, seed: int = 0) -> None:
        super().__init__(source, seed=seed)
        self._mixed = source if source.size is None and isinstance(source, Mixed) else None
        if source.size is None and self._mixed is None:
            raise ValueError(
                f"{type(self).__name__} chooses among tasks that come again, and these never end: "
                "give a mixture, such as levels(id, level=[1, 2, 3]).source, or use Uniform"
            )
        self.arms = len(self._mixed.names) if self._mixed else int(source.size or 0)

    def _index(self, arm: int, rng: np.random.Generator) -> int:
        if self._mixed is None:
            return arm
        return self._mixed.index_of(arm, int(rng.integers(2**62 // self.arms)))

    def _task(self, arm: int) -> Task:
        """Return the task of an arm, or one of its tasks."""
        return self.source.task(arm if self._mixed is None else self._mixed.index_of(arm, 0))

    def _key_of(self, task: Task) -> str:
        """Return the key of a task's arm in :class:`PassRates`."""
        return task.id if self._mixed is None else str(task.metadata["source"])

    @cached_property
    def keys(self) -> list[str]:
        """The names of the arms: ids of tasks, or names of sources."""
        return list(self._mixed.names) if self._mixed else _ids(self.source)


def _ids(source: Source) -> list[str]:
    """Return the ids of a finite source's tasks, without making the tasks if possible."""
    if isinstance(source, Rows):
        return list(source.index)
    if isinstance(source, Mixed):
        pairs = zip(source.names, source.sources, strict=True)
        return [f"{name}/{id_}" for name, inner in pairs for id_ in _ids(inner)]
    return [source.task(i).id for i in range(source.size or 0)]


class EasyToHard(_OverArms):
    r"""Begin with the easiest tasks and take in harder ones until all are in.

    At step :math:`t`, from 0, tasks are drawn evenly from the easiest share
    :math:`c(t) = \min(1, \sqrt{t (1 - c_0^2) / T + c_0^2})`: the square-root competence of
    Platanios et al. 2019 (arXiv:1903.09848).

    Args:
        source: of the tasks.
        steps: T, the step at which all tasks are in.
        start: c_0, the share to begin with, in (0, 1].
        difficulty: of each task, by index; or a function of a task; by default
            :func:`~assay.envs.curriculum.difficulty.difficulty`, which reads the metadata.
        seed: another seed makes other choices.

    Raises:
        ValueError: an argument is out of range, or a task has no difficulty.
    """

    def __init__(
        self,
        source: Source,
        *,
        steps: int,
        start: float = 0.1,
        difficulty: Callable[[Task], float] | Sequence[float] = metadata_difficulty,
        seed: int = 0,
    ) -> None:
        super().__init__(source, seed=seed)
        if steps < 1 or not 0 < start <= 1:
            raise ValueError(
                f"steps must be at least 1 and start in (0, 1], got {steps} and {start}"
            )
        self.steps, self.start = steps, start
        given = (
            [difficulty(self._task(arm)) for arm in range(self.arms)]
            if callable(difficulty)
            else difficulty
        )
        values = np.asarray(given, dtype=np.float64)
        if values.shape != (self.arms,) or not np.isfinite(values).all():
            raise ValueError(f"difficulty must be {self.arms} finite numbers, got {given!r:.80}")
        self._order = np.argsort(values, kind="stable")

    def competence(self, step: int) -> float:
        """Return the share of tasks, from the easiest on, that a step draws from."""
        return float(
            min(1.0, np.sqrt((step - 1) * (1 - self.start**2) / self.steps + self.start**2))
        )

    def indices(self, step: int, groups: int) -> list[int]:
        """Return distinct tasks, as long as there are enough."""
        _refuse(step, groups)
        rng = rng_at("easy to hard", self.seed, step)
        among = int(np.ceil(self.competence(step) * self.arms))
        if self._mixed is not None:
            chosen = rng.integers(among, size=groups)
        else:
            among = min(max(among, groups), self.arms)
            rounds = [min(among, groups - at) for at in range(0, groups, among)]
            chosen = np.concatenate([rng.choice(among, size=n, replace=False) for n in rounds])
        return [self._index(int(self._order[i]), rng) for i in chosen]


class Weighted(_OverArms):
    """Draw tasks in proportion to a weight that depends on what is known of their pass rates.

    A step draws different tasks, as long as there are enough.

    Args:
        source: of the tasks.
        rates: what is known so far, such as from an earlier run; it is kept up to date.
        floor: no weight is below this share of the largest possible one, so that no task is
            given up for ever.
        seed: another seed makes other choices.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(
        self, source: Source, *, rates: PassRates | None = None, floor: float = 0.02, seed: int = 0
    ) -> None:
        super().__init__(source, seed=seed)
        if not 0 < floor <= 1:
            raise ValueError(f"floor must be above 0 and at most 1, got {floor}")
        self.rates, self.floor = PassRates() if rates is None else rates, floor
        self._current = self._all_weights()

    @abstractmethod
    def weight(self, alpha: Floats, beta: Floats) -> Floats:
        """Return weights in [0, 1].

        Args:
            alpha: [N], first parameters of Beta posteriors of the pass rates.
            beta: [N], the second.
        """

    def indices(self, step: int, groups: int) -> list[int]:
        """Draw indices by the current weights."""
        _refuse(step, groups)
        rng = rng_at(type(self).__name__, self.seed, step)
        arms = draw(self._current, rng.random(groups), again=self._mixed is not None)
        return [self._index(arm, rng) for arm in arms]

    def update(self, groups: Sequence[EpisodeGroup]) -> None:
        """Count passes and failures and reweight those tasks; other tasks are refused first.

        Raises:
            ValueError: a task is not of this source.
        """
        named = [self._key_of(group.task) for group in groups]
        keys = list(dict.fromkeys(named))
        for key in keys:
            if key not in self.places:
                raise ValueError(f"no task of this sampler is called {key!r}")
        for key, group in zip(named, groups, strict=True):
            self.rates.record(key, *outcomes(group))
        self._current[[self.places[key] for key in keys]] = self._weights(keys)

    def state_dict(self) -> dict[str, Any]:
        """Add the pass rates."""
        return {**super().state_dict(), "rates": self.rates.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the pass rates too."""
        super().load_state_dict(state)
        self.rates.load_state_dict(state["rates"])
        self._current = self._all_weights()

    @cached_property
    def places(self) -> dict[str, int]:
        """Each arm by its name."""
        return {key: i for i, key in enumerate(self.keys)}

    def _all_weights(self) -> Floats:
        weights = np.full(self.arms, self._floored([self.rates.prior])[0])
        known = [key for key in self.rates if key in self.places]
        if known:
            weights[[self.places[key] for key in known]] = self._weights(known)
        return weights

    def _weights(self, keys: Sequence[str]) -> Floats:
        return self._floored([self.rates.posterior(key) for key in keys])

    def _floored(self, posteriors: Sequence[tuple[float, float]]) -> Floats:
        alpha, beta = np.array(posteriors, dtype=np.float64).reshape(-1, 2).T
        return np.maximum(self.weight(alpha, beta), self.floor)


class TargetRate(Weighted):
    r"""Prefer tasks that are solved about as often as a target says.

    The weight is what a Gaussian window around the target is expected to be, for a pass rate with
    the posterior's mean :math:`m` and variance :math:`v`, taken as normal:
    :math:`\frac{h}{\sqrt{h^2 + v}} \exp\left(-\frac{(m - p)^2}{2 (h^2 + v)}\right)`. So tasks that
    are not well known are tried. Groups near one half teach the most: the variance of a reward
    with pass rate :math:`p` is :math:`p (1 - p)` (Bae et al. 2025, arXiv:2504.03380).

    Args:
        source: of the tasks.
        target: p, the pass rate, in (0, 1).
        width: h, standard deviation of the window, above 0.
        rates: what is known so far.
        floor: as for :class:`Weighted`.
        seed: another seed makes other choices.
    """

    def __init__(
        self,
        source: Source,
        *,
        target: float = 0.5,
        width: float = 0.15,
        rates: PassRates | None = None,
        floor: float = 0.02,
        seed: int = 0,
    ) -> None:
        if not 0 < target < 1 or not 0 < width < float("inf"):
            raise ValueError(
                f"target must be in (0, 1) and width above 0, got {target} and {width}"
            )
        self.target, self.width = target, width
        super().__init__(source, rates=rates, floor=floor, seed=seed)

    def weight(self, alpha: Floats, beta: Floats) -> Floats:
        """Weigh tasks by a window around the target, as wide as the uncertainty."""
        count = alpha + beta
        mean = alpha / count
        spread = self.width**2 + mean * (1 - mean) / (count + 1)
        window: Floats = np.exp(-((mean - self.target) ** 2) / (2 * spread))
        return window * self.width / np.sqrt(spread)


class Prioritised(Weighted):
    r"""Prefer tasks by what there is to be learned from them.

    The priority is the expected variance of the outcome, as in Rutherford et al. 2024
    (arXiv:2408.15099), over the posterior: :math:`\mathbb{E}[\theta (1 - \theta)] =
    \frac{\alpha \beta}{(\alpha + \beta)(\alpha + \beta + 1)}`. Tasks are drawn in proportion to its
    ``exponent``-th power, as in Schaul et al. 2016 (arXiv:1511.05952), equation 1.

    Args:
        source: of the tasks.
        exponent: 0 is uniform; the larger, the more the best are preferred.
        rates: what is known so far.
        floor: as for :class:`Weighted`.
        seed: another seed makes other choices.
    """

    def __init__(
        self,
        source: Source,
        *,
        exponent: float = 1.0,
        rates: PassRates | None = None,
        floor: float = 0.02,
        seed: int = 0,
    ) -> None:
        if not 0 <= exponent < float("inf"):
            raise ValueError(f"exponent must be at least 0, got {exponent}")
        self.exponent = exponent
        super().__init__(source, rates=rates, floor=floor, seed=seed)

    def weight(self, alpha: Floats, beta: Floats) -> Floats:
        """Weigh tasks by four times the expected variance (at most a quarter), to a power."""
        count = alpha + beta
        variance: Floats = alpha * beta / (count * (count + 1))
        return (4 * variance) ** self.exponent


def _refuse(step: int, groups: int) -> None:
    if step < 1 or groups < 1:
        raise ValueError(f"step and groups must be at least 1, got {step} and {groups}")


def draw(weights: Floats, shares: Floats, *, again: bool) -> list[int]:
    """Draw an index for each share in [0, 1): where the running sum of the weights passes it.

    Without ``again`` an index comes once, until all others are drawn or have no weight.
    """
    left, found = weights.copy(), []
    for share in shares:
        if not left.any():
            left = weights.copy()
        sums = left.cumsum()
        place = int(np.searchsorted(sums, share * sums[-1], side="right"))
        found.append(min(place, int(np.flatnonzero(left)[-1])))  # rounding finds no weight of 0
        if not again:
            left[found[-1]] = 0.0
    return found
