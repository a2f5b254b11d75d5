"""Difficulty of a task, from its metadata."""

from __future__ import annotations

from typing import Any

from ..task import Task

_WORDS = {
    "trivial": 0.0,
    "introductory": 1.0,
    "easy": 1.0,
    "interview": 2.0,
    "medium": 2.0,
    "medium hard": 2.5,
    "competition": 3.0,
    "hard": 3.0,
    "very hard": 4.0,
}


def difficulty(task: Task) -> float:
    """Return a number that is larger for more difficult tasks of one data set.

    It is ``metadata["difficulty"]`` or ``metadata["level"]``: a number, a text such as
    ``"Level 3"``, or one of the words of APPS, TACO and LiveCodeBench.

    Raises:
        ValueError: the task has neither, or it is none of these.

    Example:
        >>> difficulty(Task("?", "1", metadata={"level": "Level 3"}))
        3.0
    """
    value = next((v for key in _KEYS if (v := task.metadata.get(key)) is not None), None)
    found = _number(value)
    if found is None:
        raise ValueError(
            f"task {task.id!r} has no difficulty: expected metadata 'difficulty' or 'level' "
            f"with a number or one of {', '.join(_WORDS)}, got {value!r:.80}. Give difficulty= a "
            "function of a task, or a sequence of numbers"
        )
    return found


_KEYS = ("difficulty", "level")


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if value == value else None
    text = str(value).strip().lower().replace("_", " ")
    if text in _WORDS:
        return _WORDS[text]
    text = text.removeprefix("level").strip()
    return float(text) if text.replace(".", "", 1).isdecimal() else None
