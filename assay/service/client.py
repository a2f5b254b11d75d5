"""Requests to a server, retried if that is safe."""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import httpx

from ..sandbox.redaction import redact
from ..verifiers import Status, Verdict
from ..verifiers.validation import safe_repr
from .limits import too_long
from .schemas import HEADER, PROTOCOL

_AGAIN = frozenset({429, 502, 503, 504})
_AROUND = 300
"""Bytes of a request around a reply: its task or episode, and its turn."""


class RemoteError(RuntimeError):
    """A server did not answer, or would not.

    Attributes:
        status: HTTP's; 0 if there was no answer at all.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(redact(message))
        self.status = status


class Remote:
    """A server of :func:`assay.service.create_app`, from several threads at one time.

    Every call of ours may be repeated: judging changes nothing, a step says which turn it is.

    Args:
        url: such as ``http://127.0.0.1:8000``.
        token: the server's.
        retries: after the first try.
        timeout_s: of one try.
        pause_s: before the first retry; twice as long before each further one.

    Attributes:
        serves: the hash of what the server serves, once it is known: if another environment is
            served later it refuses, and no score of the one is taken for the other's.

    Raises:
        ValueError: the URL is none of http or https.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retries: int = 6,
        timeout_s: float = 330.0,
        pause_s: float = 0.25,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url must begin with http:// or https://, got {url!r:.100}")
        self.url, self._token = url.rstrip("/"), token
        self.retries, self.timeout_s, self.pause_s = retries, timeout_s, pause_s
        self.serves = ""
        self._client: httpx.Client | None = None
        self._process = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def __repr__(self) -> str:
        return f"Remote({redact(self.url)!r})"

    def describe(self) -> dict[str, Any]:
        """Return what the server serves, and pin this environment for later requests.

        Raises:
            RemoteError: there is no answer, or one of another version of the messages.
        """
        served = self.get("/v1/environment")
        if not isinstance(served, dict) or served.get("protocol") != PROTOCOL:
            from .. import __version__

            version = served.get("version", "none") if isinstance(served, dict) else "none"
            raise RemoteError(
                f"{self.url} speaks another version of the messages (Assay {version}; here "
                f"{__version__}): install the same version of Assay on both"
            )
        self.serves = str(served["sha256"])
        return served

    def get(self, path: str) -> Any:
        """Send a GET request.

        Raises:
            RemoteError: there is no answer, or it is no.
        """
        return self._call("GET", path, None, self.retries, _AGAIN)

    def post(
        self, path: str, body: Any, retries: int | None = None, again: frozenset[int] = _AGAIN
    ) -> Any:
        """Send a POST request, retrying on some statuses; errors as for :meth:`get`."""
        content = json.dumps(body).encode()
        tries = self.retries if retries is None else retries
        return self._call("POST", path, content, tries, again)

    def judged(
        self,
        path: str,
        name: str,
        replies: Sequence[str],
        body: Callable[[list[int]], Any],
        limits: Mapping[str, Any],
        lowest: float,
    ) -> list[dict[str, Any] | Verdict]:
        """Return a row of the server's answers for each reply, or the verdict of one without.

        A reply that is longer than the server judges gets the lowest score here. A request that
        takes too long, or is too large for a proxy, is made again in halves, so that a reply costs
        its neighbours nothing. After a lone reply that takes too long there are no halves.

        Args:
            path: the route.
            name: of the rows in an answer.
            replies: any number of them.
            body: of a request about the replies at some places; may raise RemoteError.
            limits: the server's.
            lowest: of its scores.
        """
        sizes: dict[int, int] = {}
        chars, room = limits.get("reply_chars", math.inf), limits["body_bytes"] - _AROUND
        found: dict[int, dict[str, Any] | Verdict] = {}
        for place, reply in enumerate(replies):
            if not isinstance(reply, str):
                why = f"a reply must be text, got {safe_repr(reply)}"
                found[place] = Verdict.fault(Status.VERIFIER_ERROR, why)
            elif len(reply) > chars:
                found[place] = too_long(len(reply), chars, "characters", lowest)
            elif (size := len(json.dumps(reply)) + _AROUND) > room:
                found[place] = too_long(size, room, "bytes as JSON", lowest)
            else:
                sizes[place] = size
        waiting = deque(_parts(sizes.items(), limits["batch"], room))
        late = False
        while waiting:
            part = waiting.popleft()
            halves = len(part) > 1
            try:
                answer = self.post(path, body(part), again=_AGAIN - {504} if halves else _AGAIN)
                found.update(zip(part, rows(answer, name, len(part)), strict=True))
            except RemoteError as error:
                if halves and (error.status == 413 or (error.status == 504 and not late)):
                    half = len(part) // 2
                    waiting.extendleft((part[half:], part[:half]))
                    continue
                late = late or error.status == 504
                verdict = Verdict.fault(Status.VERIFIER_ERROR, str(error))
                if error.status == 413:
                    verdict = Verdict.wrong(str(error), status=Status.UNPARSEABLE, score=lowest)
                found.update(dict.fromkeys(part, verdict))
        return [found[place] for place in range(len(replies))]

    def close(self) -> None:
        """End its connections; a later call begins new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _call(
        self, method: str, path: str, content: bytes | None, retries: int, again: frozenset[int]
    ) -> Any:
        headers = {} if content is None else {"content-type": "application/json"}
        headers |= {HEADER: self.serves} if self.serves else {}
        for attempt in range(retries + 1):
            wait = self.pause_s * 2**attempt * random.uniform(0.5, 1)  # noqa: S311  # spreads clients
            try:
                answer = self._connected().request(method, path, content=content, headers=headers)
            except (httpx.TransportError, OSError) as error:
                failure = RemoteError(
                    f"{self.url} does not answer ({type(error).__name__}: {error}). Is "
                    "'assay serve' running there?"
                )
            else:
                if answer.status_code < 300:
                    return _json(self.url, answer)
                failure = _refusal(self.url, answer)
                if answer.status_code not in again:
                    raise failure
                wait = max(wait, _seconds(answer.headers.get("retry-after")))
            if attempt == retries:
                raise failure
            time.sleep(wait)
        raise AssertionError("the loop returns or raises")

    def _connected(self) -> httpx.Client:
        """Return the connections of this process: a fork makes its own."""
        if self._client is None or self._process != os.getpid():
            headers = {} if self._token is None else {"authorization": f"Bearer {self._token}"}
            self._process = os.getpid()
            self._client = httpx.Client(
                base_url=self.url, headers=headers, timeout=self.timeout_s, trust_env=False
            )
        return self._client


def rows(answer: Any, name: str, count: int) -> list[dict[str, Any]]:
    """Return the rows of a response, exactly one for each requested.

    Raises:
        RemoteError: there are others, or none.
    """
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, list) or len(found) != count:
        given = f"{len(found)}" if isinstance(found, list) else "none"
        raise RemoteError(f"expected {count} {name} in the server's answer, got {given}")
    return found


def _parts(sizes: Iterable[tuple[int, int]], most: int, room: int) -> list[list[int]]:
    """Cut a batch so that each part is small enough for one request."""
    found: list[list[int]] = []
    total = 0
    for place, size in sizes:
        if not found or len(found[-1]) >= most or total + size > room:
            found.append([])
            total = 0
        found[-1].append(place)
        total += size
    return found


def _json(url: str, answer: httpx.Response) -> Any:
    """Parse a body as strict JSON, without NaN."""

    def refuse(name: str) -> float:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(answer.content, parse_constant=refuse)
    except ValueError as error:
        raise RemoteError(
            f"{url} answered {answer.status_code} with a body that is no JSON: is it "
            "'assay serve' that answers there, or something before it?"
        ) from error


def _refusal(url: str, answer: httpx.Response) -> RemoteError:
    try:
        why = str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        why = answer.text[:200]
    return RemoteError(f"{url} answered {answer.status_code}: {why}", answer.status_code)


def _seconds(text: str | None) -> float:
    try:
        return min(60.0, float(text or 0))
    except ValueError:
        return 0.0
