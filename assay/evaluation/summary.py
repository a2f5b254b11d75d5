"""Summarise a run's groups as JSON values."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..envs import Episode, EpisodeGroup, Scored, Task, pass_at_k
from ..verifiers import Status, Verifier
from .bootstrap import DRAWS, LEVEL, bootstrap
from .vote import ballots, majority_at_k, many_answers

LEVEL_KEYS = ("level", "difficulty")
_MOST_LEVELS = 24


@dataclass
class Tally:
    """Summarise groups one by one without keeping them.

    Args:
        many_answers: different answers to a task may be right: see
            :func:`~assay.evaluation.vote.ballots`.
        by: metadata to group tasks by; ``level`` or ``difficulty`` if a task has it.
    """

    many_answers: bool = False
    by: str | None = None
    rows: list[_Row] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    lengths: list[int] = field(default_factory=list)
    rewards: dict[str, list[float | None]] = field(default_factory=lambda: defaultdict(list))

    def add(self, group: EpisodeGroup) -> None:
        """Count a group."""
        self.rows.append(_row(group, self.many_answers, self.by))
        for episode in group.episodes:
            self.statuses[episode.status.value] += 1
            self.truncated += episode.truncated
            said = [m["content"] for m in episode.turns if m["role"] == "assistant"]
            self.lengths.append(sum(map(len, said)))
            self.rewards["total"].append(episode.reward)
            for name, value in episode.rewards.items():
                self.rewards["total (part)" if name == "total" else name].append(value)

    @property
    def replies(self) -> int:
        """The number of replies so far."""
        return len(self.lengths)

    @property
    def pass_at_1(self) -> float | None:
        """The mean so far over tasks that have a score, ``None`` if none has."""
        values = [row.correct / row.scored for row in self.rows if row.scored]
        return sum(values) / len(values) if values else None

    def summary(self, *, seed: int = 0) -> dict[str, Any]:
        """Summarise a run as plain JSON values, deterministically in groups and seed.

        Returns:
            ``tasks``, ``replies``, ``scored`` and ``without_score``; ``pass_at`` and ``maj_at``
            by k, each with ``value``, ``low``, ``high`` (95 %, over tasks) and ``tasks`` that
            have k scored replies; ``rewards`` by name; ``statuses``; ``truncated`` (a share);
            ``characters`` of the policy's turns; ``levels``, if tasks have any.
        """
        ks = _ks(max((row.scored for row in self.rows), default=0))
        passes = [[row.pass_at(k) for row in self.rows] for k in ks]
        votes = [[row.maj_at(k) for row in self.rows] for k in ks if k > 1]
        found = bootstrap([*passes, *votes], seed=seed)
        scored = sum(row.scored for row in self.rows)
        return {
            "tasks": len(self.rows),
            "replies": self.replies,
            "scored": scored,
            "without_score": self.replies - scored,
            "pass_at": {str(k): e.to_json() for k, e in zip(ks, found, strict=False)},
            "maj_at": {
                str(k): e.to_json()
                for k, e in zip([k for k in ks if k > 1], found[len(ks) :], strict=True)
            },
            "interval": {"level": LEVEL, "method": "bootstrap over tasks", "draws": DRAWS},
            "rewards": {name: _mean(values) for name, values in sorted(self.rewards.items())},
            "statuses": {s.value: self.statuses[s.value] for s in Status if self.statuses[s.value]},
            "truncated": self.truncated / self.replies if self.replies else None,
            "characters": _spread(self.lengths),
            "levels": self._levels(seed),
        }

    def _levels(self, seed: int) -> dict[str, Any]:
        by_level: dict[str, list[_Row]] = defaultdict(list)
        for row in self.rows:
            by_level[row.level].append(row)
        named = [level for level in by_level if level]
        if not named or (self.by is None and len(by_level) > _MOST_LEVELS):
            return {}
        found = {}
        for level in sorted(by_level, key=_natural):
            (estimate,) = bootstrap([[row.pass_at(1) for row in by_level[level]]], seed=seed)
            found[level or "(none)"] = estimate.to_json()
        return found


def summary_of(rows: Iterable[Scored], rubric: Verifier) -> dict[str, Any]:
    """Summarize stored verdicts as :meth:`Tally.summary` does, without the lengths of replies."""
    by_task: dict[str, list[Episode]] = defaultdict(list)
    for row in rows:
        by_task[row.task].append(Episode(row.task, (), row.verdict))
    tally = Tally(many_answers=many_answers(rubric))
    for task, episodes in by_task.items():
        tally.add(EpisodeGroup(Task("", None, id=task), tuple(episodes)))
    found = tally.summary()
    return {name: value for name, value in found.items() if name not in _OF_REPLIES}


_OF_REPLIES = ("characters", "truncated")


def costs_of(
    costs: Iterable[Mapping[str, Any]], price_in: float = 0.0, price_out: float = 0.0
) -> dict[str, Any]:
    """Return the cost of a run.

    Args:
        costs: the rows of ``costs.jsonl``.
        price_in: of a million tokens that are read.
        price_out: of a million tokens that are written.

    Returns:
        ``seconds`` of the policy's turns, ``judging_seconds``, ``prompt_tokens`` and
        ``reply_tokens`` (``None`` if no reply has any known), ``unknown`` (replies whose
        tokens are not known), and ``price``.
    """
    seconds = judging = 0.0
    read: list[int] = []
    written: list[int] = []
    unknown = 0
    for row in costs:
        seconds += row["seconds"]
        judging += row["judging_seconds"]
        read += [t for t in row["prompt_tokens"] if t is not None]
        written += [t for t in row["reply_tokens"] if t is not None]
        unknown += sum(t is None for t in row["reply_tokens"])
    return {
        "seconds": round(seconds, 3),
        "judging_seconds": round(judging, 3),
        "prompt_tokens": sum(read) if read else None,
        "reply_tokens": sum(written) if written else None,
        "tokens_of_a_reply": _spread(written) if written else None,
        "unknown": unknown,
        "price": (sum(read) * price_in + sum(written) * price_out) / 1e6 if written else None,
    }


@dataclass(frozen=True, slots=True)
class _Row:
    """The stored values of a group."""

    task: str
    level: str
    scored: int
    correct: int
    votes: tuple[Any, ...]

    def pass_at(self, k: int) -> float | None:
        return pass_at_k(self.scored, self.correct, k) if self.scored >= k else None

    def maj_at(self, k: int) -> float | None:
        return majority_at_k(self.votes, k, self.task) if self.scored >= k else None


def _mean(values: Sequence[float | None]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if known else None
    return {"mean": mean, "scored": len(known), "without_score": len(values) - len(known)}


def _row(group: EpisodeGroup, many_answers: bool, by: str | None) -> _Row:
    scored = [e for e in group.episodes if e.reward is not None]
    keys = LEVEL_KEYS if by is None else (by,)
    metadata = group.task.metadata
    level = next((str(metadata[key]) for key in keys if metadata.get(key) is not None), "")
    correct = sum(e.status is Status.CORRECT for e in scored)
    votes = tuple(ballots(group.episodes, many_answers=many_answers))
    return _Row(group.task.id, level, len(scored), correct, votes)


def _ks(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to the maximum, and the maximum itself."""
    powers = [1 << i for i in range(most.bit_length())]
    return sorted({*powers, most}) if most else []


def _spread(values: Sequence[int]) -> dict[str, float] | None:
    if not values:
        return None
    ordered = sorted(values)
    at = min(len(ordered) - 1, (95 * len(ordered)) // 100)
    return {
        "mean": statistics.fmean(ordered),
        "median": float(statistics.median(ordered)),
        "p95": float(ordered[at]),
        "most": float(ordered[-1]),
    }


def _natural(text: str) -> tuple[bool, float, str]:
    """Sort levels numerically if possible: 2 before 10."""
    digits = "".join(c for c in text if c.isdecimal() or c == ".")
    try:
        return text == "", float(digits), text
    except ValueError:
        return text == "", float("inf"), text
