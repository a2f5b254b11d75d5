"""How good a policy is on tasks that it does not train on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ...envs import Episode, EpisodeGroup, Policy, pass_at_k
from ...verifiers import Status

Rollout = Callable[[Policy, int], Sequence[EpisodeGroup]]
"""``(policy, step)`` to groups of episodes: where a learner meets an environment.

It must choose its tasks by the step alone (training: other tasks at each step; held-out: the
same ones always), or be :class:`Kept`, so that a resumed run sees what the unbroken one would have
seen.
"""


@runtime_checkable
class Kept(Protocol):
    """A rollout with a state, which checkpoints keep."""

    def state_dict(self, step: int) -> dict[str, Any]:
        """Plain JSON values: the state after a step."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a policy earned.

    Attributes:
        pass_at_1: share of scored episodes that are correct: the chance that one reply to a
            task is right.
        reward: mean over scored episodes.
        scored: how many have a reward.
        masked: how many have none, and count for nothing.
        truncated: share of all that were cut off.
        pass_at: by k: the chance that one of k replies to a task is right, as the mean over tasks
            of :func:`~assay.envs.pass_at_k`; for k = 2, 4, 8 up to the replies that a task has.
    """

    pass_at_1: float
    reward: float
    scored: int
    masked: int
    truncated: float
    pass_at: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Sequence[EpisodeGroup]) -> Score:
        """Sum up some groups. Where nothing is scored, both means are NaN."""
        episodes = [e for group in groups for e in group.episodes]
        rewards = [e.reward for e in episodes if e.reward is not None]
        correct = sum(_is_correct(e) for e in episodes)
        return cls(
            pass_at_1=correct / len(rewards) if rewards else float("nan"),
            reward=sum(rewards) / len(rewards) if rewards else float("nan"),
            scored=len(rewards),
            masked=len(episodes) - len(rewards),
            truncated=sum(e.truncated for e in episodes) / max(1, len(episodes)),
            pass_at=_pass_at(groups),
        )

    def to_metrics(self) -> dict[str, float]:
        """Its numbers as ``held_out/NAME``."""
        return {
            "held_out/pass_at_1": self.pass_at_1,
            **{f"held_out/pass_at_{k}": value for k, value in self.pass_at.items()},
            "held_out/reward": self.reward,
            "held_out/scored": self.scored,
            "held_out/masked": self.masked,
            "held_out/truncated": self.truncated,
        }


def evaluate(policy: Policy, rollout: Rollout, *, step: int = 0, samples: int = 1) -> Score:
    """Roll out once and sum up.

    Args:
        policy: whatever answers.
        rollout: gives the episodes of the held-out tasks, one or more for each.
        step: passed on to ``rollout``.
        samples: episodes that each task should have.

    Raises:
        ValueError: a task has fewer.
    """
    groups = rollout(policy, step)
    fewest = min((len(group.episodes) for group in groups), default=samples)
    if fewest < samples:
        raise ValueError(
            f"eval_samples is {samples}, and the held-out rollout plays a task {fewest} times: "
            f"make it with held_out_tasks(env, count, group_size={samples})"
        )
    return Score.of(groups)


def _pass_at(groups: Sequence[EpisodeGroup]) -> dict[int, float]:
    """For each power of two above 1; a task with fewer scored replies than k is left out."""
    counts = []
    for group in groups:
        scored = [e for e in group.episodes if e.reward is not None]
        counts.append((len(scored), sum(_is_correct(e) for e in scored)))
    found: dict[int, float] = {}
    k = 2
    while values := [pass_at_k(n, c, k) for n, c in counts if n >= k]:
        found[k] = sum(values) / len(values)
        k *= 2
    return found


def _is_correct(episode: Episode) -> bool:
    return episode.status is Status.CORRECT
