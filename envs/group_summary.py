"""Summarise groups of episodes: scores, the metrics of a rollout, and groups to be read."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any

from ..verifiers import Status
from ..verifiers.visible import shortened
from .episode import Episode, EpisodeGroup
from .statistics import pass_at_k

LONGEST = 2000
"""Characters kept of a prompt and of a reply."""
MOST_REPLIES = 8
"""Replies kept of a group."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a policy earned.

    Attributes:
        pass_at_1: share of scored episodes that are correct: the chance that one reply to a
            task is right. NaN if nothing is scored.
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
        """Sum up some groups."""
        episodes = [e for group in groups for e in group.episodes]
        scored = [[e for e in group.episodes if e.reward is not None] for group in groups]
        counts = [(len(of), sum(e.status is Status.CORRECT for e in of)) for of in scored]
        rewards = [e.reward for of in scored for e in of if e.reward is not None]
        pass_at: dict[int, float] = {}
        k = 2
        while values := [pass_at_k(n, c, k) for n, c in counts if n >= k]:
            pass_at[k] = sum(values) / len(values)
            k *= 2
        return cls(
            pass_at_1=sum(c for _, c in counts) / len(rewards) if rewards else float("nan"),
            reward=sum(rewards) / len(rewards) if rewards else float("nan"),
            scored=len(rewards),
            masked=len(episodes) - len(rewards),
            truncated=sum(e.truncated for e in episodes) / max(1, len(episodes)),
            pass_at=pass_at,
        )

    def to_metrics(self) -> dict[str, float]:
        """Return its numbers as ``held_out/NAME``."""
        found = {name: value for name, value in asdict(self).items() if name != "pass_at"}
        found |= {f"pass_at_{k}": value for k, value in self.pass_at.items()}
        return {f"held_out/{name}": value for name, value in found.items()}


def rollout_metrics(groups: Sequence[EpisodeGroup]) -> dict[str, float]:
    """Compute the numbers of a rollout by name, as the table in docs/learner.md lists them."""
    episodes = [e for group in groups for e in group.episodes]
    score = Score.of(groups)
    lengths = [_length(e) for e in episodes]
    spreads = [_deviation(found) for group in groups if len(found := _scored(group)) > 1]
    row = {
        "reward": score.reward,
        "reward_std": statistics.fmean(spreads) if spreads else float("nan"),
        "accuracy": score.pass_at_1,
        "masked": score.masked,
        "none_share": score.masked / max(1, len(episodes)),
        "truncated": score.truncated,
        "tokens/sampled": sum(lengths),
        "tokens/reply": sum(lengths) / max(1, len(lengths)),
        "tokens/longest": max(lengths, default=0),
    }
    statuses = Counter(e.status.value for e in episodes)
    row |= {f"status/{name}": n / len(episodes) for name, n in sorted(statuses.items())}
    for name in sorted({name for e in episodes for name in e.rewards}):
        if parts := [p for e in episodes if (p := e.rewards.get(name)) is not None]:
            row[f"reward/{name}"] = sum(parts) / len(parts)
    return row


def sample_groups(
    groups: Sequence[EpisodeGroup],
    order: Sequence[int],
    *,
    count: int = 3,
    advantages: Sequence[float | None] = (),
) -> list[dict[str, Any]]:
    """Choose some groups of a rollout, as JSON values with shortened texts.

    In this order: the one whose rewards differ most, the best, the worst, then any. Of equal ones
    the first in ``order``, the groups' places, is taken. ``advantages`` has one for each episode,
    group after group, or none. Of a large group 8 replies are kept, evenly from the best to the
    worst.
    """
    chosen: dict[int, str] = {}
    values: list[tuple[str, Callable[[list[float]], float]]] = [
        ("most varied", _deviation),
        ("best", statistics.fmean),
        ("worst", lambda rewards: -statistics.fmean(rewards)),
    ]
    for name, value in values:
        free = [i for i in order if i not in chosen]
        if free and len(chosen) < count:
            ranks = {i: value(r) if (r := _scored(groups[i])) else -math.inf for i in free}
            chosen[max(free, key=ranks.__getitem__)] = name
    for i in order:
        if len(chosen) < count:
            chosen.setdefault(i, "any")
    starts = [0, *accumulate(len(group.episodes) for group in groups)]
    known = list(advantages) if len(advantages) == starts[-1] else [None] * starts[-1]
    return [
        {
            "kept_as": name,
            "task": shortened(groups[i].task.id, LONGEST),
            "prompt": shortened(_conversation(groups[i].task.messages), LONGEST),
            "size": len(groups[i].episodes),
            "replies": [
                _reply(groups[i].episodes[j], known[starts[i] + j]) for j in _kept(groups[i])
            ],
        }
        for i, name in chosen.items()
    ]


def _kept(group: EpisodeGroup) -> list[int]:
    size = len(group.episodes)
    if size <= MOST_REPLIES:
        return list(range(size))
    rewards = [-math.inf if r is None else r for r in group.rewards]
    ranked = sorted(range(size), key=lambda i: -rewards[i])
    return sorted(ranked[round(i * (size - 1) / (MOST_REPLIES - 1))] for i in range(MOST_REPLIES))


def _reply(episode: Episode, advantage: float | None) -> dict[str, Any]:
    return {
        "text": shortened(_conversation(episode.turns), LONGEST),
        "reward": episode.reward,
        "rewards": dict(episode.rewards),
        "status": episode.status.value,
        "reason": shortened(episode.verdict.reason, LONGEST),
        "advantage": advantage,
        "tokens": _length(episode),
        "truncated": episode.truncated,
    }


def _conversation(messages: Sequence[Any]) -> str:
    """Return the text of one message, or of several with their roles."""
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in messages)


def _length(episode: Episode) -> int:
    return sum(len(s.ids) for s in episode.spans if s.author == "model")


def _scored(group: EpisodeGroup) -> list[float]:
    return [r for r in group.rewards if r is not None]


def _deviation(values: Sequence[float]) -> float:
    """Population deviation; the same in any order, and 0.0 if all are equal.

    ``statistics.pstdev`` computes in exact fractions, which cost a hundred times as much.
    """
    if min(values) == max(values):
        return 0.0
    mean = statistics.fmean(values)
    return math.sqrt(math.fsum([(v - mean) ** 2 for v in values]) / len(values))
