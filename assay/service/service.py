"""The service behind all routes: tasks, scores and episodes, over HTTP and WebSocket alike."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from gymnasium.utils import seeding

from ..envs import Episode, Generated, Rows, Span, State, Task, TextEnv
from ..envs.datasets.mixed import Mixed
from ..envs.tools import ToolEnv
from ..lone_replies import played
from ..sandbox.redaction import redact
from ..verifiers import Verdict
from . import schemas
from .grading import FEW, Grader, PendingStep, WorkQueue, log, serialize_task, serialize_verdict
from .limits import InFlightBytes, Refused, ServiceLimits
from .metrics import Metrics
from .schemas import Outcome
from .sessions import Client, Session, SessionStore

_Found = TypeVar("_Found")


class EnvironmentService:
    """Answer requests for one environment.

    Args:
        env: what is served; it judges and responds from several threads.
        limits: bounds of everything.
        references: judge replies against references that clients bring.
        reasons: return the reasons of verdicts, which may quote the known answer.
        share: of what may be held, for one token.

    Attributes:
        mark: of this process, at the beginning of its sessions' ids.
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
        self.identity, self.mark = identity(env), secrets.token_hex(4)
        self.sessions = SessionStore(limits, share)
        self.in_flight = InFlightBytes(limits.under_way_mib * 2**20)
        self.metrics = Metrics()
        self.queue = WorkQueue(limits)
        self._clients: dict[str, Client] = {}
        self._probe_pool = ThreadPoolExecutor(1, thread_name_prefix="assay-ready")
        self._grader = Grader(env, limits, self._verdict)
        self._turns = self.queue.batches(self._grader.take)
        self._scores = self.queue.batches(self._grader.score)
        self._ready = (-1e9, False)
        kind = type(env)
        inherited = kind.task is TextEnv.task and kind.begin is TextEnv.begin
        self._looks_up = inherited and isinstance(env.source, Rows)

    def client_of(self, owner: str) -> Client:
        """Return the holder of the sessions that a token has over HTTP."""
        return self._clients.setdefault(owner, Client(owner, f"{self.mark}."))

    async def answer(self, asked: schemas.Message, client: Client) -> Any:
        """Answer a message of a WebSocket."""
        match asked:
            case schemas.Score():
                return await self.score(asked)
            case schemas.Reset():
                return await self.reset(asked, client)
            case schemas.Steps():
                outcomes: Any = {"outcomes": await self.step(asked.steps, client)}
                return outcomes | await self.begin_next(asked.reset, client)
            case schemas.Tasks():
                return await self.tasks(asked)
            case schemas.Groups():
                return await self.groups(asked)
            case schemas.Close():
                return {"closed": self.close(asked.episodes, client)}
        raise TypeError(f"no message: {type(asked).__name__}")

    async def tasks(self, asked: schemas.Tasks) -> schemas.TasksBody:
        """Return tasks without their references."""
        self.allow("tasks", len(asked.tasks))

        def find() -> list[schemas.TaskBody]:
            return [serialize_task(t, index) for t, index in self._find(asked.tasks)]

        return {"tasks": await self._found(len(asked.tasks), find)}

    async def score(self, asked: schemas.Score) -> schemas.Verdicts:
        """Judge replies."""
        self.allow("replies", len(asked.replies))
        keys, golds, weight = asked.tasks, asked.references, len(asked.replies)
        if (keys is None) == (golds is None):
            raise Refused(422, "invalid", "give either tasks or references, one for each reply")
        if golds is not None and not self.references:
            raise Refused(
                403,
                "references",
                "this server judges replies to its own tasks alone: give tasks, or have it "
                "started with --allow-references",
            )
        if len(keys if keys is not None else golds or ()) != weight:
            raise Refused(422, "invalid", "give one task, or one reference, for each reply")
        if keys is not None:
            if self.played:
                raise Refused(
                    422,
                    "turns",
                    f"{self.env.name} judges episodes as they are played "
                    f"({', '.join(self.played)}), not lone replies: begin an episode, and step",
                )
            golds = await self._found(weight, lambda: [t.reference for t, _ in self._find(keys)])
        work = asked.replies, golds or []
        if keys is not None and self._grader.is_cheap(asked.replies):
            verdicts = self._grader.score([work])[0]
        else:  # a client's own references may be of any length
            verdicts = await self.queue.run(weight, lambda: self._scores.put(work))
        pairs = zip(verdicts, asked.replies, strict=True)
        return {"verdicts": [self._verdict(verdict, reply) for verdict, reply in pairs]}

    async def reset(self, asked: schemas.Reset, client: Client) -> schemas.Episodes:
        """Begin episodes."""
        weight = asked.group_size * (asked.count if asked.tasks is None else len(asked.tasks))
        self.allow("episodes", weight)
        self.sessions.room_for(client.owner, weight)

        def begin() -> list[tuple[int | None, State]]:
            found = self._find(asked.tasks if asked.tasks is not None else self._drawn(asked))
            return [(i, self.env.begin(t)) for t, i in found for _ in range(asked.group_size)]

        begun = await self._found(weight, begin)
        held = self.sessions.add(client, [state for _, state in begun])
        return {
            "episodes": [
                {"episode": session.id, "task": serialize_task(state.task, index)}
                for session, (index, state) in zip(held, begun, strict=True)
            ]
        }

    async def begin_next(self, asked: schemas.Reset | None, client: Client) -> dict[str, Any]:
        """Begin the episodes that a message with steps asks for; no refusal costs an outcome."""
        try:
            return {} if asked is None else {**await self.reset(asked, client)}
        except Refused as refused:
            self.metrics.refused(refused)
            return {"not_begun": refused.to_json()["error"]}

    async def step(self, asked: Sequence[schemas.Step], client: Client) -> list[Outcome]:
        """Take a turn in each episode; a step that cannot be taken has an error of its own."""
        self.allow("steps", len(asked))
        self.sessions.room_for(client.owner, 0, sum(len(step.reply) for step in asked))
        self.queue.room_for(len(asked))
        found: list[Outcome | asyncio.Future[Outcome] | None] = []
        taken: list[PendingStep] = []
        for step in asked:
            try:
                session = self._session(step.episode, client)
                if session.begin(step):
                    taken.append(PendingStep(session, step.reply, step.truncated))
                found.append(session.outcome)
            except Refused as refused:
                found.append({"episode": step.episode, "error": refused.to_json()["error"]})
        if taken:
            await self._take(taken)
        again = [one for one in found if isinstance(one, asyncio.Future) and not one.done()]
        if again:
            await asyncio.wait(again, timeout=self.limits.request_s)
        return [self._taken(step, one) for step, one in zip(asked, found, strict=True)]

    async def groups(self, asked: schemas.Groups) -> schemas.GroupsBody:
        """Add the group's rewards to episodes that were judged one by one."""
        rubric = self.env.group_rubric
        if rubric is None:
            raise Refused(422, "groups", f"{self.env.name} has no rewards that depend on the group")
        weight = sum(len(group.episodes) for group in asked.groups)
        self.allow("episodes", weight)

        def judge() -> list[list[Verdict]]:
            tasks = self._find([group.task for group in asked.groups])
            return [
                [e.verdict for e in rubric.judged(task, _episodes(task, group))]
                for (task, _), group in zip(tasks, asked.groups, strict=True)
            ]

        found = await self.queue.call(weight, judge)
        return {
            "groups": [[serialize_verdict(v, reasons=self.reasons) for v in vs] for vs in found]
        }

    def close(self, ids: Sequence[str], client: Client) -> int:
        """Forget episodes; return how many there were."""
        self.allow("episodes", len(ids))
        return sum(self.sessions.forget(client, id_) for id_ in ids)

    def describe(self) -> schemas.Described:
        """Return what is served, and its limits."""
        from .. import __version__

        env, names = self.env, ("body_bytes", "batch", "reply_chars", "episode_chars", "in_flight")
        return {
            "name": env.name,
            "sha256": self.identity,
            "protocol": schemas.PROTOCOL,
            "size": env.source.size,
            "split": env.source.split,
            "max_turns": env.max_turns,
            "lone_replies": not self.played,
            "group_rubric": env.group_rubric is not None,
            "score_range": env.rubric.score_range,
            "tools": env.schemas if isinstance(env, ToolEnv) else None,
            "references": self.references,
            "reasons": self.reasons,
            "version": __version__,
            "limits": {name: getattr(self.limits, name) for name in names},
        }

    async def ready(self, fresh_s: float = 15.0, within_s: float = 30.0) -> bool:
        """Return whether replies can be judged: one is, sandbox and all, if none was lately."""
        if time.monotonic() - self._ready[0] > fresh_s:
            self._ready = (time.monotonic(), False)  # one probe at a time
            try:
                loop = asyncio.get_running_loop()
                probe = loop.run_in_executor(self._probe_pool, self._grader.is_able)
                found = await asyncio.wait_for(probe, within_s)
            except Exception as error:
                log.warning("the probe failed: %s", type(error).__name__)
                found = False
            self._ready = (time.monotonic(), found)
        return self._ready[1]

    def observe(self) -> None:
        """Set the gauges of what is in memory."""
        gauges = self.metrics.gauges
        gauges["episodes"].set(self.sessions.episodes.total())
        gauges["held_bytes"].set(4 * self.sessions.chars.total())
        gauges["under_way_bytes"].set(self.in_flight.held)
        gauges["queue"].set(self.queue.waiting)

    def shut(self) -> None:
        """Let what has begun end, and close the environment."""
        self.queue.close()
        self._probe_pool.shutdown(cancel_futures=True)
        self.env.close()

    def allow(self, what: str, count: int) -> None:
        """Refuse more than one request may have.

        Raises:
            Refused: 413.
        """
        if count > self.limits.batch:
            most = f"the {self.limits.batch} of one request"
            raise Refused(413, "batch", f"{count} {what} are more than {most}: split them")

    async def _found(self, weight: int, find: Callable[[], _Found]) -> _Found:
        """Find tasks, or begin episodes; in a thread unless few are looked up."""
        if self._looks_up and weight <= FEW:
            return find()
        return await self.queue.call(weight, find)

    async def _take(self, taken: list[PendingStep]) -> None:
        """Take steps; their sessions are free again when that is over."""

        def settle(work: asyncio.Future[list[Outcome]]) -> None:
            failed = work.cancelled() or work.exception() is not None
            for place, step in enumerate(taken):
                self.sessions.settle(step.session, None if failed else work.result()[place])

        def begin() -> asyncio.Future[list[Outcome]]:
            turns = self._turns.put(taken)
            turns.add_done_callback(settle)
            return turns

        if not self._grader.is_cheap([step.reply for step in taken]):
            await self.queue.run(len(taken), begin)
            return
        work: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        try:
            work.set_result(self._grader.take([taken])[0])
        except Exception as error:
            work.set_exception(error)
        settle(work)
        await work

    def _taken(
        self, step: schemas.Step, outcome: Outcome | asyncio.Future[Outcome] | None
    ) -> Outcome:
        """Return the outcome of a step, or an error if it failed, or takes too long."""
        if isinstance(outcome, asyncio.Future):
            outcome = outcome.result() if outcome.done() and not outcome.cancelled() else None
        if outcome is not None:
            return outcome
        late = Refused(504, "late", "the step was not taken: send it again")
        return {"episode": step.episode, "error": late.to_json()["error"]}

    def _verdict(self, verdict: Verdict, reply: str) -> schemas.VerdictBody:
        self.metrics.judged(verdict.status)
        unread = len(reply) > self.limits.reply_chars  # its reason quotes no answer
        return serialize_verdict(verdict, reasons=self.reasons or unread)

    def _find(self, keys: Sequence[int | str]) -> list[tuple[Task, int | None]]:
        """Find tasks by number or id; refuse if there is no such task."""
        source = self.env.source
        found: list[tuple[Task, int | None]] = []
        for key in keys:
            index = key if isinstance(key, int) else None
            if isinstance(key, str):
                index = source.index.get(key) if isinstance(source, Rows) else None
            if index is None:
                raise Refused(404, "task", f"there is no task with the id {str(key)[:100]!r}")
            try:
                found.append((self.env.task(index), index))
            except IndexError as error:
                message = f"there is no task {index}: there are {source.size}"
                raise Refused(404, "task", message) from error
        return found

    def _drawn(self, asked: schemas.Reset) -> list[int]:
        rng = seeding.np_random(secrets.randbits(62) if asked.seed is None else asked.seed)[0]
        return [self.env.source.draw(rng) for _ in range(asked.count)]

    def _session(self, id_: str, client: Client) -> Session:
        """Return a client's session; refuse if there is none."""
        session = self.sessions.get(client, id_)
        if session is not None:
            return session
        if "." in id_ and not id_.startswith(f"{self.mark}."):
            raise Refused(
                404,
                "lost",
                "the server process that held this episode has ended, and the episode with it: "
                "begin another",
            )
        message = "there is no such episode here: it was closed or idle for too long; begin another"
        raise Refused(404, "episode", message)


