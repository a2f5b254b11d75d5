"""The service behind all routes: limits, scoring and episodes."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from gymnasium.utils import seeding

from ..envs import Rows, State, Task, TextEnv
from ..envs.tools import ToolEnv
from ..lone_replies import played
from ..verifiers import Verdict
from . import messages
from .identity import PROTOCOL, identity
from .in_flight import InFlightBytes
from .limits import ServiceLimits
from .metrics import Metrics
from .queue import WorkQueue
from .refused import Refused
from .runner import FEW, EpisodeRunner, PendingStep
from .serialize import parse_episodes, serialize_task, serialize_verdict
from .sessions import Session, SessionBudget, SessionStore, earlier

_log = logging.getLogger("assay.service")
_Found = TypeVar("_Found")


class EnvironmentService:
    """Answer requests for one environment, over HTTP and WebSocket alike.

    Args:
        env: what is served; it judges and responds from several threads.
        limits: bounds of everything.
        references: judge replies against references that clients bring.
        reasons: return the reasons of verdicts, which may quote the known answer.
        share: of what may be held, for one token.
    """

    def __init__(
        self,
        env: TextEnv,
        limits: ServiceLimits,
        *,
        references: bool = False,
        reasons: bool = False,
        share: float = 1.0,
    ) -> None:
        self.env, self.limits, self.played = env, limits, played(env)
        self.references, self.reasons = references, reasons
        self.identity = identity(env)
        self.budget = SessionBudget(limits, share)
        self.in_flight = InFlightBytes(limits.under_way_mib * 2**20)
        self.metrics = Metrics()
        self.queue = WorkQueue(limits)
        self.new_prefix(0)
        self._stores: dict[str, SessionStore] = {}
        self._probe_pool = ThreadPoolExecutor(1, thread_name_prefix="assay-ready")
        self._runner = EpisodeRunner(env, limits, self._verdict)
        self._turns = self.queue.batches(self._runner.take)
        self._scores = self.queue.batches(self._runner.score)
        self._ready: tuple[float, bool] | None = None
        kind = type(env)
        self._looks_up = (
            isinstance(env.source, Rows)
            and kind.task is TextEnv.task
            and kind.begin is TextEnv.begin
        )

    def new_prefix(self, worker: int) -> None:
        """Begin the ids of sessions with the worker that holds them, and a mark of its process."""
        self.prefix = f"{worker}.{secrets.token_hex(3)}."

    def store_of(self, owner: str) -> SessionStore:
        """Return the sessions that a token has over HTTP."""
        if owner not in self._stores:
            self._stores[owner] = SessionStore(
                self.budget, owner, lambda: self.prefix + secrets.token_urlsafe(16)
            )
        return self._stores[owner]

    async def tasks(self, asked: messages.Tasks) -> dict[str, Any]:
        """Return tasks without their references."""
        self.allow("tasks", len(asked.tasks))

        def find() -> list[dict[str, Any]]:
            return [serialize_task(t, index) for t, index in self._find(asked.tasks)]

        return {"tasks": await self._found(len(asked.tasks), find)}

    async def score(self, asked: messages.Score) -> dict[str, Any]:
        """Judge replies."""
        self.allow("replies", len(asked.replies))
        keys = asked.tasks
        if (keys is None) == (asked.references is None):
            raise Refused(422, "invalid", "give either tasks or references, one for each reply")
        if asked.references is not None and not self.references:
            raise Refused(
                403,
                "references",
                "this server judges replies to its own tasks alone: give tasks, or have it "
                "started with --allow-references",
            )
        if len(keys if keys is not None else asked.references or ()) != len(asked.replies):
            raise Refused(422, "invalid", "give one task, or one reference, for each reply")
        if keys is not None and self.played:
            raise Refused(
                422,
                "turns",
                f"{self.env.name} judges episodes as they are played ({', '.join(self.played)}), "
                "not lone replies: begin an episode, and step",
            )
        weight = len(asked.replies)
        if keys is None:
            golds = asked.references or []
        else:
            golds = await self._found(
                weight, lambda: [task.reference for task, _ in self._find(keys)]
            )
        work = (asked.replies, golds)
        if self._runner.is_quick(asked.replies) and keys is not None:
            verdicts = self._runner.score([work])[0]
        else:  # a client's own references may be of any length
            verdicts = await self.queue.run(weight, lambda: self._scores.put(work))
        pairs = zip(verdicts, asked.replies, strict=True)
        return {"verdicts": [self._verdict(verdict, reply) for verdict, reply in pairs]}

    async def reset(self, asked: messages.Reset, store: SessionStore) -> dict[str, Any]:
        """Begin episodes."""
        tasks = asked.count if asked.tasks is None else len(asked.tasks)
        weight = tasks * asked.group_size
        self.allow("episodes", weight)
        self.budget.room_for(store.owner, weight)

        def begin() -> tuple[list[tuple[Task, int | None]], list[State]]:
            found = self._find(asked.tasks if asked.tasks is not None else self._drawn(asked))
            return found, [self.env.begin(t) for t, _ in found for _ in range(asked.group_size)]

        found, states = await self._found(weight, begin)
        begun = []
        for place, session in enumerate(store.add(states)):
            index = found[place // asked.group_size][1]
            begun.append({"episode": session.id, "task": serialize_task(states[place].task, index)})
        return {"episodes": begun}

    async def begin_next(self, asked: messages.Reset | None, store: SessionStore) -> dict[str, Any]:
        """Begin the episodes that a message with steps asks for; no refusal costs an outcome."""
        try:
            return {} if asked is None else await self.reset(asked, store)
        except Refused as refused:
            self.metrics.refused(refused)
            return {"not_begun": refused.to_json()["error"]}

    async def step(
        self, asked: Sequence[messages.Step], store: SessionStore
    ) -> list[dict[str, Any]]:
        """Take a turn in each episode; a step that cannot be taken has an error of its own."""
        self.budget.room_for(store.owner, 0, sum(len(step.reply) for step in asked))
        self.queue.room_for(len(asked))
        outcomes: list[dict[str, Any]] = [{} for _ in asked]
        taken: list[PendingStep] = []
        places: list[int] = []
        again: list[tuple[int, Session]] = []
        for place, step in enumerate(asked):
            session = store.get(step.episode)
            if session is not None and session.is_taking(step):
                again.append((place, session))
                continue
            try:
                if session is None:
                    raise self._missing(step.episode)
                outcomes[place] = earlier(session, step) or {}
            except Refused as refused:
                outcomes[place] = {"episode": step.episode, **refused.to_json()}
            if session is not None and not outcomes[place]:
                session.begin(step.reply)
                taken.append(PendingStep(session, step.reply, step.truncated))
                places.append(place)
        if taken:
            found = await self._take(taken, store)
            for place, outcome in zip(places, found, strict=True):
                outcomes[place] = outcome
        for place, session in again:
            outcomes[place] = await self._once_taken(session, asked[place])
        return outcomes

    async def groups(self, asked: messages.Groups) -> dict[str, Any]:
        """Add the group's rewards to episodes that were judged one by one."""
        rubric = self.env.group_rubric
        if rubric is None:
            raise Refused(422, "groups", f"{self.env.name} has no rewards that depend on the group")
        weight = sum(len(group.episodes) for group in asked.groups)
        self.allow("episodes", weight)

        def judge() -> list[list[Verdict]]:
            tasks = self._find([group.task for group in asked.groups])
            return [
                [e.verdict for e in rubric.judged(task, parse_episodes(task, group))]
                for (task, _), group in zip(tasks, asked.groups, strict=True)
            ]

        found = await self.queue.call(weight, judge)
        return {
            "groups": [
                [serialize_verdict(v, reasons=self.reasons) for v in group] for group in found
            ]
        }

    def close(self, ids: Sequence[str], store: SessionStore) -> int:
        """Forget episodes; return how many there were."""
        return sum(map(store.forget, ids))

    def describe(self) -> dict[str, Any]:
        """Return what is served, and its limits."""
        from .. import __version__

        limits = ("body_bytes", "batch", "reply_chars", "episode_chars", "in_flight")
        return {
            "name": self.env.name,
            "sha256": self.identity,
            "protocol": PROTOCOL,
            "size": self.env.source.size,
            "split": self.env.source.split,
            "max_turns": self.env.max_turns,
            "lone_replies": not self.played,
            "group_rubric": self.env.group_rubric is not None,
            "score_range": self.env.rubric.score_range,
            "tools": self.env.schemas if isinstance(self.env, ToolEnv) else None,
            "references": self.references,
            "reasons": self.reasons,
            "version": __version__,
            "limits": {name: getattr(self.limits, name) for name in limits},
        }

    async def ready(self, fresh_s: float = 15.0, within_s: float = 30.0) -> bool:
        """Return whether replies can be judged: one is, sandbox and all, if none was lately."""
        now = time.monotonic()
        if self._ready is None or now - self._ready[0] > fresh_s:
            self._ready = (now, False)  # one probe at a time
            try:
                loop = asyncio.get_running_loop()
                probe = loop.run_in_executor(self._probe_pool, self._runner.is_able)
                found = await asyncio.wait_for(probe, within_s)
            except Exception as error:
                _log.warning("the probe failed: %s", type(error).__name__)
                found = False
            self._ready = (time.monotonic(), found)
        return self._ready[1]

    def observe(self) -> None:
        """Set the gauges of what is in memory."""
        gauges = self.metrics.gauges
        gauges["episodes"].set(self.budget.episodes.total())
        gauges["held_bytes"].set(4 * self.budget.chars.total())
        gauges["under_way_bytes"].set(self.in_flight.held)
        gauges["queue"].set(self.queue.waiting)

    def shut(self) -> None:
        """Let what has begun end, and give back what the environment holds."""
        self.queue.close()
        self._probe_pool.shutdown(cancel_futures=True)
        self.env.close()

    async def _found(self, weight: int, find: Callable[[], _Found]) -> _Found:
        """Find tasks, or begin episodes; in a thread unless few are looked up.

        Raises:
            Refused: there is no such task, or the environment raised.
        """
        if self._looks_up and weight <= FEW:
            return find()
        return await self.queue.call(weight, find)

    async def _take(self, taken: list[PendingStep], store: SessionStore) -> list[dict[str, Any]]:
        """Take steps; their sessions are free again when that is over."""

        def begin() -> asyncio.Future[list[dict[str, Any]]]:
            turns = self._turns.put(taken)
            for step in taken:
                step.session.taken = turns
            turns.add_done_callback(settle)
            return turns

        def settle(_: object) -> None:
            for step in taken:
                store.settle(step.session)

        if not self._runner.is_quick([step.reply for step in taken]):
            return await self.queue.run(len(taken), begin)
        try:
            return self._runner.take([taken])[0]
        finally:
            settle(None)

    async def _once_taken(self, session: Session, step: messages.Step) -> dict[str, Any]:
        """Return the outcome of a step that was sent again while it was being taken."""
        try:
            if session.taken is not None:
                await asyncio.wait((session.taken,), timeout=self.limits.request_s)
            answered = earlier(session, step)
            if answered is None:
                raise Refused(500, "fault", "the step was not taken")
        except Refused as refused:
            return {"episode": session.id, **refused.to_json()}
        return answered

    def _verdict(self, verdict: Verdict, reply: str) -> dict[str, Any]:
        self.metrics.judged(verdict.status)
        unread = len(reply) > self.limits.reply_chars  # its reason quotes no answer
        return serialize_verdict(verdict, reasons=self.reasons or unread)

    def _find(self, keys: Sequence[int | str]) -> list[tuple[Task, int | None]]:
        """Find tasks by number or id.

        Raises:
            Refused: there is no such task.
        """
        source = self.env.source
        found: list[tuple[Task, int | None]] = []
        for key in keys:
            if isinstance(key, str):
                index = source.index.get(key) if isinstance(source, Rows) else None
                if index is None:
                    raise Refused(404, "task", f"there is no task with the id {key[:100]!r}")
            else:
                index = key
            try:
                found.append((self.env.task(index), index))
            except IndexError as error:
                raise Refused(
                    404, "task", f"there is no task {index}: there are {source.size}"
                ) from error
        return found

    def _drawn(self, asked: messages.Reset) -> list[int]:
        rng = seeding.np_random(secrets.randbits(62) if asked.seed is None else asked.seed)[0]
        return [self.env.source.draw(rng) for _ in range(asked.count)]

    def _missing(self, id_: str) -> Refused:
        """Return why there is no such session."""
        if "." in id_ and not id_.startswith(self.prefix):
            return Refused(
                404,
                "lost",
                "the server process that held this episode has ended, and the episode with it: "
                "begin another",
            )
        return Refused(
            404,
            "episode",
            "there is no such episode here: it was closed or idle for too long; begin another",
        )

    def allow(self, what: str, count: int) -> None:
        """Refuse more than one request may have.

        Raises:
            Refused: 413.
        """
        if count > self.limits.batch:
            raise Refused(
                413,
                "batch",
                f"{count} {what} are more than the {self.limits.batch} of one request: split them",
            )
