"""TRL's messages as text: contents may be missing, or lists of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text; empty where it has none, such as a lone tool call."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    return content or ""


def reply_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Text of the policy's last turn: what a tool or the environment said is not its answer."""
    turns = [m for m in messages if m.get("role") == "assistant"]
    return text_of(turns[-1]) if turns else ""
