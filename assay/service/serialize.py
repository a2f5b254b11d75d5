"""JSON of tasks and verdicts, never with a reference; episodes of JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..envs import Episode, Message, Span, Task
from ..verifiers import Verdict
from .messages import GroupGiven


def serialize_messages(messages: list[Message] | tuple[Message, ...]) -> list[dict[str, str]]:
    """Return chat messages as plain dicts."""
    return [{**m} for m in messages]


def serialize_task(task: Task, index: int | None) -> dict[str, Any]:
    """Return a task's prompt, id and metadata; no reference, no solution."""
    return {
        "id": task.id,
        "index": index,
        "messages": serialize_messages(task.messages),
        "metadata": _jsonable(task.metadata) if task.metadata else {},
    }


def _jsonable(value: Any) -> Any:
    """Return what JSON can hold: no NaN, and other objects as their text."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def serialize_verdict(verdict: Verdict, *, reasons: bool) -> dict[str, Any]:
    """Return a verdict; its reason may quote the known answer."""
    return {
        "status": verdict.status.value,
        "score": verdict.score,
        "reason": verdict.reason if reasons else "",
        "extracted": verdict.extracted,
        "parts": {**verdict.parts},
    }


def finite(reward: float | None) -> float | None:
    """Return a reward that JSON can hold: ``None`` for NaN and infinities."""
    return None if reward is None or not math.isfinite(reward) else float(reward)


def parse_episodes(task: Task, group: GroupGiven) -> list[Episode]:
    """Return the episodes of a client's message, as a group rubric takes them."""
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
