"""TRL's messages as text: contents may be missing, or lists of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def text_of(message: Mapping[str, Any]) -> str:
    """Return a message's text, empty if it has none, such as a lone tool call."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))


def reply_of(completion: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the policy's last turn, empty if there is none.

    What a tool or the environment said is not its answer.
    """
    if isinstance(completion, str):
        return completion
    messages = completion if isinstance(completion, Sequence) else ()
    turns = [m for m in messages if isinstance(m, Mapping) and m.get("role") == "assistant"]
    return text_of(turns[-1]) if turns else ""
