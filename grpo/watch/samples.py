"""A few groups of each step, kept to be read by a person."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from ...envs import Episode, EpisodeGroup
from ...verifiers.visible import shortened
from ..sampling.random_numbers import derive_seed
from .metrics import deviation

LONGEST = 2000
"""Characters kept of a prompt and of a reply."""
MOST_REPLIES = 8
"""Replies kept of a group."""
_STEPS = 200


def due(step: int, steps: int) -> bool:
    """Whether a step of a run of so many keeps samples: the first, the last and about 200 more."""
    return step in (1, steps) or step % max(1, steps // _STEPS) == 0


def sample_groups(
    groups: Sequence[EpisodeGroup],
    *,
    step: int,
    seed: int,
    count: int = 3,
    advantages: Sequence[float | None] = (),
) -> list[dict[str, Any]]:
    """Choose some groups of a rollout, as JSON values.

    In this order: the one whose rewards differ most, the best, the worst, then any. Which of equal
    ones is taken, and which any is, depends on the seed and the step alone.

    Args:
        groups: of the rollout.
        step: of the run.
        seed: of the run.
        count: how many groups.
        advantages: one for each episode, group after group; none where they are not known.

    Returns:
        For each: ``kept_as``, ``task``, ``prompt``, ``size`` (replies it had) and ``replies``, at
        most 8 of them, each with ``text``, ``reward``, ``rewards``, ``status``, ``reason``,
        ``advantage``, ``tokens`` and ``truncated``. Long texts are shortened.
    """
    order = sorted(range(len(groups)), key=lambda i: derive_seed(seed, step, i))
    chosen: dict[int, str] = {}
    for name, value in (("most varied", _spread), ("best", _mean), ("worst", _cost)):
        free = [i for i in order if i not in chosen]
        if free and len(chosen) < count:
            chosen[max(free, key=lambda i: value(groups[i]))] = name
    for i in order:
        if len(chosen) < count:
            chosen.setdefault(i, "any")
    starts = [0]
    for group in groups:
        starts.append(starts[-1] + len(group.episodes))
    known = list(advantages) if len(advantages) == starts[-1] else [None] * starts[-1]
    return [
        _record(groups[i], name, known[starts[i] : starts[i + 1]]) for i, name in chosen.items()
    ]


def _record(group: EpisodeGroup, name: str, advantages: Sequence[float | None]) -> dict[str, Any]:
    places = _kept(group)
    return {
        "kept_as": name,
        "task": shortened(group.task.id, LONGEST),
        "prompt": shortened(_conversation(group.task.messages), LONGEST),
        "size": len(group.episodes),
        "replies": [_reply(group.episodes[i], advantages[i]) for i in places],
    }


def _kept(group: EpisodeGroup) -> list[int]:
    """All places, or where there are too many some from the best to the worst, evenly."""
    size = len(group.episodes)
    if size <= MOST_REPLIES:
        return list(range(size))
    ranked = sorted(range(size), key=lambda i: -_number(group.rewards[i]))
    return sorted(ranked[round(i * (size - 1) / (MOST_REPLIES - 1))] for i in range(MOST_REPLIES))


def _reply(episode: Episode, advantage: float | None) -> dict[str, Any]:
    return {
        "text": shortened(_conversation(episode.turns), LONGEST),
        "reward": episode.reward,
        "rewards": dict(episode.rewards),
        "status": episode.status.value,
        "reason": shortened(episode.verdict.reason, LONGEST),
        "advantage": advantage,
        "tokens": sum(len(s.ids) for s in episode.spans if s.author == "model"),
        "truncated": episode.truncated,
    }


def _conversation(messages: Sequence[Any]) -> str:
    """The text of one message, or of several with who says what."""
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in messages)


def _number(reward: float | None) -> float:
    return float("-inf") if reward is None else reward


def _scored(group: EpisodeGroup) -> list[float]:
    return [r for r in group.rewards if r is not None]


def _mean(group: EpisodeGroup) -> float:
    rewards = _scored(group)
    return statistics.fmean(rewards) if rewards else float("-inf")


def _cost(group: EpisodeGroup) -> float:
    rewards = _scored(group)
    return -statistics.fmean(rewards) if rewards else float("-inf")


def _spread(group: EpisodeGroup) -> float:
    rewards = _scored(group)
    return deviation(rewards) if rewards else float("-inf")
