"""What is told of tasks and verdicts: never a reference, nor what might quote one."""

from __future__ import annotations

import math
from typing import Any

from ..envs import Message, Task
from ..verifiers import Verdict


def messages_told(messages: list[Message] | tuple[Message, ...]) -> list[dict[str, str]]:
    """Chat messages as plain dicts."""
    return [{**m} for m in messages]


def task_told(task: Task, index: int | None) -> dict[str, Any]:
    """A task's prompt, id and metadata, which policies may see; no reference, no solution."""
    return {
        "id": task.id,
        "index": index,
        "messages": messages_told(task.messages),
        "metadata": {**task.metadata},
    }


def verdict_told(verdict: Verdict, *, reasons: bool) -> dict[str, Any]:
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
