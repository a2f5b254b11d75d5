"""Drop groups without a gradient, or play more in their place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from ..verifiers import Status
from .episode import Episode, EpisodeGroup
from .policy import Policy

_log = logging.getLogger(__name__)

Flat = Literal["all_correct", "all_wrong", "unscored"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of groups. ``generated`` is the sum of the next five.

    Attributes:
        generated: groups that were played.
        kept: were handed on.
        all_correct: dropped, for every scored episode has full marks.
        all_wrong: dropped, for all of them failed alike.
        unscored: dropped, for fewer than two episodes have a reward.
        surplus: can be learned from, and were not needed any more.
        refilled: of those kept, how many were not played in the first attempt.
        attempts: rollouts, the first included.
        wanted: groups requested.
        masked: episodes without a reward, among all that were played.
        scored: episodes with one.
        correct: of these, how many are right. Their share is what the policy can do; among the
            groups that are kept it is not.
    """

    generated: int = 0
    kept: int = 0
    all_correct: int = 0
    all_wrong: int = 0
    unscored: int = 0
    surplus: int = 0
    refilled: int = 0
    attempts: int = 0
    wanted: int = 0
    masked: int = 0
    scored: int = 0
    correct: int = 0

    @property
    def dropped(self) -> int:
        """The number of groups without a gradient."""
        return self.all_correct + self.all_wrong + self.unscored

    @property
    def complete(self) -> bool:
        """Whether as many groups were kept as requested."""
        return self.kept >= self.wanted

    def __add__(self, other: Self) -> Self:
        """Add the counts, such as those of a whole run."""
        mine, theirs = asdict(self), asdict(other)
        return type(self)(**{name: mine[name] + theirs[name] for name in mine})

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return asdict(self)


def outcome(episode: Episode, part: str | None = None) -> float | None:
    """Return an episode's outcome without rewards for form.

    Args:
        episode: any.
        part: the named reward that is the outcome. Without it: 1.0 if the status is
            ``correct``, else 0.0.

    Returns:
        ``None`` if the episode has no reward.

    Raises:
        ValueError: there is no such part.
    """
    if episode.reward is None:
        return None
    if part is None:
        return float(episode.status is Status.CORRECT)
    if part not in episode.rewards:
        known = ", ".join(episode.rewards) or "none"
        raise ValueError(f"there is no part {part!r}; the parts of {episode.task_id!r} are {known}")
    return episode.rewards[part]


def flat(group: EpisodeGroup, part: str | None = None) -> Flat | None:
    """Return why a group has no gradient, or ``None`` if its outcomes differ.

    It compares outcomes, not totals: if all are wrong, what form or length earned
    still differs, and a learner that is left with it learns form instead of the task.
    """
    outcomes = [o for e in group.episodes if (o := outcome(e, part)) is not None]
    if len(outcomes) < 2:
        return "unscored"
    if len(set(outcomes)) > 1:
        return None
    return "all_correct" if outcomes[0] == 1.0 else "all_wrong"


def drop_flat(
    groups: Sequence[EpisodeGroup], part: str | None = None
) -> tuple[list[EpisodeGroup], Counts]:
    """Return the groups whose outcomes differ, in order, and the counts of all."""
    why = [flat(group, part) for group in groups]
    kept = [group for group, reason in zip(groups, why, strict=True) if reason is None]
    counts = Counts(
        generated=len(groups),
        kept=len(kept),
        all_correct=why.count("all_correct"),
        all_wrong=why.count("all_wrong"),
        unscored=why.count("unscored"),
        attempts=1,
        wanted=len(groups),
    )
    return kept, counts + _episodes(groups)


