"""What clients ask for, whichever way: whether they may have it, and what they are told."""

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
from .at_once import FEW, AtOnce, weight_of
from .identity import PROTOCOL, identity
from .in_flight import InFlightBytes
from .limits import ServiceLimits
from .metrics import Metrics
from .queue import WorkQueue
from .refused import Refused
from .runner import EpisodeRunner, PendingStep
from .serialize import parse_episodes, serialize_task, serialize_verdict
from .sessions import Session, SessionBudget, SessionStore, earlier

_log = logging.getLogger("assay.service")
_Found = TypeVar("_Found")


class EnvironmentService:
    """Answers requests for one environment, whichever way they came.

    Args:
        env: what is served; it judges and responds from several threads.
        limits: bounds of everything.
        references: judge replies against references that clients bring.
        reasons: tell the reasons of verdicts, which may quote the known answer.
        metrics: where it counts.
    """

    def __init__(
        self,
        env: TextEnv,
        limits: ServiceLimits,
        *,
        references: bool = False,
        reasons: bool = False,
        metrics: Metrics | None = None,
    ) -> None:
        self.env, self.limits, self.played = env, limits, played(env)
        self.references, self.reasons = references, reasons
        self.identity = identity(env)
        self.budget = SessionBudget(limits)
        self.under_way = InFlightBytes(limits.under_way_mib * 2**20)
        self.metrics = metrics or Metrics()
        self.over_http = SessionStore(self.budget, lambda: secrets.token_urlsafe(16))
        self.queue = WorkQueue(limits)
        self._probe_pool = ThreadPoolExecutor(1, thread_name_prefix="assay-ready")
        self._runner = EpisodeRunner(env, limits.episode_chars, self._verdict)
        self._turns = self.queue.batches(self._runner.take)
        self._scores = self.queue.batches(self._runner.score)
        self.at_once = AtOnce(env)
        self._ready: tuple[float, bool] | None = None
        self.metrics.watch(self)

    async def tasks(self, asked: messages.Tasks) -> dict[str, Any]:
        """Tasks without their references."""
        self._allow("tasks", len(asked.tasks))

        def find() -> list[dict[str, Any]]:
            return [serialize_task(t, index) for t, index in self._find(asked.tasks)]

        return {"tasks": await self._found(len(asked.tasks), find)}

    async def score(self, asked: messages.Score) -> dict[str, Any]:
        """Verdicts of replies."""
        self._allow("replies", len(asked.replies))
        for reply in asked.replies:
            self._allow_reply(reply)
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
        if keys is None:
            golds = asked.references or []
        else:
            golds = await self._found(
                len(keys), lambda: [task.reference for task, _ in self._find(keys)]
            )
        if self.at_once.scores(asked):
            verdicts = self._runner.score([(asked.replies, golds)])[0]
        else:
            self.queue.room_for(len(golds))
            verdicts = await self.queue.do(len(golds), self._scores.put((asked.replies, golds)))
        return {"verdicts": [self._verdict(v) for v in verdicts]}

    async def reset(
        self, asked: messages.Reset, store: SessionStore, owner: str = ""
    ) -> dict[str, Any]:
        """Begin episodes."""
        weight = weight_of(asked)
        self._allow("episodes", weight)
        self.budget.room_for(weight)

        def begin() -> tuple[list[tuple[Task, int | None]], list[State]]:
            found = self._find(asked.tasks if asked.tasks is not None else self._drawn(asked))
            return found, [self.env.begin(t) for t, _ in found for _ in range(asked.group_size)]

        found, states = await self._found(weight, begin)
        held = store.add(states, owner)
        told = [
            serialize_task(s.task, found[i // asked.group_size][1]) for i, s in enumerate(states)
        ]
        return {
            "episodes": [
                {"episode": e.id.removeprefix(owner), "task": t}
                for e, t in zip(held, told, strict=True)
            ]
        }

    async def step_and_reset(
        self, asked: messages.Steps, store: SessionStore, owner: str = ""
    ) -> dict[str, Any]:
        """Take steps, then begin episodes where that is asked for; no refusal costs an outcome.

        Over HTTP, where steps say their turns, a message may be sent again, and begins none twice.
        """
        told = await self.step(asked.steps, store, owner)
        if asked.reset is None:
            return told
        reset = asked.reset
        return told | await store.once(asked, owner, lambda: self._next(reset, store, owner))

    async def _next(self, asked: messages.Reset, store: SessionStore, owner: str) -> dict[str, Any]:
        """Episodes that have begun, or why there are none."""
        try:
            return await self.reset(asked, store, owner)
        except Refused as refused:
            self.metrics.refused[refused.code] += 1
            return {"not_begun": refused.to_json()["error"]}

    async def step(
        self, asked: Sequence[messages.Step], store: SessionStore, owner: str = ""
    ) -> dict[str, Any]:
        """Take a turn in each episode; a step that cannot be taken has an error of its own."""
        self._allow("steps", len(asked))
        for step in asked:
            self._allow_reply(step.reply)
        self.budget.room_for(0, sum(len(step.reply) for step in asked))
        at_once = self.at_once.takes(asked)
        told: list[dict[str, Any]] = []
        found: list[dict[str, Any]] = []
        taken: list[PendingStep] = []
        places: list[int] = []
        again: list[tuple[int, Session]] = []
        for place, step in enumerate(asked):
            episode = store.get(step.episode, owner)
            if episode is not None and episode.is_taking(step):
                again.append((place, episode))
                told.append({})
                continue
            try:
                answered = earlier(episode, step)
            except Refused as refused:
                answered = {"episode": step.episode, **refused.to_json()}
            told.append(answered or {})
            if answered is None and episode is not None:
                episode.begin(step.reply)
                taken.append(PendingStep(episode, step.reply, step.truncated))
                places.append(place)
        if taken and at_once:
            try:
                found = self._runner.take([taken])[0]
            finally:
                _settle(taken, store)
        elif taken:
            try:
                self.queue.room_for(len(taken))
            except Refused:
                for one in taken:
                    one.episode.end()
                raise
            turns = self._turns.put(taken)
            turns.add_done_callback(lambda _: _settle(taken, store))
            found = await self.queue.do(len(taken), turns)
        for place, outcome in zip(places, found, strict=True):
            told[place] = outcome
        for place, episode in again:
            told[place] = await self._once_taken(episode, asked[place])
        if owner:
            told = [{**row, "episode": row["episode"].removeprefix(owner)} for row in told]
        return {"outcomes": told}

    async def groups(self, asked: messages.Groups) -> dict[str, Any]:
        """What the group's rewards make of episodes that were judged one by one."""
        rubric = self.env.group_rubric
        if rubric is None:
            raise Refused(422, "groups", f"{self.env.name} has no rewards that depend on the group")
        weight = sum(len(group.episodes) for group in asked.groups)
        self._allow("episodes", weight)

        def judge() -> list[list[Verdict]]:
            tasks = self._find([group.task for group in asked.groups])
            return [
                [e.verdict for e in rubric.judged(task, parse_episodes(task, group))]
                for (task, _), group in zip(tasks, asked.groups, strict=True)
            ]

        found = await self._found(max(weight, FEW + 1), judge)
        return {
            "groups": [
                [serialize_verdict(v, reasons=self.reasons) for v in group] for group in found
            ]
        }

    def close(self, asked: messages.Close, store: SessionStore, owner: str = "") -> dict[str, Any]:
        """Forget episodes."""
        self._allow("episodes", len(asked.episodes))
        return {"closed": sum(store.forget(id_, owner) for id_ in asked.episodes)}

    def describe(self) -> dict[str, Any]:
        """What is served, and its limits."""
        from .. import __version__

        limits = ("body_bytes", "batch", "reply_chars", "episode_chars", "in_flight", "rate")
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
        """Whether replies can be judged now: one is, sandbox and all, where it was not lately."""
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

    def shut(self) -> None:
        """Let what has begun end, and give back what the environment holds."""
        self.queue.shut()
        self._probe_pool.shutdown(cancel_futures=True)
        self.env.close()

    async def _found(self, weight: int, call: Callable[[], _Found]) -> _Found:
        """What the environment gives, asked in a thread.

        Raises:
            Refused: there is no such thing, or the environment raised.
        """
        if self.at_once.finds(weight):  # a thread takes longer to begin than this takes
            return call()
        return await self.queue.call(weight, call)

    async def _once_taken(self, episode: Session, step: messages.Step) -> dict[str, Any]:
        """The outcome of a step that was sent again while it was being taken."""
        try:
            if episode.busy:
                await asyncio.wait_for(episode.till_end(), self.limits.request_s)
            answered = earlier(episode, step)
        except TimeoutError:
            late = Refused(504, "late", f"the step takes longer than {self.limits.request_s:g} s")
            return {"episode": episode.id, **late.to_json()}
        except Refused as refused:
            return {"episode": episode.id, **refused.to_json()}
        if answered is None:
            failed = Refused(500, "fault", "the step was not taken")
            return {"episode": episode.id, **failed.to_json()}
        return answered

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        self.metrics.verdicts[verdict.status] += 1
        return serialize_verdict(verdict, reasons=self.reasons)

    def _find(self, keys: Sequence[int | str]) -> list[tuple[Task, int | None]]:
        """Tasks by number or id.

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

    def _allow(self, what: str, count: int) -> None:
        if count > self.limits.batch:
            raise Refused(
                413,
                "batch",
                f"{count} {what} are more than the {self.limits.batch} of one request: split them",
            )

    def _allow_reply(self, reply: str) -> None:
        if len(reply) > self.limits.reply_chars:
            raise Refused(
                413,
                "reply",
                f"a reply of {len(reply)} characters is longer than {self.limits.reply_chars}: "
                "cut it, or send a step as truncated",
            )


def _settle(taken: list[PendingStep], store: SessionStore) -> None:
    """The steps were taken, or could not be: the episodes are free again."""
    for step in taken:
        store.grew(step.episode)
        step.episode.end()
