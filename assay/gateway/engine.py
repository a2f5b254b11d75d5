"""What samples for the gateway: token ids in, token ids with log-probabilities out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable


class EngineError(RuntimeError):
    """The engine failed; nothing was sampled, and nothing is to be judged.

    Args:
        message: why.
        bad_request: it is the request's fault.
    """

    def __init__(self, message: str, *, bad_request: bool = False) -> None:
        super().__init__(message)
        self.bad_request = bad_request


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One reply to be sampled.

    Attributes:
        prompt: token ids.
        max_tokens: of the reply.
        temperature: divides the logits; 0 takes the most likely token.
        top_p: samples from the most likely tokens that have so much probability together.
        seed: equal requests with equal seeds get equal replies.
        stop: texts that end the reply; it keeps the tokens that complete one.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sampled:
    """A reply.

    Attributes:
        ids: sampled tokens, those that ended it included.
        logprobs: of each under the distribution it was drawn from.
        finish: "stop" at an end-of-sequence token or a stop text, else "length".
    """

    ids: Sequence[int]
    logprobs: Sequence[float]
    finish: Literal["stop", "length"]


class Engine(Protocol):
    """Sample replies from one model.

    Attributes:
        name: of the model, as programs see it.
        tokenizer: the model's.
        longest: most tokens of a prompt and its reply; ``None`` if there is no limit.
    """

    name: str
    tokenizer: Any
    longest: int | None

    async def sample(self, request: SampleRequest) -> Sampled:
        """Sample one reply; many may be awaited at once.

        Raises:
            EngineError: no reply can be had.
        """
        ...

    async def close(self) -> None:
        """Give back threads and connections."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a server that tokenizes chats itself.

    Attributes:
        prompt_ids: what it made of the chat.
        sampled: the tokens of the reply.
        text: the reply as it gives it.
        calls: of tools, in OpenAI's form with parsed arguments.
        pieces: the text of each token.
        stopped: the stop text that ended it, if one did.
    """

    prompt_ids: Sequence[int]
    sampled: Sampled
    text: str
    calls: tuple[Mapping[str, Any], ...]
    pieces: tuple[str, ...]
    stopped: str | None = None


@runtime_checkable
class ChatEngine(Protocol):
    """Pass chats on to a server that tokenizes them itself."""

    name: str
    tokenizer: None
    longest: int | None

    async def chat(self, chat: Any) -> Sequence[Reply]:
        """Return the replies to a :class:`~assay.gateway.episodes.Chat`.

        Raises:
            EngineError: there are none, or not their tokens.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