def identity(env: TextEnv, rows: int = 2000, made: int = 16) -> str:
    """Hash an environment's tasks, verifiers and version, as 16 hexadecimal digits.

    Servers with equal hashes have equal tasks and scores. The hash covers every id of rows and the
    content of up to 2,000; the first 16 tasks of a generator; only the type and size of other
    sources, since making a task may have side effects.
    """
    from .. import __version__

    def options(rubric: Any) -> Any:
        try:
            return redact(rubric.to_json())
        except Exception:  # a user's rubric without serialisable options
            return type(rubric).__qualname__

    source = env.source
    tasks: list[Task] = []
    if isinstance(source, Rows):
        tasks = list(source.tasks[:: -(-len(source.tasks) // rows)])
    elif isinstance(source, Generated | Mixed):
        size = made if source.size is None else min(made, source.size)
        tasks = [source.task(index) for index in range(size)]
    whole = {
        "version": __version__,
        "environment": [type(env).__qualname__, env.name, env.max_turns],
        "rubric": options(env.rubric),
        "group_rubric": None if env.group_rubric is None else options(env.group_rubric),
        "source": [type(source).__qualname__, source.size],
        "tasks": [task.to_json() for task in tasks],
        "ids": list(source.index) if isinstance(source, Rows) else None,
    }
    text = json.dumps(whole, sort_keys=True, default=lambda value: type(value).__qualname__)
    return hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", text).encode()).hexdigest()[:16]


def _episodes(task: Task, group: schemas.GroupGiven) -> list[Episode]:
    """Return the episodes of a client's message, as a group rubric takes them."""
    return [
        Episode(
            task_id=task.id,
            turns=tuple(given.turns),
            verdict=Verdict(**{name: getattr(given.verdict, name) for name in _VERDICT}),
            step_rewards=tuple(given.step_rewards),
            truncated=given.truncated,
            spans=tuple(
                Span(s.author, tuple(s.ids), (0.0,) * len(s.ids) if s.author == "model" else ())
                for s in given.spans
            ),
        )
        for given in group.episodes
    ]


_VERDICT = ("status", "score", "reason", "extracted", "parts")
