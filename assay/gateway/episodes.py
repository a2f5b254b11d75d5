"""Episodes of programs: a key, a tree of turns, a clock, and what the engine failed at."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..envs.tools.calls import read_calls
from ..envs.turn_tokens import TemplateDropsMessage
from ..verifiers.form.call_forms import attempt
from ..verifiers.form.call_text import marked
from ..verifiers.form.json_text import NotJson
from .engine import ChatEngine, Engine, EngineError, Reply, Sampled, SampleRequest
from .turns import Prompt, Turn, TurnTree

if TYPE_CHECKING:
    from ..verifiers.form.schema import Schema

_ENDED_KEPT = 100_000
_LEAST_TEMPERATURE, _LEAST_TOP_P = 1e-4, 1e-6  # below, float32 has no such distribution
_LONG = 50_000  # characters that take some 10 ms to be tokenized
_TOKEN_CHARACTERS = 64  # more than tokens have on average in any text
_TEMPLATE = b"template"  # key of the fault
_T = TypeVar("_T")


class Refused(Exception):
    """A request that gets an error.

    Args:
        status: of HTTP.
        code: for programs.
        message: for people.
        param: the request's field that it is about.
    """

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param

    def to_json(self) -> dict[str, Any]:
        """Return the body in OpenAI's form."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"error": error}

    def to_anthropic(self) -> dict[str, Any]:
        """Return the body in Anthropic's form."""
        kind = _KINDS.get(self.status, "api_error" if self.status >= 500 else _KINDS[400])
        error = {"type": kind, "message": self.message, "param": self.param, "code": self.code}
        return {"type": "error", "error": error}


_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A request for replies, whichever route it came by.

    Attributes:
        messages: the conversation, or a text, or token ids.
        tools: JSON schemas.
        strict: schemas that the arguments of calls must fit, by the name of the tool.
        n: replies.
        max_tokens: of each; ``None`` for the gateway's own limit.
        temperature: see :class:`~assay.gateway.engine.SampleRequest`, as for the next three.
        top_p: likewise.
        seed: ``None`` for one of the episode's.
        stop: likewise.
        logprobs: the text of each token is wanted too.
    """

    messages: Sequence[Mapping[str, Any]] | str | tuple[int, ...]
    tools: Sequence[Mapping[str, Any]] = ()
    strict: Mapping[str, Schema] = field(default_factory=dict)
    n: int = 1
    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False

    @property
    def characters(self) -> int:
        """About how long it is, with the tools and the calls that a template may show."""
        if isinstance(self.messages, tuple | str):
            return len(self.messages)
        texts = [v for m in self.messages for v in m.values() if isinstance(v, str)]
        shown = [m["tool_calls"] for m in self.messages if "tool_calls" in m]
        size = sum(map(len, texts)) + 32 * len(self.messages)
        return size + sum(len(json.dumps(each)) for each in (*shown, *self.tools))


@dataclass(frozen=True, slots=True)
class Choice:
    """One reply, as a program gets it.

    Attributes:
        text: without special tokens, calls of tools, and the stop text.
        calls: of tools, in OpenAI's form with parsed arguments.
        finish: "stop", "length" or "tool_calls".
        stopped: the stop text that ended it, if one did.
        turn: its tokens.
        pieces: the text of each token, if it was asked for.
    """

    text: str
    calls: tuple[Mapping[str, Any], ...]
    finish: str
    stopped: str | None
    turn: Turn
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Settings of a gateway.

    Attributes:
        max_tokens: most tokens of a reply; less if a request says so.
        max_turns: replies of an episode.
        timeout_s: for one reply of the engine, its queue included.
        override: values of ``temperature`` and ``top_p`` that replace those of all requests, and
            their seeds: a learner trains on its own distribution.
        tool_calls: how the model writes calls, see :class:`~assay.envs.tools.ToolEnv`.
        chat_template_kwargs: given to the chat template.
    """

    max_tokens: int = 1024
    max_turns: int = 200
    timeout_s: float = 600.0
    override: Mapping[str, float] | None = None
    tool_calls: tuple[str, ...] = ("tags",)
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)


