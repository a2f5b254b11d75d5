"""Tasks, episodes and groups: text environments for any trainer."""

from __future__ import annotations

from .episode import Episode, EpisodeGroup, Span
from .policy import Completion, FunctionPolicy, Policy
from .task import Conversation, Message, Task

__all__ = [
    "Completion",
    "Conversation",
    "Episode",
    "EpisodeGroup",
    "FunctionPolicy",
    "Message",
    "Policy",
    "Span",
    "Task",
]
