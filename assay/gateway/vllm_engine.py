"""A vLLM server as an engine, by token ids; or by chats, if it is somebody else's."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from ..sandbox.redaction import redact
from .engine import EngineError, Reply, Sampled, SampleRequest
from .episodes import Chat
from .replies import as_text

_AT_ONCE = 256
_HIGHEST = 1e-3  # of log-probabilities: rounding; vLLM writes -9999 if there is none


class _Server:
    """Connections to a vLLM server.

    A server that is lost, or restarted, is asked again until ``patience_s`` is over.

    Args:
        url: such as ``http://127.0.0.1:8000``.
        model: its name there; by default the first that the server lists.
        api_key: the server's.
        processed: its log-probabilities are of the distribution after temperature and top_p
            (``--logprobs-mode processed_logprobs``). Without it, other settings than
            temperature 0 or 1 and top_p 1 are refused.
        patience_s: seconds to wait for a lost server.

    Raises:
        EngineError: there is no such server, or it gives no token ids.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str = "none",
        processed: bool = False,
        patience_s: float = 120.0,
    ) -> None:
        self._url = url.rstrip("/").removesuffix("/v1")
        self._processed, self._patience_s = processed, patience_s
        self._http = httpx.Client(
            base_url=self._url,
            headers={"Authorization": f"Bearer {api_key}"},
            timeout=3600.0,  # the gateway limits each request
            limits=httpx.Limits(max_connections=_AT_ONCE),
            trust_env=False,
        )
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="assay-vllm")
        try:
            self._begin(model)
        except EngineError:
            self._http.close()
            raise

    def _begin(self, model: str | None) -> None:
        """Find the model, and refuse a server that gives no token ids."""
        try:
            served = {m["id"]: m for m in self._http.get("/v1/models").json()["data"]}
            self.name = model or next(iter(served))
            self.longest: int | None = served[self.name].get("max_model_len")
            body = {"model": self.name, "prompt": "a", "max_tokens": 1, **_EXACT}
            tried = self._http.post("/v1/completions", json=body).json()
        except (httpx.HTTPError, ValueError, LookupError, TypeError, StopIteration) as error:
            raise EngineError(
                f"{redact(self._url)} serves no model{f' {model!r}' if model else ''}: "
                f"{error!r:.200}"
            ) from error
        if not (tried.get("choices") or [{}])[0].get("token_ids"):
            raise EngineError(
                f"{redact(self._url)} gives no token ids of what it sampled, and from its text "
                "they cannot be had: serve the model with vLLM 0.10.2 or later"
            )

    async def _post(self, path: str, body: dict[str, Any], *, temperature: float) -> Any:
        """Ask in a thread; gateways of several event loops may share the connections."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._ask, path, body, temperature)

    def _ask(self, path: str, body: dict[str, Any], temperature: float) -> Any:
        """Return the server's answer; EngineError if it refuses, or stays away."""
        if not self._processed and not (temperature in (0, 1) and body["top_p"] == 1):
            raise EngineError(
                "this server's log-probabilities may leave out temperature and top_p: start it "
                "with --logprobs-mode processed_logprobs, and the gateway with "
                "--processed-logprobs, or ask with temperature 1 and top_p 1",
                bad_request=True,
            )
        sent = json.dumps({"model": self.name, "temperature": temperature, **body, **_EXACT})
        until, status = time.monotonic() + self._patience_s, 0
        while True:
            try:
                response = self._http.post(path, content=sent, headers=_JSON)
                status = response.status_code
                fault = f"answered {status}: {response.text:.300}"
                lost = status in (408, 429) or status >= 500
                if status == 200:
                    found = response.json()
                    if all(c["finish_reason"] != "abort" for c in found["choices"]):
                        return found
                    lost = True
            except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
                fault, lost = f"gave no answer: {error!r:.200}", True
            if not lost or time.monotonic() > until:
                raise EngineError(f"{redact(self._url)} {fault}", bad_request=status == 400)
            time.sleep(0.5)

    async def close(self) -> None:
        """Close the connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._http.close()


_JSON = {"Content-Type": "application/json"}
# A server may take other defaults from the model's generation config.
_EXACT = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "return_token_ids": True}


class VLLMEngine(_Server):
    """Sample from a vLLM server by token ids.

    Args:
        url: as for the rest of its arguments, see above.
        tokenizer: the model's.
    """

    def __init__(self, url: str, tokenizer: Any, **settings: Any) -> None:
        super().__init__(url, **settings)
        self.tokenizer = tokenizer

    async def sample(self, request: SampleRequest) -> Sampled:
        """Sample one reply.

        Raises:
            EngineError: the server refuses, stays away, or gives no ids or log-probabilities.
        """
        body = {
            "prompt": list(request.prompt),
            "max_tokens": request.max_tokens,
            "top_p": request.top_p,
            "seed": request.seed,
            "stop": list(request.stop),
            "include_stop_str_in_output": True,
            "logprobs": 0,
        }
        found = await self._post("/v1/completions", body, temperature=request.temperature)
        (choice,) = found["choices"]
        if choice.get("prompt_token_ids") not in (None, list(request.prompt)):
            raise EngineError("the server sampled from other tokens: it must not cut prompts")
        logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
        return _sampled(choice, logprobs, greedy=request.temperature == 0)


class ProxyEngine(_Server):
    """Pass chats on to a vLLM server that tokenizes them itself.

    A later turn keeps the tokens of an earlier one if the server's own prompt begins with them;
    if it does not, it begins a branch, and the record says so.
    """

    tokenizer: None = None

    async def chat(self, chat: Chat) -> list[Reply]:
        """Return the server's replies.

        Raises:
            EngineError: the server refuses, stays away, or gives no ids or log-probabilities.
        """
        body: dict[str, Any] = {
            "messages": [_sent(m) for m in chat.messages],
            "n": chat.n,
            "top_p": chat.top_p,
            "stop": list(chat.stop),
            "logprobs": True,
        }
        optional = {"tools": chat.tools, "max_tokens": chat.max_tokens, "seed": chat.seed}
        body |= {name: value for name, value in optional.items() if value}
        found = await self._post("/v1/chat/completions", body, temperature=chat.temperature)
        prompt = found.get("prompt_token_ids")
        if not isinstance(prompt, list) or not prompt:
            raise EngineError("the server gives no token ids of its prompt")
        replies = []
        for choice in found["choices"]:
            rows = (choice.get("logprobs") or {}).get("content") or []
            logprobs = [row["logprob"] for row in rows]
            sampled = _sampled(choice, logprobs, greedy=chat.temperature == 0)
            said = choice["message"]
            calls = tuple(_received(call) for call in said.get("tool_calls") or ())
            pieces = tuple(row["token"] for row in rows)
            why, text = choice.get("stop_reason"), said.get("content") or ""
            stopped = why if isinstance(why, str) else None
            replies.append(Reply(prompt, sampled, text, calls, pieces, stopped))
        return replies


def _sent(message: Any) -> dict[str, Any]:
    """Return a message whose calls have arguments as text."""
    calls = [as_text(call) for call in message.get("tool_calls") or ()]
    return {**message, **({"tool_calls": calls} if calls else {})}


def _received(call: Any) -> dict[str, Any]:
    """Return a call with parsed arguments."""
    try:
        arguments = json.loads(call["function"]["arguments"])
        function = {"name": call["function"]["name"], "arguments": arguments}
        return {"id": call["id"], "type": "function", "function": function}
    except (ValueError, LookupError, TypeError) as error:
        raise EngineError(f"the server gives a call that cannot be read: {call!r:.200}") from error


def _sampled(choice: Any, logprobs: Any, *, greedy: bool) -> Sampled:
    """Return what a server sampled; EngineError if ids or log-probabilities are missing."""
    ids, finish = choice.get("token_ids"), choice.get("finish_reason")
    if not isinstance(ids, list) or not ids or not all(type(i) is int for i in ids):
        raise EngineError(f"a reply needs token ids, got {ids!r:.80}")
    if greedy:
        logprobs = [0.0] * len(ids)  # the most likely token is drawn for certain
    if (
        not isinstance(logprobs, list)
        or len(logprobs) != len(ids)
        or not all(isinstance(p, float | int) and -9000 < p < _HIGHEST for p in logprobs)
    ):
        raise EngineError(f"a reply needs {len(ids)} log-probabilities, got {logprobs!r:.120}")
    if finish not in ("stop", "length", "tool_calls"):
        raise EngineError(f"a reply must finish by 'stop' or 'length', got {finish!r}")
    return Sampled(ids, logprobs, "length" if finish == "length" else "stop")
