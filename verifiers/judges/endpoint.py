"""Requests to a model behind an OpenAI-compatible server, with the reason if one fails."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from ...sandbox.extras import missing_package
from ..validation import check_whole

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
"""Health checks in a row that fail; the rest of the batch is not asked."""
TRIAL = "CQQCQC"
"""A reply is at fault if the control (C) is answered each time and the question (Q) never is.
Two of Q are adjacent because a balancer may send every second request to a server that is down."""
SHORT_TRIAL = "QCQC"
"""The same for a judge that gave no verdict, in the short form: "the verdict, and nothing else"."""
LATE_TRIAL = "CQC"
"""The same for a question that was not answered in time, asked while nothing else is."""
UNSTEADY = 4
"""Trials that decide it if the server fails requests at random: it answered some when repeated."""
_REFUSED = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405})
_AGAIN = frozenset({408, 409, 425, 429})
_WHOLE = ("stop", "eos_token", "stop_sequence", "end_turn", "tool_calls", None)
"""Reasons for the end of a whole answer; after ``abort``, say, a 1 may be a 10 cut short."""
_OVERLOADED = frozenset({408, 409, 425, 503, 504})
"""Said of a server that is too busy: a longer question meets it more often than a control does."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one reply.

    Attributes:
        body: of the request.
        control: the same request with a harmless reply of ours in place of the policy's.
    """

    body: dict[str, Any]
    control: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """The answer to a question, or its error.

    Attributes:
        text: the judge's words, or ``None``.
        fault: why there are none.
        refused: the server or the judge fails on this reply alone: the same question with another
            reply is answered.
        late: there was no answer in time, from a server that is well.
        seconds: from the first attempt to the end of the last.
    """

    text: str | None
    fault: str = ""
    refused: bool = False
    late: bool = False
    seconds: float = 0.0


@dataclass
class Usage:
    """The cost of a judge so far: requests answered or not, tokens as reported.

    Attributes:
        requests: sent, with those that failed.
        prompt_tokens: that the server says it read.
        completion_tokens: that the server says it wrote.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Failure:
    """An attempt without an answer.

    Attributes:
        reason: for people.
        server: the server failed; otherwise it answered, and the judge gave no verdict.
        again: another attempt may succeed.
        stop: no question will succeed (a wrong key, no such model), if the health check agrees.
        limited: there were too many requests; this one will be answered later.
        timeout: there was no answer in time.
        busy: the server says that it is overloaded.
        wait_s: how long the server asks its clients to wait.
    """

    reason: str
    server: bool = True
    again: bool = True
    stop: bool = False
    limited: bool = False
    timeout: bool = False
    busy: bool = False
    wait_s: float = 0.0

    @property
    def may_be_the_reply(self) -> bool:
        """Whether a text can cause this while others are answered, and load cannot."""
        return self.server and not (self.limited or self.timeout or self.busy)


