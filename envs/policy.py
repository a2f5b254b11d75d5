"""Policies: a batch of conversations in, a batch of completions out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from .task import Conversation


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a policy.

    Attributes:
        text: the reply.
        finish: ``stop`` if the policy ended it, ``length`` if it was cut off.
        prompt_ids: token ids it was given, if the policy has tokens.
        ids: token ids it sampled, its end-of-sequence token included.
        logprobs: log-probability of each sampled id under the distribution it was drawn from.

    Raises:
        TypeError: the reply is not text.
    """

    text: str
    finish: Literal["stop", "length"] = "stop"
    prompt_ids: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):  # judged, it would pass for an infrastructure failure
            raise TypeError(f"a reply must be text, got {self.text!r:.80}; no reply is ''")


class Policy(Protocol):
    """Map conversations to completions, in order.

    The copies of one task arrive next to each other, as equal conversations: a policy that
    prefills a prompt once for all of them finds them so.
    """

    def __call__(self, conversations: Sequence[Conversation], /) -> Sequence[Completion]:
        """Answer each conversation; as many completions come back."""


@runtime_checkable
class ExtendingPolicy(Policy, Protocol):
    """A policy with tokens of its own, for episodes of several turns.

    Text does not determine its tokens. So that a policy is trained on the very tokens
    it sampled, its next turn extends them.
    """

    def extend(
        self, conversations: Sequence[Conversation], prefixes: Sequence[Sequence[int]], /
    ) -> Sequence[Completion]:
        """Answer each conversation.

        Args:
            conversations: as for a call.
            prefixes: for each, all tokens up to the end of the policy's last turn; empty before
                its first. ``prompt_ids`` of the completion must begin with them.
        """


class FunctionPolicy:
    """A Python function from one conversation to one reply, as a policy.

    Example:
        >>> FunctionPolicy(lambda messages: "42")([[{"role": "user", "content": "?"}]])[0].text
        '42'
    """

    def __init__(self, function: Callable[[Conversation], str]) -> None:
        self.function = function

    def __call__(self, conversations: Sequence[Conversation], /) -> list[Completion]:
        """Call the function for each conversation."""
        return [Completion(self.function(c)) for c in conversations]


def require_completions(found: list[Completion], expected: int) -> list[Completion]:
    """Return what a policy gave, if it is as many completions as it was asked for.

    Raises:
        ValueError: there are more or fewer, or it gave others.
    """
    if len(found) != expected:
        raise ValueError(
            f"a policy answers every conversation: expected {expected} completions, "
            f"got {len(found)}"
        )
    for given in found:
        if not isinstance(given, Completion):
            raise ValueError(
                "a policy gives a Completion for each conversation, as in "
                f"Completion(text), got {given!r:.80}"
            )
    return found