class Gateway:
    """The open episodes, and the engine that they share."""

    def __init__(self, engine: Engine | ChatEngine, config: GatewayConfig | None = None) -> None:
        self.engine, self.config = engine, config or GatewayConfig()
        self._open: dict[str, Session] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    def open(self, seed: int = 0) -> Session:
        """Begin an episode.

        Args:
            seed: of requests that have none.
        """
        session = Session(self, f"assay-{secrets.token_urlsafe(24)}", seed)
        self._open[session.key] = session
        return session

    @property
    def sessions(self) -> list[Session]:
        """The open episodes."""
        return list(self._open.values())

    def find(self, key: str) -> Session:
        """Return the open episode of a key.

        Raises:
            Refused: there is none (401), or it has ended (410).
        """
        if key in self._open:
            return self._open[key]
        if key in self._ended:
            raise Refused(410, "episode_ended", "this episode has ended")
        raise Refused(401, "invalid_api_key", "no episode has this key")

    def end(self, session: Session) -> None:
        """End an episode: its key is refused from now on, and replies under way are dropped."""
        session.ended = True
        if self._open.pop(session.key, None):
            self._ended[session.key] = None
            while len(self._ended) > _ENDED_KEPT:
                self._ended.popitem(last=False)


class Session:
    """One episode of a program.

    Attributes:
        key: its secret.
        tree: its turns.
        ended: no more requests are answered.
        cut: it ran out of turns or of the model's context.
        faults: requests that the engine failed at, with the reason, unless a later try succeeded.
        responses: conversations by the id of the response that ended them.
        clock: how long the program has run by itself.
        requests: that it waits for now.
    """

    def __init__(self, gateway: Gateway, key: str, seed: int) -> None:
        self.gateway, self.key, self._seed = gateway, key, seed
        self.tree = TurnTree(gateway.engine.tokenizer, gateway.config.chat_template_kwargs)
        self.ended = self.cut = False
        self.requests, self._left = 0, gateway.config.max_turns
        self.faults: dict[Hashable, str] = {}
        self.responses: dict[str, list[Any]] = {}
        self.clock = Clock()
        self._asked: dict[bytes, int] = {}

    async def answer(
        self, chat: Chat, gone: Callable[[], Awaitable[bool]] | None = None
    ) -> list[Choice]:
        """Sample replies, and add them to the tree.

        Args:
            chat: the request.
            gone: returns whether the program has hung up; then nothing is kept.

        Raises:
            Refused: the request cannot be answered.
        """
        if chat.n > self._left:
            self.cut = True
            most = self.gateway.config.max_turns
            raise Refused(403, "turn_limit", f"an episode has at most {most} replies")
        self._left -= chat.n
        try:
            return await self._answer(chat, gone)
        except Refused as error:
            # What was sampled counts, if nobody waited for it as well; a server's fault does not.
            if error.code not in ("client_closed", "engine_timeout"):
                self._left += chat.n
            raise

    async def _answer(self, chat: Chat, gone: Callable[[], Awaitable[bool]] | None) -> list[Choice]:
        engine, longest = self.gateway.engine, self.gateway.engine.longest
        if longest is not None and chat.characters > _TOKEN_CHARACTERS * longest:
            self.cut = True
            message = f"the prompt has {chat.characters} characters, over the model's context"
            raise Refused(400, "context_length_exceeded", message, "messages")
        if isinstance(engine, ChatEngine):
            if isinstance(chat.messages, tuple | str):
                raise Refused(400, "unsupported_parameter", "only chats are passed on", "prompt")
            if chat.strict:
                message = "tools that are strict are not passed on"
                raise Refused(400, "unsupported_parameter", message, "tools")
            key = derive_seed(chat.messages, chat.tools)
            replies = await self._wait(key, engine.chat(self._overridden(chat)), gone)
            return [self._passed_on(chat.messages, reply) for reply in replies]
        if chat.characters < _LONG:
            prompt = self._prompt(chat)
        else:  # other episodes must not wait for it
            prompt = await asyncio.to_thread(self._prompt, chat)
        sampling = asyncio.gather(*map(engine.sample, self._requests(chat, prompt)))
        found = await self._wait(prompt.key, sampling, gone)
        return [self._choice(chat, prompt, sampled) for sampled in found]

    async def _wait(
        self,
        key: Hashable,
        replies: Awaitable[Sequence[_T]],
        gone: Callable[[], Awaitable[bool]] | None,
    ) -> Sequence[_T]:
        """Wait for the engine with the clock stopped; note its fault until a try succeeds."""
        try:
            with self.clock.paused():
                async with asyncio.timeout(self.gateway.config.timeout_s):
                    found = await replies
        except EngineError as error:
            if error.bad_request:
                self.cut = self.cut or "context length" in str(error)
                raise Refused(400, "invalid_value", str(error), "messages") from error
            self.faults[key] = str(error)
            raise Refused(503, "engine_error", f"the engine failed: {error}") from error
        except TimeoutError as error:
            seconds = self.gateway.config.timeout_s
            self.faults[key] = why = f"the engine gave no reply in {seconds:g} s"
            raise Refused(504, "engine_timeout", why) from error
        self.faults.pop(key, None)
        self.faults.pop(_TEMPLATE, None)  # the program asked in a way that the template takes
        if self.ended:
            raise Refused(410, "episode_ended", "this episode has ended")
        if gone is not None and await gone():
            raise Refused(499, "client_closed", "the program has hung up")
        return found

    def _prompt(self, chat: Chat) -> Prompt:
        messages, tokenizer = chat.messages, self.tree.tokenizer
        try:
            if isinstance(messages, str):
                return self.tree.prompt_text(messages)
            if isinstance(messages, tuple):
                if not all(0 <= i < len(tokenizer) for i in messages):
                    raise ValueError(f"token ids are from 0 to {len(tokenizer) - 1}")
                return self.tree.place(messages)
            if chat.tools and not _shows(tokenizer, self.tree.options, chat.tools):
                message = "the model's chat template does not show tools"
                raise Refused(400, "unsupported_parameter", message, "tools")
            return self.tree.prompt(messages, chat.tools)
        except TemplateDropsMessage as error:
            self.faults[_TEMPLATE] = str(error)  # the model's set-up, not its doing
            raise Refused(400, "template_error", str(error), "messages") from error
        except ValueError as error:
            raise Refused(400, "invalid_value", str(error), "messages") from error

    def _requests(self, chat: Chat, prompt: Prompt) -> list[SampleRequest]:
        config, longest = self.gateway.config, self.gateway.engine.longest
        size = min(chat.max_tokens or config.max_tokens, config.max_tokens)
        if longest is not None:
            room = longest - len(prompt.ids)
            if room < (min(chat.max_tokens, size) if chat.max_tokens else 1):
                self.cut = True
                message = (
                    f"the prompt has {len(prompt.ids)} tokens and its reply up to {size}, and "
                    f"the model's context is {longest}"
                )
                raise Refused(400, "context_length_exceeded", message, "messages")
            size = min(size, room)
        chat = self._overridden(chat)
        seed = chat.seed
        if seed is None:
            count = self._asked.get(prompt.key, 0)
            self._asked[prompt.key] = count + 1
            seed = derive_seed(self._seed, prompt.ids, count)
        return [
            SampleRequest(
                prompt.ids,
                size,
                chat.temperature if chat.temperature >= _LEAST_TEMPERATURE else 0.0,
                max(chat.top_p, _LEAST_TOP_P),
                derive_seed(seed, i) if i else seed,
                chat.stop,
            )
            for i in range(chat.n)
        ]

    def _overridden(self, chat: Chat) -> Chat:
        override: Mapping[str, Any] | None = self.gateway.config.override
        return chat if override is None else replace(chat, seed=None, **override)

    def _passed_on(self, messages: Sequence[Mapping[str, Any]], reply: Reply) -> Choice:
        """Keep what another server made of a chat."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.calls:
            message["tool_calls"] = reply.calls
        prompt, sampled = self.tree.place(reply.prompt_ids, messages), reply.sampled
        turn = self.tree.add(prompt, sampled.ids, sampled.logprobs, message, reply.text)
        finish = "tool_calls" if reply.calls else sampled.finish
        return Choice(reply.text, reply.calls, finish, reply.stopped, turn, reply.pieces)

    def _choice(self, chat: Chat, prompt: Prompt, sampled: Sampled) -> Choice:
        tokenizer = self.tree.tokenizer
        raw: str = tokenizer.decode(list(sampled.ids), skip_special_tokens=True)
        stops = [(i, stop) for stop in chat.stop if (i := raw.find(stop)) >= 0]
        end, stopped = min(stops, default=(len(raw), None))
        finish = str(sampled.finish)
        text, calls = _calls(raw[:end], chat, self.gateway.config.tool_calls)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = calls
            finish = finish if finish == "length" else "tool_calls"
        turn = self.tree.add(prompt, sampled.ids, sampled.logprobs, message, raw)
        shown = sampled.ids if chat.logprobs else ()
        pieces = tuple(tokenizer.decode([i], skip_special_tokens=False) for i in shown)
        return Choice(text, calls, finish, stopped, turn, pieces)

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        return {
            "ended": self.ended,
            "cut": self.cut,
            "faults": list(self.faults.values()),
            "messages": [dict(turn.message) for turn in self.tree.turns],
            "branches": [branch.to_json() for branch in self.tree.branches()],
        }


class Clock:
    """Seconds that a program has run, without those in which a request of its waits."""

    def __init__(self) -> None:
        self._lock, self._waiting = threading.Lock(), 0
        self._began, self._left_out, self._since = time.monotonic(), 0.0, 0.0

    def start(self) -> None:
        """Begin at 0."""
        with self._lock:
            self._began, self._left_out = time.monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """How long the program has run."""
        with self._lock:
            now = time.monotonic()
            waits = now - self._since if self._waiting else 0.0
            return now - self._began - self._left_out - waits

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock; several requests may wait at once."""
        with self._lock:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting:
                    self._left_out += time.monotonic() - self._since