class Refill:
    """A rollout that replaces groups without a gradient: dynamic sampling.

    DAPO (arXiv 2503.14476, section 3.2 and equation 11) keeps sampling until the batch is full of
    groups that are neither all right nor all wrong. It is given to a learner in place of the
    rollout that it wraps.

    Attempt k of step s, both counted from 1, is the wrapped rollout's step (s - 1) * attempts + k.
    So which tasks a step takes depends on the step alone, and a run that is resumed takes the same
    ones; no task comes twice in an epoch. Those of attempts that a step does not need are passed
    over, and come up again in later epochs.

    If the last attempt leaves the batch short, the groups found so far, perhaps none, are returned
    with a warning. If more than ``max_none_share`` of all episodes have no reward, something is
    broken that more attempts would only hide: all groups are returned unfiltered.

    Args:
        rollout: ``(policy, step)`` to groups, such as a learner is given.
        groups: how many to hand on. More that could be learned from are left out, as DAPO does.
        attempts: rollouts for one step, at most.
        part: as for :func:`outcome`.
        max_none_share: of the episodes of a step.

    Attributes:
        counts: of the last step.
        total: of all steps since this was made.

    Raises:
        ValueError: a number is out of its range.
    """

    def __init__(
        self,
        rollout: Callable[[Policy, int], Sequence[EpisodeGroup]],
        groups: int,
        *,
        attempts: int = 4,
        part: str | None = None,
        max_none_share: float = 0.5,
    ) -> None:
        if groups < 1 or attempts < 1:
            raise ValueError(f"groups and attempts must be at least 1, got {groups} and {attempts}")
        if not 0 <= max_none_share <= 1:
            raise ValueError(f"max_none_share must be in [0, 1], got {max_none_share}")
        self.rollout, self.groups, self.attempts, self.part = rollout, groups, attempts, part
        self.max_none_share = max_none_share
        self.counts, self.total = Counts(), Counts()

    def __call__(self, policy: Policy, step: int) -> list[EpisodeGroup]:
        """Roll out until there are enough groups, or attempts have run out."""
        self.counts = Counts(wanted=self.groups)
        played: list[EpisodeGroup] = []
        kept: list[EpisodeGroup] = []
        for attempt in range(1, self.attempts + 1):
            found = list(self.rollout(policy, (step - 1) * self.attempts + attempt))
            played += found
            good, more = drop_flat(found, self.part)
            counts = _episodes(played)
            if counts.masked / max(1, counts.masked + counts.scored) > self.max_none_share:
                return self._as_it_is(played, attempt, step)
            taken = good[: self.groups - len(kept)]
            self.counts += replace(
                more,
                kept=len(taken),
                surplus=len(good) - len(taken),
                refilled=len(taken) if attempt > 1 else 0,
                wanted=0,
            )
            kept += taken
            if len(kept) == self.groups:
                break
        self.total += self.counts
        if not self.counts.complete:
            _log.warning(
                "step %d: %d of %d groups after %d attempts: %s",
                step, len(kept), self.groups, self.attempts, self.counts,
            )  # fmt: skip
        return kept

    def state_dict(self, step: int) -> dict[str, Any]:
        """Return the state of the wrapped rollout after a step, empty if it has none.

        A step that was broken off after an attempt or more is played again, and what chooses
        tasks is updated with those attempts twice.
        """
        keep = getattr(self.rollout, "state_dict", None)
        return {} if keep is None else dict(keep(step * self.attempts))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of :meth:`state_dict`.

        Raises:
            ValueError: the wrapped rollout keeps no state, and there is one.
        """
        load = getattr(self.rollout, "load_state_dict", None)
        if load is not None:
            load(state)
        elif state:
            raise ValueError(
                "there is a state, and the wrapped rollout keeps none: wrap the rollout that the "
                "run began with"
            )

    def _as_it_is(self, played: list[EpisodeGroup], attempts: int, step: int) -> list[EpisodeGroup]:
        everything = len(played)
        self.counts = _episodes(played) + Counts(
            generated=everything, kept=everything, attempts=attempts, wanted=self.groups
        )
        self.total += self.counts
        _log.warning(
            "step %d: %d of %d episodes have no reward, so no group is dropped or played again",
            step, self.counts.masked, self.counts.masked + self.counts.scored,
        )  # fmt: skip
        return played


def _episodes(groups: Sequence[EpisodeGroup]) -> Counts:
    """Count the episodes of groups."""
    outcomes = [outcome(episode) for group in groups for episode in group.episodes]
    masked = outcomes.count(None)
    return Counts(
        masked=masked, scored=len(outcomes) - masked, correct=sum(o == 1.0 for o in outcomes)
    )
