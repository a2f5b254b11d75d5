"""Run an environment in threads: if it raises, only what it raised for has no score."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from ..envs import Completion, State, Task, TextEnv, Turn
from ..envs.batches import BatchingQueue
from ..lone_replies import OWN, played
from ..verifiers import Rubric, Status, Verdict, Verifier
from .limits import Refused, ServiceLimits, too_long
from .schemas import Outcome, TaskBody, VerdictBody
from .sessions import Session

log = logging.getLogger("assay.service")
FEW = 64
"""Replies or tasks of a message that may be done without a thread."""

_Piece = TypeVar("_Piece")
_Found = TypeVar("_Found")


class WorkQueue:
    """Run an environment's code in threads; the waiting work is bounded.

    Args:
        limits: how many threads, how much may wait, and how long an answer may take.

    Attributes:
        waiting: replies that wait, or are worked on.
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self.limits, self.waiting = limits, 0
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="assay-serve")

    def batches(
        self, work: Callable[[list[_Piece]], Sequence[_Found]]
    ) -> BatchingQueue[_Piece, _Found]:
        """Work of one kind; pieces that are ready at one time go together."""
        return BatchingQueue(work, self._pool, self.limits.threads, self.limits.batch)

    async def call(self, weight: int, call: Callable[[], _Found]) -> _Found:
        """Call a function in a thread.

        Raises:
            Refused: the call did, or raised (500); or as for :meth:`run`.
        """

        def called() -> _Found:
            try:
                return call()
            except Refused:
                raise
            except Exception as error:  # also StopIteration, which a future cannot hold
                log.exception("an environment raised")
                message = f"the environment raised {type(error).__name__}"
                raise Refused(500, "environment", message) from error

        loop = asyncio.get_running_loop()
        return await self.run(weight, lambda: loop.run_in_executor(self._pool, called))

    async def run(self, weight: int, begin: Callable[[], asyncio.Future[_Found]]) -> _Found:
        """Begin work and await it; it goes on if nobody awaits it any more.

        Raises:
            Refused: 503 if too much waits already, 504 if it takes too long.
        """
        self.room_for(weight)
        work = begin()
        self.waiting += weight
        work.add_done_callback(lambda _: self._end(weight, work))
        await asyncio.wait((work,), timeout=self.limits.request_s)
        if not work.done():
            message = f"there is no answer after {self.limits.request_s:g} s"
            raise Refused(504, "late", message, retry_s=5)
        return work.result()

    def room_for(self, weight: int) -> None:
        """Refuse work if too much waits already.

        Raises:
            Refused: 503.
        """
        if self.waiting and self.waiting + weight > self.limits.queue:
            raise Refused(
                503,
                "busy",
                f"{self.waiting} replies are waiting already, and {self.limits.queue} may: come "
                "back later",
                retry_s=1,
            )

    def close(self) -> None:
        """Let what has begun end, and begin nothing more."""
        self._pool.shutdown(cancel_futures=True)

    def _end(self, weight: int, work: asyncio.Future[Any]) -> None:
        self.waiting -= weight
        if not work.cancelled():
            work.exception()  # else asyncio logs an exception that is never awaited


class PendingStep(NamedTuple):
    """A step that is being taken."""

    session: Session
    reply: str
    truncated: bool

    @property
    def state(self) -> State:
        """The episode, if it is in progress; a finished one accepts no step."""
        assert self.session.state is not None  # noqa: S101  # for the type
        return self.session.state


