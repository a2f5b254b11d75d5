"""One problem, and the messages that put it to a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Integral
from typing import Any, Self

import numpy as np

Message = Mapping[str, str]
"""A chat message: ``{"role": "user", "content": "..."}``."""

Conversation = Sequence[Message]
"""What a policy is given, oldest message first."""


@dataclass(frozen=True, slots=True)
class Task:
    """One problem. It keeps copies of what it is given.

    Attributes:
        prompt: chat messages. A plain string becomes one user message.
        reference: the known answer, any JSON value; tuples and arrays become lists,
            NumPy's numbers plain ones. No policy and no candidate code sees it.
        id: a name that is unique within its environment.
        metadata: difficulty, topic, ...: whatever is worth grouping results by. What JSON lacks,
            such as a date, becomes text. Policies may see it.
        solution: a reply that earns full marks, if one is known. No policy sees it.
        text: the prompt as text: the messages' contents, a blank line between them.

    Raises:
        ValueError: there is no message, a message lacks its role or its text, or a key in the
            reference or metadata is not a string.
    """

    prompt: str | Conversation
    reference: Any
    id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    solution: str | None = None
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        prompt = self.prompt
        messages = _chat(
            [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        )
        object.__setattr__(self, "prompt", messages)
        object.__setattr__(self, "reference", _plain(self.reference))
        object.__setattr__(self, "metadata", _plain(self.metadata or {}, text=True))
        object.__setattr__(self, "text", "\n\n".join(m["content"] for m in messages))

    def named(self, id: str) -> Self:  # noqa: A002  # the field's own name
        """Return the same task with another id."""
        return replace(self, id=id)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt as chat messages."""
        return self.prompt  # type: ignore[return-value]  # made a tuple in __post_init__

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {
            "prompt": [dict(m) for m in self.messages],
            "reference": self.reference,
            "id": self.id,
            "metadata": dict(self.metadata),
            "solution": self.solution,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(
            prompt=row["prompt"],
            reference=row["reference"],
            id=row["id"],
            metadata=dict(row["metadata"]),
            solution=row["solution"],
        )


def _chat(messages: Conversation) -> tuple[Message, ...]:
    """Validate and copy chat messages."""
    if not isinstance(messages, Sequence):
        raise ValueError(f"a task's prompt must be text or chat messages, got {messages!r:.80}")
    if not messages:
        raise ValueError("a task's prompt needs at least one message, got none")
    for message in messages:
        check_message(message)
    return tuple(dict(m) for m in messages)


def check_message(message: Any) -> None:
    """Raise a ValueError for what is no chat message."""
    if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
        raise ValueError(f"a message needs 'role' and 'content', got {message!r:.200}")
    if not isinstance(message["content"], str):
        raise ValueError(f"a message's content must be text, got {message!r:.200}")


def array_values(array: Any) -> Any:
    """Return an array's or a scalar's values as Python's own.

    A float of half or single precision is the shortest decimal that rounds to it: 0.1, for which
    ``tolist`` gives 0.10000000149011612.
    """
    kind = str(getattr(array, "dtype", "")).removeprefix("torch.")
    if kind in ("float16", "float32"):
        return np.asarray(array.tolist(), kind).astype(str).astype(float).tolist()
    return array.tolist()


def _plain(value: Any, *, text: bool = False) -> Any:
    """Copy a value as JSON preserves it: no tuples, arrays, NumPy's numbers and Decimals.

    With ``text``, what JSON lacks otherwise, such as a date, is its text.
    """
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"keys must be strings, as in JSON, got {key!r}: use str({key!r})")
        return {key: _plain(item, text=text) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, text=text) for item in value]
    if isinstance(value, Decimal):
        return f"{value:f}"
    if hasattr(value, "tolist"):  # of NumPy or torch
        return _plain(array_values(value), text=text)
    if isinstance(value, Integral) and not isinstance(value, int):
        return int(value)
    return str(value) if text and not isinstance(value, str | int | float | None) else value
