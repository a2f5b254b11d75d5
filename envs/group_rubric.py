"""Rewards with the whole group in view: shorter than its right replies, better than its others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, Self, runtime_checkable

from ..verifiers import Status, Verdict, Verifier
from ..verifiers.exits import reraise_termination
from ..verifiers.judges.prompt import CONTROL
from .episode import Episode
from .filters import outcome
from .task import Task

Among = Literal["correct", "all"]


@runtime_checkable
class GroupPart(Protocol):
    """One named reward that depends on the others of the group."""

    def rewards(self, task: Task, episodes: Sequence[Episode]) -> Sequence[float | None]:
        """Return one number in [0, 1] for each episode, ``None`` after an infrastructure failure.

        Args:
            task: of the group.
            episodes: those that have a reward, in their order.
        """

    def close(self) -> None:
        """Release resources; does nothing by default."""
        return


class GroupRubric:
    """Add rewards that depend on the group to each episode's own.

    Set it as ``env.group_rubric``: then rollouts, streams and ``GroupVectorEnv`` apply it to each
    group when its episodes are judged. Verdicts stay what they are but for score and parts: the
    total is the weighted mean of the episode's own total (it is the part named ``rubric``) and of
    the parts here. With the gate these are paid only if the status is
    ``correct``, and count 0.0 elsewhere; they are shown as they were found either way.

    An episode without a reward stays without one, and no part sees it. A part that fails, or gives
    what is no number in [0, 1], leaves those that it would be paid to without a reward.

    Args:
        parts: by name.
        weights: by name; 1.0 if a name is not given. ``rubric`` is the episode's own total's:
            with 0.0 the parts alone are paid.
        gate: pay the parts only if the episode is correct.

    Raises:
        ValueError: there are no parts, a name is unknown or taken, a weight is negative or not
            finite, or all are 0.

    Example:
        >>> from assay.envs import GroupRubric, ShortReplies, make
        >>> env = make("assay/Arithmetic-v1")
        >>> env.group_rubric = GroupRubric({"length": ShortReplies()}, weights={"length": 0.2})
    """

    def __init__(
        self,
        parts: Mapping[str, GroupPart],
        *,
        weights: Mapping[str, float] | None = None,
        gate: bool = True,
    ) -> None:
        if not isinstance(parts, Mapping):
            raise TypeError(f"parts must be a dict, as {{'length': ShortReplies()}}, got {parts!r}")
        for name, part in parts.items():  # whatever a part raises later costs every episode's score
            _refuse_part(f"part {name!r}", part)
        if not parts:
            raise ValueError("a group rubric needs at least one part, got none")
        if OWN in parts:
            raise ValueError(f"the name {OWN!r} is taken by the episode's own total")
        for name in weights or {}:
            if name not in {OWN, *parts}:
                raise ValueError(f"there is no part {name!r}; the parts are {', '.join(parts)}")
        self.weights = {name: float((weights or {}).get(name, 1.0)) for name in (OWN, *parts)}
        for name, weight in self.weights.items():
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name!r} must be 0 or more, got {weight!r}")
        if not any(self.weights.values()):
            raise ValueError("one weight must be above 0, got 0 for all: nothing would be paid")
        self.parts, self.gate = dict(parts), gate

    def judged(self, task: Task, episodes: Sequence[Episode]) -> list[Episode]:
        """Return the episodes with the group's rewards added to their verdicts.

        Raises:
            ValueError: a part is named as one of the rubric's, or gives another number of
                rewards than it was given episodes.
        """
        scored = [k for k, episode in enumerate(episodes) if episode.reward is not None]
        seen = [episodes[k] for k in scored]
        columns = {name: _asked(part, task, seen) for name, part in self.parts.items()}
        found = list(episodes)
        for row, k in enumerate(scored):
            cells = {name: column[row] for name, column in columns.items()}
            found[k] = replace(episodes[k], verdict=self._weighed(episodes[k], cells))
        return found

    def close(self) -> None:
        """Close every part."""
        for part in self.parts.values():
            part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def to_json(self) -> dict[str, Any]:
        """Return what totals depend on, as far as the parts' options show."""
        parts = {name: repr(part) for name, part in self.parts.items()}
        return {"parts": parts, "weights": dict(self.weights), "gate": self.gate}

    def _weighed(self, episode: Episode, cells: Mapping[str, float | str | None]) -> Verdict:
        verdict = episode.verdict
        taken = {OWN, *self.parts} & set(verdict.parts)
        if taken:
            raise ValueError(f"the rubric has a part named {min(taken)!r} too: name it otherwise")
        shown = {n: None if isinstance(cell, str) else cell for n, cell in cells.items()}
        parts = {OWN: verdict.score, **verdict.parts, **shown}
        paid = not self.gate or outcome(episode) == 1.0
        own = verdict.score or 0.0
        total, most = self.weights[OWN] * own, max(1.0, own)
        for name in self.parts if paid else ():
            value, weight = shown[name], self.weights[name]
            if weight and value is None:
                reason = f"{name}: {cells[name] or 'it gave no reward'}"
                return replace(
                    verdict, status=Status.VERIFIER_ERROR, score=None, reason=reason, parts=parts
                )
            total += weight * (value or 0.0)
        score = min(most, total / math.fsum(self.weights.values()))  # but for rounding, it is less
        return replace(verdict, score=score, parts=parts)


