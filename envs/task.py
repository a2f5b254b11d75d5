"""One problem, and the messages that put it to a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, Self

Message = Mapping[str, str]
"""A chat message: ``{"role": "user", "content": "..."}``."""

Conversation = Sequence[Message]
"""What a policy is given, oldest message first."""


@dataclass(frozen=True, slots=True, init=False)
class Task:
    """One problem. It keeps copies of what it is given.

    Attributes:
        prompt: chat messages. A plain string becomes one user message.
        reference: the known answer, any JSON value; tuples become lists. No policy and no
            candidate code sees it.
        id: a name that is unique within its environment.
        metadata: difficulty, topic, ...: whatever is worth grouping results by. Policies may
            see it.
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

    def __init__(
        self,
        prompt: str | Conversation,
        reference: Any,
        id: str = "",  # noqa: A002  # the field's own name
        metadata: Mapping[str, Any] | None = None,
        solution: str | None = None,
    ) -> None:
        asked: tuple[Message, ...]
        if isinstance(prompt, str):
            asked, text = ({"role": "user", "content": prompt},), prompt
        else:
            asked = _chat(prompt)
            text = "\n\n".join([message["content"] for message in asked])
        # Many are made for one episode each: a frozen dataclass sets its fields in twice the time.
        _set_prompt(self, asked)
        _set_reference(self, reference if type(reference) is str else _plain(reference))
        _set_id(self, id)
        _set_metadata(self, _plain(metadata) if metadata else {})
        _set_solution(self, solution)
        _set_text(self, text)

    def named(self, id: str) -> Self:  # noqa: A002  # the field's own name
        """Return the same task with another id, without validating the rest again."""
        other = copy(self)
        _set_id(other, id)
        return other

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt as chat messages."""
        return self.prompt  # type: ignore[return-value]  # made a tuple in __init__

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


_set_prompt, _set_reference, _set_id, _set_metadata, _set_solution, _set_text = (
    vars(Task)[field.name].__set__ for field in fields(Task)
)


def _chat(messages: Conversation) -> tuple[Message, ...]:
    """Validate and copy chat messages."""
    if not messages:
        raise ValueError("a task's prompt needs at least one message, got none")
    for message in messages:
        if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
            raise ValueError(f"a message needs 'role' and 'content', got {message!r:.200}")
        if not isinstance(message["content"], str):
            raise ValueError(f"a message's content must be text, got {message!r:.200}")
    return tuple(dict(m) for m in messages)


_ATOMS = frozenset({str, int, float, bool, type(None)})


def _plain(value: Any) -> Any:
    """Copy a value, requiring that JSON preserves it; tuples become lists."""
    if type(value) in _ATOMS:
        return value
    if type(value) is dict or isinstance(value, Mapping):
        copy = {}
        for key, item in value.items():
            if type(key) is not str and not isinstance(key, str):
                raise ValueError(f"keys must be strings, as in JSON, got {key!r}: use str({key!r})")
            copy[key] = item if type(item) in _ATOMS else _plain(item)
        return copy
    if isinstance(value, list | tuple):
        return [item if type(item) in _ATOMS else _plain(item) for item in value]
    return value
