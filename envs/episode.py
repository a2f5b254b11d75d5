"""Records: one rollout of a task, and the group of rollouts that a learner compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from ..verifiers import Status, Verdict
from .task import Message, Task


@dataclass(frozen=True, slots=True)
class Span:
    """A run of tokens with one author.

    Attributes:
        author: ``model`` for tokens the policy sampled, ``environment`` for all others. Only
            the model's are trained on.
        ids: token ids, in order.
        logprobs: log-probability of each id under the policy that sampled it; empty for the
            environment's.
    """

    author: Literal["model", "environment"]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", tuple(self.ids))
        object.__setattr__(self, "logprobs", tuple(self.logprobs))
        if self.author == "model" and len(self.ids) != len(self.logprobs):
            raise ValueError(
                f"a model's span needs one log-probability for each token, "
                f"got {len(self.ids)} ids and {len(self.logprobs)} logprobs"
            )

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {"author": self.author, "ids": list(self.ids), "logprobs": list(self.logprobs)}


@dataclass(frozen=True, slots=True)
class Episode:
    """One rollout of one task.

    Attributes:
        task_id: which task.
        turns: the messages after the prompt, the policy's and the environment's.
        verdict: what the rubric found; its ``parts`` are the named rewards.
        step_rewards: one reward for each of the policy's turns, if the environment gives them.
        truncated: the policy was cut off (token limit, turn limit) before it was done.
        spans: tokens, the prompt's first, if the policy gives them.
        branches: spans of further token sequences, if a program asked the model in several
            conversations or rewrote one. Each begins with a prompt of its own.
    """

    task_id: str
    turns: tuple[Message, ...]
    verdict: Verdict
    step_rewards: tuple[float | None, ...] = ()
    truncated: bool = False
    spans: tuple[Span, ...] = ()
    branches: tuple[tuple[Span, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", tuple(dict(m) for m in self.turns))
        object.__setattr__(self, "step_rewards", tuple(self.step_rewards))
        object.__setattr__(self, "spans", tuple(self.spans))
        object.__setattr__(self, "branches", tuple(tuple(spans) for spans in self.branches))

    @property
    def reward(self) -> float | None:
        """The total, or ``None`` after an infrastructure failure."""
        return self.verdict.score

    @property
    def rewards(self) -> Mapping[str, float | None]:
        """The named rewards."""
        return self.verdict.parts

    @property
    def status(self) -> Status:
        """The reason for the reward."""
        return self.verdict.status

    @property
    def completion(self) -> str:
        """Text of the policy's last turn, empty if there is none."""
        replies = [m["content"] for m in self.turns if m["role"] == "assistant"]
        return replies[-1] if replies else ""

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        branches = [[span.to_json() for span in spans] for spans in self.branches]
        return {
            "task_id": self.task_id,
            "turns": [dict(m) for m in self.turns],
            "verdict": self.verdict.to_json(),
            "step_rewards": list(self.step_rewards),
            "truncated": self.truncated,
            "spans": [span.to_json() for span in self.spans],
            **({"branches": branches} if branches else {}),
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(
            task_id=row["task_id"],
            turns=tuple(dict(m) for m in row["turns"]),
            verdict=Verdict.from_json(row["verdict"]),
            step_rewards=tuple(row["step_rewards"]),
            truncated=row["truncated"],
            spans=tuple(Span(**span) for span in row["spans"]),
            branches=tuple(
                tuple(Span(**span) for span in spans) for spans in row.get("branches", ())
            ),
        )


@dataclass(frozen=True, slots=True)
class EpisodeGroup:
    """The G episodes of one task: the unit that a learner consumes.

    Raises:
        ValueError: an episode belongs to another task.
    """

    task: Task
    episodes: tuple[Episode, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "episodes", tuple(self.episodes))
        for episode in self.episodes:
            if episode.task_id != self.task.id:
                raise ValueError(
                    f"a group holds the episodes of one task: expected {self.task.id!r}, "
                    f"got an episode of {episode.task_id!r}"
                )

    @property
    def rewards(self) -> tuple[float | None, ...]:
        """Total reward of each episode, ``None`` if there is none."""
        return tuple(e.reward for e in self.episodes)

    @property
    def masked(self) -> int:
        """The number of episodes without a reward, which every statistic excludes."""
        return sum(r is None for r in self.rewards)

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {"task": self.task.to_json(), "episodes": [e.to_json() for e in self.episodes]}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(
            task=Task.from_json(row["task"]),
            episodes=tuple(Episode.from_json(e) for e in row["episodes"]),
        )
