"""Compare two runs of the same tasks: which verdicts differ, and whether one is better."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..envs import Episode, EpisodeGroup
from ..verifiers import Status
from .bootstrap import Estimate, bootstrap


@dataclass(frozen=True, slots=True)
class Pair:
    """One reply in both runs.

    Attributes:
        task: id.
        copy: which reply to it, from 0.
        first: of one run.
        second: of the other.
    """

    task: str
    copy: int
    first: Episode
    second: Episode

    @property
    def differ(self) -> bool:
        """Whether status or score differ."""
        a, b = self.first.verdict, self.second.verdict
        return (a.status, a.score) != (b.status, b.score)

    @property
    def same_reply(self) -> bool:
        """Whether it is the same text, judged twice."""
        return self.first.turns == self.second.turns

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {
            "task": self.task,
            "reply": self.copy,
            "same_reply": self.same_reply,
            "first": _record(self.first),
            "second": _record(self.second),
        }


@dataclass(frozen=True)
class Difference:
    """The differences of two runs.

    Attributes:
        tasks: that both have.
        only_first: ids that one has.
        only_second: ids that the other has.
        reworded: ids of tasks whose prompts are not the same; they are compared all the same.
        pairs: replies that both have.
        unpaired: replies to tasks of both, that only one has, for it has more to a task.
        flips: those whose verdicts differ, in order.
        statuses: how often the first said this and the second that, most frequent first.
        better: replies that only the second has right.
        worse: replies that only the first has right.
        same_replies: whether all replies are the same texts.
        gain: pass@1 of the second less that of the first, over the tasks that both have scored.
        p_value: of McNemar's test on ``better`` and ``worse``, exact; ``None`` if tasks have
            several replies, which are not independent: use ``gain``'s interval then.
    """

    tasks: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    reworded: tuple[str, ...]
    pairs: int
    unpaired: int
    flips: tuple[Pair, ...]
    statuses: tuple[tuple[str, str, int], ...]
    better: int
    worse: int
    same_replies: bool
    gain: Estimate
    p_value: float | None

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {
            "tasks": self.tasks,
            "only_first": list(self.only_first),
            "only_second": list(self.only_second),
            "reworded": list(self.reworded),
            "replies": self.pairs,
            "unpaired": self.unpaired,
            "same_replies": self.same_replies,
            "statuses": [{"first": a, "second": b, "replies": n} for a, b, n in self.statuses],
            "better": self.better,
            "worse": self.worse,
            "gain": self.gain.to_json(),
            "p_value": self.p_value,
            "flips": [pair.to_json() for pair in self.flips],
        }


def difference(
    first: Iterable[EpisodeGroup], second: Iterable[EpisodeGroup], *, seed: int = 0
) -> Difference:
    """Compare two runs, task by task and reply by reply.

    Raises:
        ValueError: they have no task in common.
    """
    others = {group.task.id: group for group in second}
    pairs: list[Pair] = []
    gains: list[float | None] = []
    only_first: list[str] = []
    reworded: list[str] = []
    most = unpaired = 0
    for group in first:
        other = others.pop(group.task.id, None)
        if other is None:
            only_first.append(group.task.id)
            continue
        gains.append(_gain(group, other))
        both = zip(group.episodes, other.episodes, strict=False)
        pairs += [Pair(group.task.id, copy, a, b) for copy, (a, b) in enumerate(both)]
        most = max(most, len(group.episodes), len(other.episodes))
        unpaired += abs(len(group.episodes) - len(other.episodes))
        if group.task.messages != other.task.messages:
            reworded.append(group.task.id)
    if not gains:
        raise ValueError(
            "the two runs have no task in common: compare runs of one environment and data"
        )
    better = sum(_right(p.second) and not _right(p.first) and _both_scored(p) for p in pairs)
    worse = sum(_right(p.first) and not _right(p.second) and _both_scored(p) for p in pairs)
    statuses = Counter((p.first.status.value, p.second.status.value) for p in pairs)
    return Difference(
        tasks=len(gains),
        only_first=tuple(only_first),
        only_second=tuple(others),
        reworded=tuple(reworded),
        pairs=len(pairs),
        unpaired=unpaired,
        flips=tuple(p for p in pairs if p.differ),
        statuses=tuple((a, b, n) for (a, b), n in statuses.most_common()),
        better=better,
        worse=worse,
        same_replies=all(p.same_reply for p in pairs),
        gain=_estimated(gains, seed),
        p_value=mcnemar(better, worse) if most == 1 else None,
    )


def mcnemar(better: int, worse: int) -> float:
    """Return the exact two-sided p-value of McNemar's test.

    The binomial form of McNemar's test (1947): twice the smaller tail of Binomial(better +
    worse, 1/2), at most 1.

    Example:
        >>> mcnemar(5, 0)
        0.0625
    """
    n, least = better + worse, min(better, worse)
    tail = sum(math.comb(n, i) for i in range(least + 1))
    return min(1.0, 2 * tail / 2**n) if n else 1.0


def _gain(first: EpisodeGroup, second: EpisodeGroup) -> float | None:
    a, b = _share(first), _share(second)
    return None if a is None or b is None else b - a


def _share(group: EpisodeGroup) -> float | None:
    scored = [e for e in group.episodes if e.reward is not None]
    return sum(map(_right, scored)) / len(scored) if scored else None


def _estimated(gains: list[float | None], seed: int) -> Estimate:
    """Estimate the mean gain; gains are halved and shifted to [0, 1] for the bootstrap."""
    counted = [g for g in gains if g is not None]
    if counted and min(counted) == max(counted):  # no spread: Wilson's interval is not for gains
        return Estimate(counted[0], None, None, len(counted))
    (found,) = bootstrap([[None if g is None else (g + 1) / 2 for g in gains]], seed=seed)
    value, low, high = (
        None if end is None else 2 * end - 1 for end in (found.value, found.low, found.high)
    )
    return Estimate(value, low, high, found.tasks)


def _right(episode: Episode) -> bool:
    return episode.status is Status.CORRECT


def _both_scored(pair: Pair) -> bool:
    return pair.first.reward is not None and pair.second.reward is not None


def _record(episode: Episode) -> Mapping[str, Any]:
    verdict = episode.verdict.to_json()
    del verdict["seconds"]
    return {**verdict, "reply": episode.completion}