@dataclass(frozen=True)
class Endpoint:
    """A server and the limits of requests to it.

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
            check_whole(name, getattr(self, name))
        if not self.timeout_s > 0:
            raise ValueError(f"timeout_s must be more than 0 seconds, got {self.timeout_s!r}")

    async def ask_all(
        self,
        questions: Mapping[str, Question],
        health: dict[str, Any],
        read: Callable[[str, bool], str | None],
        shortened: Callable[[dict[str, Any]], dict[str, Any]],
        note: Callable[[str, str], None],
    ) -> dict[str, EndpointAnswer]:
        """Ask all questions, some at a time.

        Args:
            questions: by key.
            health: the body of a request that every working server answers; no reply is in it.
            read: the judge's words if they hold a verdict, else ``None``; the second argument
                says whether they answer a request in the short form.
            shortened: a request that asks for the verdict and nothing else.
            note: is called with key and words as soon as there are any.

        Returns:
            What came of each; no fault raises.
        """
        try:
            key = self._key()
            client = self._client(key)
        except Exception as error:  # no package, no key, a proxy's address that is none
            return dict.fromkeys(questions, EndpointAnswer(None, str(error)))
        async with client:
            batch = _Batch(self, client, key, health, read, shortened, note)
            return await batch.ask(questions.items())

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
            raise missing_package("a judge", "judge", error) from error
        from .bounded import HEADERS, refuse_long_response

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
                event_hooks={"response": [refuse_long_response]},
            ),
        )


@dataclass
class _Batch:
    """One batch of questions: what its workers know of the server in common."""

    endpoint: Endpoint
    client: Any
    key: str
    health: dict[str, Any]
    read: Callable[[str, bool], str | None]
    shortened: Callable[[dict[str, Any]], dict[str, Any]]
    note: Callable[[str, str], None]
    guided: bool = True  # the server takes a schema for the answer, as far as is known
    stopped: str = ""  # why nothing more is asked
    failed: int = 0  # health checks in a row that failed
    unsteady: bool = False  # the server answered what it had failed before
    resume_at: float = 0.0  # the server has asked its clients to wait until then

    async def ask(self, questions: Iterable[tuple[str, Question]]) -> dict[str, EndpointAnswer]:
        waiting = iter(questions)
        found: dict[str, EndpointAnswer] = {}
        late: list[tuple[str, Question]] = []
        clock = asyncio.get_running_loop().time

        async def worker() -> None:
            for name, question in waiting:
                started = clock()
                heard = await self._one(question)
                if heard.late:
                    late.append((name, question))
                keep(name, heard, clock() - started)

        def keep(name: str, heard: EndpointAnswer, seconds: float) -> None:
            found[name] = replace(heard, seconds=seconds)
            if heard.text is not None:
                self.note(name, heard.text)

        await asyncio.gather(*(worker() for _ in range(self.endpoint.concurrency)))
        for name, question in late:  # one at a time: what we ask beside it cannot be the cause
            started, lost = clock(), found[name]
            heard = await self._shortly(question, LATE_TRIAL, replace(lost, late=False))
            keep(name, heard, lost.seconds + clock() - started)
        return found

    async def _one(self, question: Question) -> EndpointAnswer:
        """Ask one question, with as many attempts as necessary and allowed."""
        faults: list[_Failure] = []
        while not self._spent(faults):
            if faults and faults[-1].server:
                backoff = min(BACKOFF_S * 2 ** (len(faults) - 1), LONGEST_BACKOFF_S)
                await asyncio.sleep(max(backoff, faults[-1].wait_s))
            if self.stopped:
                break
            answer = await self._attempt(_reseeded(question.body, len(faults)))
            if isinstance(answer, str):
                self.failed = 0
                self.unsteady |= any(fault.may_be_the_reply for fault in faults)
                return EndpointAnswer(answer)
            faults.append(answer)
        if not faults:
            return EndpointAnswer(
                None, f"not asked, since the server failed the batch: {self.stopped}"
            )
        last, tried = faults[-1], len(faults)
        lost = EndpointAnswer(None, f"{last.reason} ({tried} attempt{'s' if tried > 1 else ''})")
        if self.stopped:
            return lost
        if last.server:
            return await self._tried(question, last, lost)
        self.failed = 0
        return await self._shortly(question, SHORT_TRIAL, lost)

    async def _shortly(
        self, question: Question, steps: str, lost: EndpointAnswer
    ) -> EndpointAnswer:
        """Ask for the verdict and nothing else; find whether it is the reply that gets none.

        A judge that thinks has no verdict in so few tokens on any reply: it is asked in full.
        """
        ways: tuple[Callable[[dict[str, Any]], Awaitable[str | _Failure]], ...]
        ways = (self._short, self._patiently)
        for ask in ways:
            best, worst = 0, 2  # of question and control: 2 a verdict, 1 words, 0 no answer
            for step in steps:
                if self.stopped:
                    return lost
                answer = await ask(question.body if step == "Q" else question.control)
                if step == "Q" and isinstance(answer, str):
                    return EndpointAnswer(answer)
                if step == "C" and _down(answer):
                    return await self._unanswered(lost)
                if isinstance(answer, _Failure) and answer.server and not answer.timeout:
                    return lost
                found = 2 if isinstance(answer, str) else int(not answer.server)
                best, worst = (
                    (max(best, found), worst) if step == "Q" else (best, min(worst, found))
                )
                if best >= worst:
                    break
            else:
                fault = f"{lost.fault}, and the same question with another reply is answered"
                return EndpointAnswer(None, fault, refused=True)
        return lost

    async def _short(self, body: dict[str, Any]) -> str | _Failure:
        """Request the verdict alone, with a schema as long as the server supports one."""
        short = self.shortened(body)
        if self.guided:
            answer = await self._patiently(short, short=True)
            if isinstance(answer, str) or answer.again or answer.stop or not answer.server:
                return answer
        del short["response_format"]
        answer = await self._patiently(short, short=True)
        self.guided &= not isinstance(answer, str)
        return answer

    async def _tried(
        self, question: Question, last: _Failure, lost: EndpointAnswer
    ) -> EndpointAnswer:
        """Find whether a question was lost to its reply, to the server, or to neither."""
        if last.may_be_the_reply:
            # a refused request was read, so one control shows that all else in it was right
            steps = TRIAL[:1] if not last.again and not last.stop else TRIAL * UNSTEADY
            for done, step in enumerate(steps):
                if done == len(TRIAL) and not self.unsteady:
                    break
                answer = await self._patiently(question.body if step == "Q" else question.control)
                if step == "C" and _down(answer, again=True):  # a closed idle connection, perhaps
                    self.unsteady = True
                    answer = await self._patiently(question.control)
                if step == "C" and _down(answer):
                    return await self._unanswered(lost)
                if step == "C":
                    self.failed = 0
                elif isinstance(answer, str):
                    self.unsteady = True
                    return EndpointAnswer(answer)
                elif not answer.may_be_the_reply:
                    return lost
            fault = f"{lost.fault}, and the same question with another reply is answered"
            return EndpointAnswer(None, fault, refused=True)
        lost = await self._unanswered(lost)
        return replace(lost, late=last.timeout and not (self.failed or self.stopped))

    async def _unanswered(self, lost: EndpointAnswer) -> EndpointAnswer:
        """Stop the batch if the server fails what no reply is part of, too."""
        answer = await self._patiently(self.health)
        self.failed = self.failed + 1 if _down(answer) else 0
        if isinstance(answer, _Failure) and (answer.stop or self.failed >= GIVE_UP_AFTER):
            self.stopped = self.stopped or answer.reason
        return lost

    async def _patiently(self, body: dict[str, Any], *, short: bool = False) -> str | _Failure:
        """Attempt once, repeating only while the server limits the rate."""
        for _ in range(LIMITED * self.endpoint.attempts):
            answer = await self._attempt(body, short=short)
            if isinstance(answer, str) or not answer.limited or self.stopped:
                break
            await asyncio.sleep(max(BACKOFF_S, answer.wait_s))
        return answer

    def _spent(self, faults: Sequence[_Failure]) -> bool:
        limited = sum(fault.limited for fault in faults)
        timeouts = sum(fault.timeout for fault in faults)
        attempts = self.endpoint.attempts
        return (
            bool(faults and not faults[-1].again)
            or len(faults) - limited >= attempts
            or limited >= LIMITED * attempts
            or timeouts >= MOST_TIMEOUTS
        )

    async def _attempt(self, body: dict[str, Any], *, short: bool = False) -> str | _Failure:
        clock = asyncio.get_running_loop().time
        while (rest := self.resume_at - clock()) > 0 and not self.stopped:
            await asyncio.sleep(rest)
        self.endpoint.usage.requests += 1
        raw = await self._sent(body)
        answer = self._text_of(raw) if isinstance(raw, bytes) else raw
        if isinstance(answer, str):
            said = " ".join(answer.split())
            none = _Failure(f"the judge gave no verdict: ...{said[-120:]!r}", server=False)
            return self.read(answer, short) or none
        if isinstance(answer, _Failure) and answer.limited:
            self.resume_at = max(self.resume_at, clock() + answer.wait_s)
        return answer

    async def _sent(self, body: dict[str, Any]) -> bytes | _Failure:
        """Return the body of the response, or the error."""
        import openai

        where, limit = self.endpoint.base_url, self.endpoint.timeout_s
        create = self.client.chat.completions.with_raw_response.create
        try:
            # httpx bounds the wait for each piece of an answer, not for the whole
            async with asyncio.timeout(limit):
                response = await create(**body)
                return bytes(response.content)
        except (TimeoutError, openai.APITimeoutError):
            return _Failure(f"no answer from {where} in {limit:g} s", timeout=True)
        except openai.APIStatusError as error:
            said = str(error) if " - " in str(error) else error.response.text or "nothing"
            return self._refused(error.status_code, error.response.headers, said)
        except openai.APIConnectionError as error:
            cause = self._without_key(str(error.__cause__ or error))
            return _Failure(f"no connection to {where}: {cause}")
        except Exception as error:  # of whatever kind: one question must not lose the batch
            cause = self._without_key(f"{type(error).__name__}: {error}")
            return _Failure(f"{where} cannot be asked: {cause}")

    def _refused(self, status: int, headers: Mapping[str, str], message: str) -> _Failure:
        reason = f"the server answered {status}: {self._without_key(message)}"
        wait_s = _retry_after(headers)
        if status in _REFUSED:
            return _Failure(reason, again=False, stop=True)
        if wait_s > LONGEST_WAIT_S:
            return _Failure(f"{reason}; it asks to wait {wait_s:g} s", again=False, stop=True)
        if status in _AGAIN or status >= 500:
            limited, busy = status == 429, status in _OVERLOADED
            return _Failure(reason, limited=limited, busy=busy, wait_s=wait_s)
        return _Failure(reason, again=False)  # this request, such as one that is too long

    def _text_of(self, raw: bytes) -> str | _Failure:
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError):
            return _Failure("the server's answer is not JSON")
        choices = row.get("choices") if isinstance(row, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(first, dict) or not isinstance(message, dict):
            return _Failure("the server's answer holds no message")
        self._count(row.get("usage"))
        ended, text = first.get("finish_reason"), message.get("content")
        if ended == "length":
            cut = "the judge was cut off before its verdict: raise max_tokens in sampling"
            return _Failure(cut, server=False)
        if ended == "content_filter":
            return _Failure("the server's content filter stopped the judge")
        if ended not in _WHOLE:
            return _Failure(f"the server broke off the judge ({ended!r:.80})")
        if not isinstance(text, str) or not text.strip():
            return _Failure("the judge said nothing", server=False)
        return text

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            for name in ("prompt_tokens", "completion_tokens"):
                if type(usage.get(name)) is int:
                    total = getattr(self.endpoint.usage, name) + usage[name]
                    setattr(self.endpoint.usage, name, total)

    def _without_key(self, message: str) -> str:
        """Return an external message on one short line, without keys that it may quote."""
        if self.key != NO_KEY:
            message = message.replace(self.key, "***")
        return " ".join(message.split())[:200]


def _down(answer: str | _Failure, *, again: bool = False) -> bool:
    """Return whether the server failed a request; with ``again``, whether repeating it may help."""
    return isinstance(answer, _Failure) and answer.server and (answer.again or not again)


def _reseeded(body: dict[str, Any], tried: int) -> dict[str, Any]:
    """Return the same question with another seed, since the first would repeat the answer."""
    if not tried or type(body.get("seed")) is not int:
        return body
    return {**body, "seed": body["seed"] + 1000 * tried}


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait; 0.0 if it does not, or gives a date."""
    try:
        seconds = float(headers.get("retry-after", "0"))
    except ValueError:
        return 0.0
    return seconds if seconds > 0 else 0.0
