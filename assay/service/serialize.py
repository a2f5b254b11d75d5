"""Tasks and verdicts as they are told, never with a reference; episodes as they are given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..envs import Episode, Message, Span, Task
from ..verifiers import Verdict
from .messages import GroupGiven


def serialize_messages(messages: list[Message] | tuple[Message, ...]) -> list[dict[str, str]]:
    """Chat messages as plain dicts."""
    return [{**m} for m in messages]


def serialize_task(task: Task, index: int | None) -> dict[str, Any]:
    """A task's prompt, id and metadata, which policies may see; no reference, no solution."""
    return {
        "id": task.id,
        "index": index,
        "messages": serialize_messages(task.messages),
        "metadata": _plain(task.metadata) if task.metadata else {},
    }


def _plain(value: Any) -> Any:
    """What JSON can hold: no NaN, and other objects as their text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def serialize_verdict(verdict: Verdict, *, reasons: bool) -> dict[str, Any]:
    """A verdict. Reasons may quote the known answer, so they are told only where that is wanted."""
    return {
        "status": verdict.status.value,
        "score": verdict.score,
        "reason": verdict.reason if reasons else "",
        "extracted": verdict.extracted,
        "parts": {**verdict.parts},
    }


def finite(reward: float | None) -> float | None:
    """A reward that JSON can hold: none for NaN and infinities."""
    return None if reward is None or not math.isfinite(reward) else float(reward)


def parse_episodes(task: Task, group: GroupGiven) -> list[Episode]:
    """The episodes that a client gave, as the group's rewards see them."""
    return [
        Episode(
            task_id=task.id,
            turns=tuple(given.turns),
            verdict=Verdict(
                given.verdict.status,
                given.verdict.score,
                given.verdict.reason,
                given.verdict.extracted,
                given.verdict.parts,
            ),
            step_rewards=tuple(given.step_rewards),
            truncated=given.truncated,
            spans=tuple(
                Span(s.author, tuple(s.ids), (0.0,) * len(s.ids) if s.author == "model" else ())
                for s in given.spans
            ),
        )
        for given in group.episodes
    ]