class Grader:
    """Take steps and judge replies, those of several requests in one batch.

    Args:
        env: takes them, and judges; from several threads.
        limits: a longer conversation is cut off, and a longer reply not judged.
        serialize: makes JSON of a reply's verdict.
    """

    def __init__(
        self, env: TextEnv, limits: ServiceLimits, serialize: Callable[[Verdict, str], VerdictBody]
    ) -> None:
        self.env, self.limits, self._serialize = env, limits, serialize
        kind = type(env)
        respond = kind.respond is not TextEnv.respond and kind.advance is TextEnv.advance
        self._one_by_one = respond and kind.respond_many is TextEnv.respond_many
        names = (*OWN, "_take")
        own = any(getattr(kind, name) is not getattr(TextEnv, name) for name in names)
        self._cheap = not own and _is_cheap(env.rubric)

    def is_cheap(self, replies: Sequence[str]) -> bool:
        """Return whether these replies are judged sooner than a thread begins."""
        return self._cheap and len(replies) <= FEW and sum(map(len, replies)) <= 4096

    def take(self, requests: list[list[PendingStep]]) -> list[list[Outcome]]:
        """Take the steps of several requests, and judge all that is over in one batch."""
        verdicts: dict[Session, Verdict] = {}
        for steps in requests:
            self._advance(steps, verdicts)
        everything = [step for steps in requests for step in steps]
        over = [s for s in everything if s.state.ended and s.session not in verdicts]
        judged = self._judge([s.state for s in over], self.env.verdicts, "judging")
        verdicts.update(zip((s.session for s in over), judged, strict=True))
        return [[self._outcome(s, verdicts.get(s.session)) for s in steps] for steps in requests]

    def score(self, requests: list[tuple[Sequence[str], Sequence[Any]]]) -> list[list[Verdict]]:
        """Judge the replies of several requests in one batch."""
        pairs = [pair for replies, golds in requests for pair in zip(replies, golds, strict=True)]
        judged = iter(
            self._judge(
                [pair for pair in pairs if self._unread(pair[0]) is None],
                lambda some: self.env.rubric.verify_many(*map(list, zip(*some, strict=True))),
                "its rubric",
            )
        )
        found = iter([self._unread(reply) or next(judged) for reply, _ in pairs])
        return [[next(found) for _ in replies] for replies, _ in requests]

    def is_able(self) -> bool:
        """Return whether a reply, a passing one if known, gets a score.

        Of an environment of several turns the first turn is taken too, if its reply is known: its
        tools may need the sandbox.
        """
        env, task = self.env, self.env.task(0)
        if not played(env):
            reply = env.solve(env.begin(task)) or ""
            return env.rubric.verify(reply, task.reference).score is not None
        oracle = env.rubric.oracle_reply(task.reference)
        if oracle is not None and env.rubric.verify(oracle, task.reference).score is None:
            return False
        if task.solution is None and type(env).solve is TextEnv.solve:
            return True  # starting an episode may have side effects
        state = env.begin(task)
        known = env.solve(state)
        if known is not None:
            env.advance([state], [Completion(known)])
        return state.verdict is None or state.verdict.score is not None

    def _unread(self, reply: str) -> Verdict | None:
        """Return the verdict of a reply that is too long to be judged."""
        most = self.limits.reply_chars
        if len(reply) <= most:
            return None
        return too_long(len(reply), most, "characters", self.env.rubric.score_range[0])

    def _judge(
        self, items: list[Any], judge: Callable[[list[Any]], Sequence[Verdict]], what: str
    ) -> list[Verdict]:
        """Judge items; if that raises for one, the others still have their verdicts."""
        if not items:
            return []
        try:
            found = list(judge(items))
            if len(found) != len(items):
                raise ValueError(f"expected {len(items)} verdicts, got {len(found)}")
            return found
        except Exception as error:
            if len(items) > 1:
                return [self._judge([item], judge, what)[0] for item in items]
            return [self._fault(error, what)]

    def _fault(self, error: Exception, what: str) -> Verdict:
        """Log an exception; return the verdict, which must not quote it: it may hold the answer."""
        log.error("%s raised in %s", self.env.name, what, exc_info=error)
        why = f"the environment raised {type(error).__name__}"
        return Verdict.fault(Status.VERIFIER_ERROR, why)

    def _advance(self, steps: list[PendingStep], verdicts: dict[Session, Verdict]) -> None:
        """Take the steps of one request; a reply that is too long ends its episode."""
        read = []
        for step in steps:
            unread = self._unread(step.reply)
            if unread is None:
                read.append(step)
            else:
                step.state.hear(Completion(""))
                step.state.take(Turn.end(unread))
        for some in [[step] for step in read] if self._one_by_one else [read]:
            self._answer(some, verdicts)

    def _answer(self, steps: list[PendingStep], verdicts: dict[Session, Verdict]) -> None:
        """Take some steps; if that raises, these episodes end without a score."""
        states = [step.state for step in steps]
        replies = [Completion(step.reply, "length" if step.truncated else "stop") for step in steps]
        try:
            self.env.advance(states, replies)
        except Exception as error:
            fault = self._fault(error, "a turn")
            for step in steps:
                step.state.ended = "done"
                verdicts[step.session] = fault
            return
        for state in states:
            size = sum(len(m["content"]) for m in state.messages)
            if not state.ended and size > self.limits.episode_chars:
                state.ended = "truncated"

    def _outcome(self, step: PendingStep, verdict: Verdict | None) -> Outcome:
        """Return the outcome of a step."""
        session, state = step.session, step.state
        after = [i for i, m in enumerate(state.turns) if m["role"] == "assistant"]
        return {
            "episode": session.id,
            "turn": session.turn,
            "messages": [{**m} for m in state.turns[after[-1] + 1 :]] if after else [],
            "reward": _finite(state.step_rewards[-1]) if state.step_rewards else None,
            "done": state.ended == "done",
            "truncated": state.ended == "truncated",
            "verdict": None if verdict is None else self._serialize(verdict, step.reply),
        }


def serialize_task(task: Task, index: int | None) -> TaskBody:
    """Return a task's prompt, id and metadata; no reference, no solution."""
    return {
        "id": task.id,
        "index": index,
        "messages": [{**m} for m in task.messages],
        "metadata": _jsonable(task.metadata) if task.metadata else {},
    }


def serialize_verdict(verdict: Verdict, *, reasons: bool) -> VerdictBody:
    """Return a verdict; its reason may quote the known answer."""
    return {
        "status": verdict.status.value,
        "score": verdict.score,
        "reason": verdict.reason if reasons else "",
        "extracted": verdict.extracted,
        "parts": {**verdict.parts},
    }


def _jsonable(value: Any) -> Any:
    """Return what JSON can hold: no NaN, and other objects as their text."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float):
        return _finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _finite(reward: float | None) -> float | None:
    """Return a reward that JSON can hold: ``None`` for NaN and infinities."""
    return None if reward is None or not math.isfinite(reward) else float(reward)


def _is_cheap(verifier: Verifier) -> bool:
    """Return whether a verifier's very class says so, not one that it is derived from."""
    if type(verifier) is Rubric:
        parts: Iterable[Verifier] = verifier.parts.values()
        return all(map(_is_cheap, parts))
    return bool(vars(type(verifier)).get("is_cheap"))