OWN = "rubric"


def refuse_group_rubric(name: str, rubric: GroupRubric | None) -> None:
    """Refuse an environment's group rubric where each reply is judged alone.

    Raises:
        ValueError: there is one.
    """
    if rubric is not None:
        raise ValueError(
            f"{name} has a group_rubric, and this trainer's reward function judges each reply "
            "alone: train on it with assay.grpo, or set the environment's group_rubric to None"
        )


def _asked(
    part: GroupPart, task: Task, episodes: Sequence[Episode]
) -> Sequence[float | str | None]:
    """Return a part's rewards; if it raises, the error for each."""
    if not episodes:
        return []
    try:
        found = list(part.rewards(task, episodes))
    except (Exception, SystemExit) as error:
        reraise_termination(error)
        return [f"{type(error).__name__}: {error}"] * len(episodes)
    if len(found) != len(episodes):
        raise ValueError(
            f"{part!r} must give a reward for each episode: expected {len(episodes)}, "
            f"got {len(found)}"
        )
    return [_cell(value) for value in found]


def _cell(value: Any) -> float | str | None:
    """Return a reward, or the error if it is invalid. A policy may have caused it."""
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    return number if 0.0 <= number <= 1.0 else f"a reward must be in [0, 1], got {value!r:.80}"


class ShortReplies(GroupPart):
    """More for the shorter of a group, by Kimi k1.5's length reward (arXiv 2501.12599, 2.3.3).

    With lengths from ``shortest`` to ``longest``, a reply of length ``n`` earns
    ``1 - (n - shortest) / (longest - shortest)`` if it is correct, and at most 0.5 if it is
    wrong: the paper's reward, from -0.5 to 0.5, plus 0.5. If all are equally long, each earns
    0.5, the paper's 0. Lengths are in the policy's tokens if all episodes have tokens, else in
    characters of what it wrote.

    Args:
        among: ``correct`` compares the correct replies with each other, and wrong ones earn 0.0.
            ``all`` compares all, which with ``gate=False`` is the paper's rule.

    Raises:
        ValueError: ``among`` is neither.
    """

    def __init__(self, *, among: Among = "correct") -> None:
        self.among = _known(among)

    def rewards(self, task: Task, episodes: Sequence[Episode]) -> list[float | None]:
        """Return one reward for each episode."""
        lengths = written_lengths(episodes)
        rows = _members(episodes, self.among)
        found: list[float | None] = [0.0] * len(episodes)
        if not rows:
            return found
        shortest = min(lengths[k] for k in rows)
        spread = max(lengths[k] for k in rows) - shortest
        for k in rows:
            share = 1.0 - (lengths[k] - shortest) / spread if spread else 0.5
            found[k] = share if outcome(episodes[k]) == 1.0 else min(0.5, share)
        return found

    def __repr__(self) -> str:
        return f"ShortReplies(among={self.among!r})"


