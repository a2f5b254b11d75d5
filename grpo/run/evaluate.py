"""How good a policy is on tasks that it does not train on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ...envs import Episode, EpisodeGroup, Policy
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
    """

    pass_at_1: float
    reward: float
    scored: int
    masked: int
    truncated: float

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
        )


def evaluate(policy: Policy, rollout: Rollout, *, step: int = 0) -> Score:
    """Roll out once and sum up.

    Args:
        policy: whatever answers.
        rollout: gives the episodes of the held-out tasks, one or more for each.
        step: passed on to ``rollout``.
    """
    return Score.of(rollout(policy, step))


def _is_correct(episode: Episode) -> bool:
    return episode.status is Status.CORRECT
