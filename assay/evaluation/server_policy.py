"""A model behind an OpenAI-compatible chat endpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

from ..envs import Completion
from ..envs.trl.tools import text_of
from ..extras import needing
from ..sandbox.pool.threads import Threads
from ..sandbox.redaction import redact
from ..verifiers.text.words import replace_surrogates
from .eval_policy import Request, Response

_OF_ONE = frozenset({400, 413, 414, 422, 431, 451})
"""Refusals of what is in a request. All others (no key, no money, too many, out of order) say
nothing of the one question: they stop the run, which can be resumed."""


class ServerFailed(OSError):
    """A server does not answer, or refuses every question; what is on disk stays."""


class ServerPolicy:
    """Call ``/v1/chat/completions``, one request for each turn, each with its own seed.

    A request that is refused for what is in it (such as one that is too long) costs its episode
    the reward; a server that cannot be reached, or has failed ``retries`` times, stops the run. So
    does one that refuses whatever it is asked: then it is a setting that it does not take.

    The arguments are those of :class:`~assay.evaluation.Sampling`; the server decides what is
    ``None``.

    Raises:
        ImportError: the package openai is missing.
        ValueError: the address is none, holds a secret, or the key is not there.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        concurrency: int = 32,
        retries: int = 4,
        timeout_s: float = 600.0,
        api_key_env: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        _refuse_address(base_url)
        if concurrency < 1 or retries < 0:
            raise ValueError(
                "--concurrency must be at least 1 and --retries at least 0, "
                f"got {concurrency} and {retries}"
            )
        self.base_url, self.model, self.concurrency = base_url, model, concurrency
        sampling = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p}
        self.sampling = {k: v for k, v in sampling.items() if v is not None}
        self.extra = dict(extra or {})
        self._client = connect(base_url, api_key_env, retries=retries, timeout_s=timeout_s)
        self._answered = False

    def describe(self) -> dict[str, Any]:
        """Return the address, the model and what replies depend on; never the key."""
        return {
            "kind": "server",
            "url": self.base_url,
            "model": self.model,
            "sampling": self.sampling,
            "extra": self.extra,
        }

    def respond(self, requests: Sequence[Request], /) -> list[Response]:
        """Ask for all, some at a time.

        Raises:
            ServerFailed: the server does not answer, or none of its answers is one.
        """
        found = _side_by_side(self._one, requests, self.concurrency)
        refused = [r.fault for r in found if r.completion is None]
        self._answered = self._answered or len(refused) < len(found)
        if not self._answered and len({r.task for r in requests}) > 1:
            raise ServerFailed(
                f"all {len(refused):,} requests were refused, and none was answered before, so it "
                f"is not for what the tasks say: {refused[0]}"
            )
        return found

    def _one(self, request: Request) -> Response:
        import openai

        body: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {**m, "content": replace_surrogates(m["content"])} for m in request.messages
            ],
            "seed": request.seed,
            **self.sampling,
        }
        create = self._client.chat.completions.with_raw_response.create
        try:
            response = create(**body, extra_body=self.extra or None)
            return _read(bytes(response.content), self.base_url)
        except openai.APIStatusError as error:
            said = " ".join(error.response.text.split()).replace(self._client.api_key, "...")
            message = f"{self.base_url} answered {error.status_code}: {said[:200]}"
            if error.status_code not in _OF_ONE:
                raise ServerFailed(message) from error
            return Response(None, message)
        except openai.OpenAIError as error:
            raise ServerFailed(
                f"no answer from {self.base_url}: {error.__cause__ or error!r:.300}. Is it up, and "
                "is that its address?"
            ) from error


def _side_by_side(
    ask: Callable[[Request], Response], requests: Sequence[Request], most: int
) -> list[Response]:
    """Ask for all, so many at a time, in daemon threads; the first failure ends it."""
    threads = Threads(most, "assay-ask")
    try:
        found = [threads.submit(partial(ask, one)) for one in requests]
        for done in as_completed(found):
            done.result()
        return [future.result() for future in found]
    finally:
        threads.close(cancel=True)


def _refuse_address(base_url: str) -> None:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"a server's address is like http://127.0.0.1:8000/v1, got {redact(base_url)!r:.120}"
        )
    if parts.username or parts.password or parts.query:
        raise ValueError(
            "the address is printed and stored, so it must hold no key, user or password: name "
            "an environment variable with the key as --api-key-env"
        )


_BROKEN_OFF = ("abort", "error", "insufficient_system_resource", "network_error")
"""Reasons of vLLM, SGLang, DeepSeek, GLM, and routers whose provider failed."""


def _read(raw: bytes, where: str) -> Response:
    """Read the reply and its tokens from the server's response."""
    try:
        row = json.loads(raw)
        choice = row["choices"][0]
        text, ended = text_of(choice["message"]), choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ServerFailed(f"the answer of {where} holds no message: {raw[:200]!r}") from error
    read, written = _usage(row.get("usage"))
    if ended == "content_filter":
        return Response(None, "the server's content filter stopped it", read, written)
    if ended in _BROKEN_OFF:
        return Response(None, f"the server broke off the reply ({ended})", read, written)
    finish: Literal["stop", "length"] = "length" if ended == "length" else "stop"
    return Response(Completion(text, finish), "", read, written)


def _usage(usage: Any) -> tuple[int | None, int | None]:
    if not isinstance(usage, dict):
        return None, None
    names = ("prompt_tokens", "completion_tokens")
    read, written = (usage[n] if type(usage.get(n)) is int else None for n in names)
    return read, written


def connect(base_url: str, api_key_env: str | None, *, retries: int, timeout_s: float) -> Any:
    """Make an openai client that follows no redirects, so that the key stays with this server.

    Args:
        base_url: of the server.
        api_key_env: the environment variable that holds the key; ``None`` sends none.
        retries: of a request, beside the first try.
        timeout_s: of a request, in seconds.

    Raises:
        ImportError: the package openai is missing.
        ValueError: the environment variable holds no key.
    """
    with needing("a server as --policy", "judge"):
        import openai
    key = "none" if api_key_env is None else os.environ.get(api_key_env, "").strip()
    if not key:
        raise ValueError(f"the environment variable {api_key_env} holds no API key")
    return openai.OpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=retries,
        timeout=timeout_s,
        http_client=openai.DefaultHttpxClient(follow_redirects=False),
    )