class Tournament:
    """The share of its comparisons with others of the group that a reply wins.

    Args:
        judge: of two replies, such as :class:`~assay.verifiers.PairwiseJudge`: its reference is
            ``{"question": ..., "answer": the other reply}``, its score 1.0 if the reply is the
            better one, 0.5 for a tie. A pair is judged once: what one wins the other loses. If the
            judge can compare with neither (both are empty, say), both lose.
        among: only ``correct`` replies are compared, and wrong ones earn 0.0; or ``all``.
        opponents: that each reply is put against, rounded up to an even number: its neighbours in
            the group, which is a ring. ``None`` for all.

    Raises:
        ValueError: ``among`` is unknown, or ``opponents`` is below 1.
    """

    def __init__(
        self, judge: Verifier, *, among: Among = "correct", opponents: int | None = None
    ) -> None:
        if opponents is not None and opponents < 1:
            raise ValueError(f"opponents must be at least 1, or None, got {opponents}")
        self.judge, self.among, self.opponents = judge, _known(among), opponents

    def rewards(self, task: Task, episodes: Sequence[Episode]) -> list[float | None]:
        """Return one reward for each episode; the judge gets all pairs in one batch."""
        rows = _members(episodes, self.among)
        found: list[float | None] = [0.0] * len(episodes)
        if len(rows) < 2:  # nobody to be compared with: neither better nor worse
            return [0.5 if k in rows else reward for k, reward in enumerate(found)]
        replies = [episodes[k].completion for k in rows]
        known = [{"question": task.text, "answer": reply} for reply in replies]
        # A reply that the judge cannot compare with, such as an empty one, can still be judged.
        usable = [self.judge.check_reference(reference) is None for reference in known]
        pairs = [(i, j) if usable[j] else (j, i) for i, j in _pairs(len(rows), self.opponents)]
        control = self.judge.check_reference({"question": task.text, "answer": CONTROL})
        lost = {pair for pair in pairs if control is None and not usable[pair[1]]}
        pairs = [pair for pair in pairs if pair not in lost]
        verdicts = self.judge.verify_many(
            [replies[i] for i, _ in pairs], [known[j] for _, j in pairs]
        )
        points = [[0.0] * sum(k in pair for pair in lost) for k in range(len(rows))]
        for (i, j), verdict in zip(pairs, verdicts, strict=True):
            if verdict.score is not None:
                points[i].append(verdict.score)
                points[j].append(1.0 - verdict.score)
        for k, won in zip(rows, points, strict=True):
            found[k] = math.fsum(won) / len(won) if won else None
        return found

    def close(self) -> None:
        """Close the judge."""
        self.judge.close()

    def __repr__(self) -> str:
        return f"Tournament({self.judge!r}, among={self.among!r}, opponents={self.opponents})"


class BestOnly:
    """1.0 for the best of the group, 0.0 for the others: best of n.

    Args:
        part: what the best one is best at; without it, its own total. Those that are equally
            good all earn 1.0.
    """

    def __init__(self, part: GroupPart | None = None) -> None:
        if part is not None:
            _refuse_part("part", part)
        self.part = part

    def rewards(self, task: Task, episodes: Sequence[Episode]) -> list[float | None]:
        """Return one reward for each episode, ``None`` if the part has none."""
        values = (
            [episode.reward for episode in episodes]
            if self.part is None
            else list(self.part.rewards(task, episodes))
        )
        best = max((value for value in values if value is not None), default=None)
        return [None if value is None else float(value == best) for value in values]

    def close(self) -> None:
        """Close the part."""
        if self.part is not None:
            self.part.close()

    def __repr__(self) -> str:
        return f"BestOnly({'' if self.part is None else repr(self.part)})"


def _refuse_part(name: str, part: Any) -> None:
    if isinstance(part, type) or not callable(getattr(part, "rewards", None)):
        raise TypeError(f"{name} must be an object as ShortReplies(), got {part!r}")


def _known(among: Among) -> Among:
    if among not in ("correct", "all"):
        raise ValueError(f"among must be 'correct' or 'all', got {among!r}")
    return among


def _members(episodes: Sequence[Episode], among: Among) -> list[int]:
    return [k for k, e in enumerate(episodes) if among == "all" or outcome(e) == 1.0]


def written_lengths(episodes: Sequence[Episode]) -> list[int]:
    """Return the lengths of the policy's text: tokens if all have them, else characters."""
    tokens = [sum(len(s.ids) for s in e.spans if s.author == "model") for e in episodes]
    if all(tokens):
        return tokens
    return [sum(len(m["content"]) for m in e.turns if m["role"] == "assistant") for e in episodes]


def _pairs(members: int, opponents: int | None) -> list[tuple[int, int]]:
    """Pair each with the next ones around the group, each pair once."""
    reach = members - 1 if opponents is None else min(members - 1, (opponents + 1) // 2)
    pairs: dict[frozenset[int], tuple[int, int]] = {}
    for distance in range(1, reach + 1):
        for i in range(members):
            pair = (i, (i + distance) % members)
            pairs.setdefault(frozenset(pair), pair)
    return list(pairs.values())
