"""Asks a model behind an OpenAI-compatible server, and says why where there is no answer."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

NO_KEY = "none"
BACKOFF_S = 0.5
"""Before the second attempt; doubled before each further one."""
LONGEST_BACKOFF_S = 8.0
LONGEST_WAIT_S = 60.0
"""A server that asks for more patience than this is not asked again."""
LIMITED = 4
"""A question may meet a rate limit this many times as often as it may meet other faults."""
MOST_TIMEOUTS = 2
"""Attempts that one question may lose to a server that says nothing."""
GIVE_UP_AFTER = 3
"""Questions in a row that the server failed; the rest of the batch is not asked."""
_REFUSED = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405})
_AGAIN = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one question.

    Attributes:
        text: the judge's words, or ``None``.
        fault: why there are none.
        seconds: from the first attempt to the end of the last.
    """

    text: str | None
    fault: str = ""
    seconds: float = 0.0


@dataclass
class Usage:
    """What a judge has cost since it was made: requests answered or not, tokens as told.

    Attributes:
        requests: sent, with those that failed.
        prompt_tokens: that the server says it read.
        completion_tokens: that the server says it wrote.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Failure(Exception):
    """An attempt without an answer.

    Attributes:
        server: it is the server that failed, not the judge or this one question.
        again: another attempt may succeed.
        stop: no question will: a wrong key, no such model.
        limited: there were too many questions, and this one will be answered in its turn.
        wait_s: how long the server asks to be left alone.
    """

    def __init__(
        self,
        reason: str,
        *,
        server: bool = True,
        again: bool = True,
        stop: bool = False,
        limited: bool = False,
        wait_s: float = 0.0,
    ) -> None:
        super().__init__(reason)
        self.server, self.again, self.stop = server, again, stop
        self.limited, self.wait_s = limited, wait_s


@dataclass(frozen=True)
class Endpoint:
    """A server and how patiently it is asked.

    Attributes:
        base_url: such as ``http://localhost:8000/v1``.
        api_key_env: the environment variable that holds the key; ``None`` sends none.
        timeout_s: for one attempt, from the first byte sent to the last one read.
        attempts: for one question.
        concurrency: questions asked at a time.

    Raises:
        ValueError: the address is no plain http(s) one, or a number is too small.
    """

    base_url: str
    api_key_env: str | None = None
    timeout_s: float = 60.0
    attempts: int = 4
    concurrency: int = 8
    usage: Usage = field(default_factory=Usage, compare=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "base_url must be an address such as 'http://localhost:8000/v1', "
                f"got {self.base_url!r}"
            )
        if parts.username or parts.password or parts.query:
            raise ValueError(
                "base_url must hold no key, user or password, for it is printed and stored: put "
                "the key into an environment variable and name that as api_key_env"
            )
        for name in ("attempts", "concurrency"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a whole number from 1, got {value!r}")
        if not self.timeout_s > 0:
            raise ValueError(f"timeout_s must be more than 0 seconds, got {self.timeout_s!r}")

    async def ask_all(
        self,
        bodies: Mapping[str, dict[str, Any]],
        readable: Callable[[str], bool],
        note: Callable[[str, str], None],
    ) -> dict[str, Heard]:
        """Ask all questions, some at a time.

        Args:
            bodies: of the requests, by key.
            readable: whether the judge's words hold a verdict; else it is asked again.
            note: is called with key and words as soon as there are any.

        Returns:
            What came of each; no fault raises.
        """
        try:
            key = self._key()
            client = self._client(key)
        except Exception as error:  # no package, no key, a proxy's address that is none
            return dict.fromkeys(bodies, Heard(None, str(error)))
        async with client:
            batch = _Batch(self, client, key, readable, note)
            return await batch.ask(bodies.items())

    def _key(self) -> str:
        if self.api_key_env is None:
            return NO_KEY
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise ValueError(f"the environment variable {self.api_key_env} holds no API key")
        if not (key.isascii() and key.isprintable()):  # and errors further on would print it
            raise ValueError(f"the API key in {self.api_key_env} holds more than plain characters")
        return key

    def _client(self, key: str) -> Any:
        try:
            import openai
        except ImportError as error:
            missing = "the package openai is missing: pip install 'assay[judge]'"
            raise ImportError(missing) from error
        from .bounded import HEADERS, bound

        # Certificates take longer to load than a local server to answer. No redirects: the key
        # is for this server, and a plain address must not lead to an unchecked one.
        secure = urlsplit(self.base_url).scheme == "https"
        return openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=key,
            max_retries=0,
            timeout=self.timeout_s,
            http_client=openai.DefaultAsyncHttpxClient(
                verify=secure,
                follow_redirects=False,
                headers=HEADERS,
                event_hooks={"response": [bound]},
            ),
        )


class _Batch:
    """One batch of questions: what its workers know of the server in common."""

    def __init__(
        self,
        endpoint: Endpoint,
        client: Any,
        key: str,
        readable: Callable[[str], bool],
        note: Callable[[str, str], None],
    ) -> None:
        self.endpoint, self.client, self.key = endpoint, client, key
        self.readable, self.note = readable, note
        self.stopped = ""  # why nothing more is asked
        self.failed = 0  # questions in a row that the server failed
        self.resume_at = 0.0  # the server has asked to be left alone until then

    async def ask(self, bodies: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Heard]:
        waiting = iter(bodies)
        found: dict[str, Heard] = {}

        async def worker() -> None:
            for name, body in waiting:
                found[name] = await self._one(body)
                text = found[name].text
                if text is not None:
                    self.note(name, text)

        await asyncio.gather(*(worker() for _ in range(self.endpoint.concurrency)))
        return found

    async def _one(self, body: dict[str, Any]) -> Heard:
        """One question, with as many attempts as it needs and may have."""
        clock = asyncio.get_running_loop().time
        started = clock()
        faults: list[_Failure] = []
        while not self._spent(faults):
            if faults and faults[-1].server:
                backoff = min(BACKOFF_S * 2 ** (len(faults) - 1), LONGEST_BACKOFF_S)
                await asyncio.sleep(max(backoff, faults[-1].wait_s))
            await self._left_alone(clock)
            if self.stopped:
                break
            try:
                text = await self._attempt(_reseeded(body, len(faults)))
            except _Failure as failure:
                faults.append(failure)
                self.resume_at = max(self.resume_at, clock() + failure.wait_s)
                if failure.stop:
                    self.stopped = str(failure)
                continue
            self.failed = 0
            return Heard(text, seconds=clock() - started)
        return Heard(None, self._lost(faults), clock() - started)

    def _spent(self, faults: Sequence[_Failure]) -> bool:
        """Whether a question has had its attempts."""
        limited = sum(fault.limited for fault in faults)
        timeouts = sum(isinstance(fault.__cause__, TimeoutError) for fault in faults)
        attempts = self.endpoint.attempts
        return (
            bool(faults and not faults[-1].again)
            or len(faults) - limited >= attempts
            or limited >= LIMITED * attempts
            or timeouts >= MOST_TIMEOUTS
        )

    def _lost(self, faults: Sequence[_Failure]) -> str:
        """Count a question that was not answered, and say why."""
        if not faults:
            return f"not asked, since the server failed the batch: {self.stopped}"
        last, tried = faults[-1], len(faults)
        self.failed = self.failed + 1 if last.server else 0
        if self.failed >= GIVE_UP_AFTER and not self.stopped:
            self.stopped = str(last)
        return f"{last} ({tried} attempt{'s' if tried > 1 else ''})"

    async def _left_alone(self, clock: Callable[[], float]) -> None:
        while (rest := self.resume_at - clock()) > 0 and not self.stopped:
            await asyncio.sleep(rest)

    async def _attempt(self, body: dict[str, Any]) -> str:
        self.endpoint.usage.requests += 1
        raw = await self._sent(body)
        text = self._text_of(raw)
        if not self.readable(text):
            said = " ".join(text.split())
            raise _Failure(f"the judge gave no verdict: ...{said[-120:]!r}", server=False)
        return text

    async def _sent(self, body: dict[str, Any]) -> bytes:
        """The body of the answer; whatever goes wrong on the way is a failure with its reason."""
        import openai

        where, limit = self.endpoint.base_url, self.endpoint.timeout_s
        create = self.client.chat.completions.with_raw_response.create
        try:
            # httpx bounds the wait for each piece of an answer, not for the whole
            async with asyncio.timeout(limit):
                response = await create(**body)
                return bytes(response.content)
        except (TimeoutError, openai.APITimeoutError) as error:
            raise _Failure(f"no answer from {where} in {limit:g} s") from TimeoutError(str(error))
        except openai.APIStatusError as error:
            said = str(error) if " - " in str(error) else error.response.text or "nothing"
            raise self._refused(error.status_code, error.response.headers, said) from error
        except openai.APIConnectionError as error:
            cause = self._without_key(str(error.__cause__ or error))
            raise _Failure(f"no connection to {where}: {cause}") from error
        except Exception as error:  # of whatever kind: one question must not lose the batch
            cause = self._without_key(f"{type(error).__name__}: {error}")
            raise _Failure(f"{where} cannot be asked: {cause}") from error

    def _refused(self, status: int, headers: Mapping[str, str], message: str) -> _Failure:
        reason = f"the server answered {status}: {self._without_key(message)}"
        wait_s = _retry_after(headers)
        if status in _REFUSED:
            return _Failure(reason, again=False, stop=True)
        if wait_s > LONGEST_WAIT_S:
            return _Failure(f"{reason}; it asks to wait {wait_s:g} s", again=False, stop=True)
        if status in _AGAIN or status >= 500:
            return _Failure(reason, limited=status == 429, wait_s=wait_s)
        return _Failure(reason, server=False, again=False)  # this request, such as one too long

    def _text_of(self, raw: bytes) -> str:
        """The judge's words in the server's answer."""
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise _Failure("the server's answer is not JSON") from error
        choices = row.get("choices") if isinstance(row, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(first, dict) or not isinstance(message, dict):
            raise _Failure("the server's answer holds no message")
        self._count(row.get("usage"))
        ended, text = first.get("finish_reason"), message.get("content")
        if ended == "length":
            raise _Failure("the judge was cut off before its verdict: raise max_tokens in sampling",
                           server=False)  # fmt: skip
        if ended == "content_filter":
            raise _Failure("the server's content filter stopped the judge", server=False)
        if not isinstance(text, str) or not text.strip():
            raise _Failure("the judge said nothing", server=False)
        return text

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            for name in ("prompt_tokens", "completion_tokens"):
                if type(usage.get(name)) is int:
                    total = getattr(self.endpoint.usage, name) + usage[name]
                    setattr(self.endpoint.usage, name, total)

    def _without_key(self, message: str) -> str:
        """A message from outside, short and on one line; servers have been known to quote keys."""
        if self.key != NO_KEY:
            message = message.replace(self.key, "***")
        return " ".join(message.split())[:200]


def _reseeded(body: dict[str, Any], tried: int) -> dict[str, Any]:
    """The same question with another seed: the first one would bring the same words again."""
    if not tried or type(body.get("seed")) is not int:
        return body
    return {**body, "seed": body["seed"] + 1000 * tried}


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to wait; 0.0 where it does not say, or gives a date."""
    try:
        seconds = float(headers.get("retry-after", "0"))
    except ValueError:
        return 0.0
    return seconds if seconds > 0 else 0.0
