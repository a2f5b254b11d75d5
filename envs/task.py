"""One problem, and the messages that put it to a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

Message = Mapping[str, str]
"""A chat message: ``{"role": "user", "content": "..."}``."""

Conversation = Sequence[Message]
"""What a policy is given, oldest message first."""


@dataclass(frozen=True, slots=True)
class Task:
    """One problem.

    Attributes:
        prompt: chat messages. A plain string becomes one user message.
        reference: the known answer, any JSON value. No policy and no candidate code sees it.
        id: a name that is unique within its environment.
        metadata: difficulty, topic, ...: whatever is worth grouping results by. Policies may
            see it.
        solution: a reply that earns full marks, where one is known. No policy sees it.

    Raises:
        ValueError: the prompt is empty, or a message lacks its role or content.
    """

    prompt: str | Conversation
    reference: Any
    id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    solution: str | None = None

    def __post_init__(self) -> None:
        prompt = self.prompt
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        if not messages:
            raise ValueError("a task's prompt needs at least one message, got none")
        for message in messages:
            if not {"role", "content"} <= set(message):
                raise ValueError(f"a message needs 'role' and 'content', got {dict(message)!r}")
        object.__setattr__(self, "prompt", tuple(dict(m) for m in messages))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt as chat messages."""
        return self.prompt  # type: ignore[return-value]  # made a tuple in __post_init__

    @property
    def text(self) -> str:
        """The prompt as text: the messages' contents, a blank line between them."""
        return "\n\n".join(m["content"] for m in self.messages)

    def to_json(self) -> dict[str, Any]:
        """A dict of plain JSON values."""
        return {
            "prompt": [dict(m) for m in self.messages],
            "reference": self.reference,
            "id": self.id,
            "metadata": dict(self.metadata),
            "solution": self.solution,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
        return cls(
            prompt=row["prompt"],
            reference=row["reference"],
            id=row["id"],
            metadata=dict(row["metadata"]),
            solution=row["solution"],
        )