def derive_seed(*parts: Any) -> int:
    """Return a seed in [0, 2^63) that depends on these alone: requests may come in any order."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _shows(tokenizer: Any, options: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the chat template tells the model of tools."""
    if not tokenizer.chat_template:
        return False
    said = [{"role": "user", "content": "?"}]
    try:
        without, shown = (
            tokenizer.apply_chat_template(said, tokenize=False, **{**options, **more})
            for more in ({}, {"tools": list(tools)})
        )
    except Exception as error:  # whatever a template's code raises at a schema
        message = f"the model's chat template refuses these tools: {error}"
        raise Refused(400, "invalid_value", message, "tools") from error
    return bool(without != shown)


def _calls(text: str, chat: Chat, ways: tuple[str, ...]) -> tuple[str, tuple[dict[str, Any], ...]]:
    """Split a reply into its text and its calls; calls that must not be made stay text."""
    names = [tool["function"]["name"] for tool in chat.tools]
    try:
        found = read_calls(text, names, ways, chat.tools) if names else []
    except NotJson:
        found = []
    for call in found:
        schema = chat.strict.get(call.name)
        if call.name not in names or (schema and schema.fault(call.arguments)):
            return text, ()
    if not found:
        return text, ()
    body = marked(text, ways) or ""
    mark = attempt(body, ways)
    before = text[: text.rindex(body) + mark.start()].rstrip() if mark else ""
    return before, tuple(
        {
            "id": f"call_{secrets.token_hex(8)}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in found
    )
