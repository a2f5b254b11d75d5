"""The work behind every route: it runs in threads, side by side, and what waits is bounded."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from gymnasium.utils import seeding

from ..envs import Completion, Rows, State, Task, TextEnv
from ..envs.batches import Batches
from ..envs.tools import ToolEnv
from ..lone_replies import played
from ..verifiers import Status, Verdict
from . import messages
from .held import Budget, HeldEpisode, Holder, digest
from .identity import PROTOCOL, identity
from .limits import ServiceLimits
from .metrics import Metrics
from .refused import Refused
from .told import episodes_of, finite, messages_told, task_told, verdict_told

_log = logging.getLogger("assay.service")
_Found = TypeVar("_Found")


class _Taken(NamedTuple):
    """A step, ready to be taken."""

    episode: HeldEpisode
    reply: str
    truncated: bool


class Desk:
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
        self.budget = Budget(limits)
        self.metrics = metrics or Metrics()
        self.waiting = 0
        self.over_http = Holder(self.budget, lambda: secrets.token_urlsafe(16))
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="assay-serve")
        self._probe_pool = ThreadPoolExecutor(1, thread_name_prefix="assay-ready")
        threads, size = limits.threads, limits.batch
        self._finds: Batches[_Call, Any] = Batches(_called, self._pool, threads, size)
        self._turns = Batches(self._step_all, self._pool, threads, size)
        self._judges = Batches(self._judge_all, self._pool, threads, size)
        kind = type(env)
        self._at_hand = (
            isinstance(env.source, Rows)
            and kind.begin is TextEnv.begin
            and kind.task is TextEnv.task
        )
        self._ready: tuple[float, bool] | None = None
        self.metrics.watch(self)

    # -- what clients ask for ------------------------------------------------------------------

    async def tasks(self, asked: messages.Tasks) -> dict[str, Any]:
        """Tasks without their references."""
        self._allow("tasks", len(asked.tasks))

        def find() -> list[dict[str, Any]]:
            return [task_told(t, index) for t, index in self._find(asked.tasks)]

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
        self._room_for(len(golds))
        verdicts = await self._do(len(golds), self._judges.put((asked.replies, golds)))
        return {"verdicts": [self._verdict(v) for v in verdicts]}

    async def reset(self, asked: messages.Reset, holder: Holder, owner: str = "") -> dict[str, Any]:
        """Begin episodes."""
        groups = asked.count if asked.tasks is None else len(asked.tasks)
        self._allow("episodes", groups * asked.group_size)
        self.budget.room_for(groups * asked.group_size)

        def begin() -> tuple[list[tuple[Task, int | None]], list[State]]:
            found = self._find(asked.tasks if asked.tasks is not None else self._drawn(asked))
            return found, [self.env.begin(t) for t, _ in found for _ in range(asked.group_size)]

        found, states = await self._found(groups * asked.group_size, begin)
        held = holder.add(states, owner)
        told = [task_told(s.task, found[i // asked.group_size][1]) for i, s in enumerate(states)]
        return {
            "episodes": [
                {"episode": e.id.removeprefix(owner), "task": t}
                for e, t in zip(held, told, strict=True)
            ]
        }

    async def step_and_reset(
        self, asked: messages.Steps, holder: Holder, owner: str = ""
    ) -> dict[str, Any]:
        """Take steps, then begin episodes where that is asked for; no refusal costs an outcome."""
        told = await self.step(asked.steps, holder, owner)
        if asked.reset is not None:
            try:
                told |= await self.reset(asked.reset, holder, owner)
            except Refused as refused:
                self.metrics.refused[refused.code] += 1
                told["not_begun"] = refused.to_json()["error"]
        return told

    async def step(
        self, asked: Sequence[messages.Step], holder: Holder, owner: str = ""
    ) -> dict[str, Any]:
        """Take a turn in each episode; a step that cannot be taken has an error of its own."""
        self._allow("steps", len(asked))
        for step in asked:
            self._allow_reply(step.reply)
        self.budget.room_for(0, sum(len(step.reply) for step in asked))
        told: list[dict[str, Any]] = []
        taken: list[_Taken] = []
        places: list[int] = []
        again: list[tuple[int, HeldEpisode]] = []
        for place, step in enumerate(asked):
            episode = holder.get(step.episode, owner)
            if episode is not None and _is_going(episode, step):
                again.append((place, episode))
                told.append({})
                continue
            try:
                answered = _earlier(episode, step)
            except Refused as refused:
                answered = {"episode": step.episode, **refused.to_json()}
            told.append(answered or {})
            if answered is None and episode is not None:
                episode.begin(step.reply)
                taken.append(_Taken(episode, step.reply, step.truncated))
                places.append(place)
        if taken:
            try:
                self._room_for(len(taken))
            except Refused:
                for one in taken:
                    one.episode.end()
                raise
            turns = self._turns.put(taken)
            turns.add_done_callback(lambda _: _settle(taken, holder))
            found = await self._do(len(taken), turns)
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
                [e.verdict for e in rubric.judged(task, episodes_of(task, group))]
                for (task, _), group in zip(tasks, asked.groups, strict=True)
            ]

        found = await self._found(max(weight, _FEW + 1), judge)
        return {
            "groups": [[verdict_told(v, reasons=self.reasons) for v in group] for group in found]
        }

    def close(self, asked: messages.Close, holder: Holder, owner: str = "") -> dict[str, Any]:
        """Forget episodes."""
        self._allow("episodes", len(asked.episodes))
        return {"closed": sum(holder.forget(id_, owner) for id_ in asked.episodes)}

    def describe(self) -> dict[str, Any]:
        """What is served, and its limits."""
        from .. import __version__

        limits = ("body_bytes", "batch", "reply_chars", "episode_chars", "in_flight", "rate")
        return {
            "name": self.env.name,
            "sha256": self.identity,
            "protocol": PROTOCOL,
            "size": self.env.source.size,
            "max_turns": self.env.max_turns,
            "lone_replies": not self.played,
            "group_rubric": self.env.group_rubric is not None,
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
                probe = loop.run_in_executor(self._probe_pool, self._probed)
                found = await asyncio.wait_for(probe, within_s)
            except Exception as error:
                _log.warning("the probe failed: %s", type(error).__name__)
                found = False
            self._ready = (time.monotonic(), found)
        return self._ready[1]

    def shut(self) -> None:
        """Let what has begun end, and give back what the environment holds."""
        self._pool.shutdown(cancel_futures=True)
        self._probe_pool.shutdown(cancel_futures=True)
        self.env.close()

    # -- how it is done ------------------------------------------------------------------------

    async def _found(self, weight: int, call: Callable[[], _Found]) -> _Found:
        """What the environment gives, asked in a thread.

        Raises:
            Refused: there is no such thing, or the environment raised.
        """
        if self._at_hand and weight <= _FEW:  # a thread takes longer to begin than this takes
            return call()
        self._room_for(weight)
        result: _Found | Refused = await self._do(weight, self._finds.put(call))
        if isinstance(result, Refused):
            raise result
        return result

    def _room_for(self, weight: int) -> None:
        """Refuse work where too much waits already.

        Raises:
            Refused: 503.
        """
        if self.waiting + weight > self.limits.queue and self.waiting:
            raise Refused(
                503,
                "busy",
                f"{self.waiting} replies are waiting already, and {self.limits.queue} may: come "
                "back later",
                retry_s=1,
            )

    async def _do(self, weight: int, work: asyncio.Future[_Found]) -> _Found:
        """Await work that waits for its turn; it goes on where nobody awaits it any more."""
        self.waiting += weight
        work.add_done_callback(lambda _: self._done(weight, work))
        await asyncio.wait((work,), timeout=self.limits.request_s)
        if not work.done():
            raise Refused(
                504, "late", f"there is no answer after {self.limits.request_s:g} s", retry_s=5
            )
        return work.result()

    def _done(self, weight: int, work: asyncio.Future[Any]) -> None:
        self.waiting -= weight
        if not work.cancelled():
            work.exception()  # somebody has asked: no complaint where nobody awaits it

    async def _once_taken(self, episode: HeldEpisode, step: messages.Step) -> dict[str, Any]:
        """The outcome of a step that was sent again while it was being taken."""
        try:
            if episode.going is not None:
                done = asyncio.shield(episode.going[1])
                await asyncio.wait_for(done, self.limits.request_s)
            answered = _earlier(episode, step)
        except TimeoutError:
            late = Refused(504, "late", f"the step takes longer than {self.limits.request_s:g} s")
            return {"episode": episode.id, **late.to_json()}
        except Refused as refused:
            return {"episode": episode.id, **refused.to_json()}
        if answered is None:
            failed = Refused(500, "fault", "the step was not taken")
            return {"episode": episode.id, **failed.to_json()}
        return answered

    def _step_all(self, requests: list[list[_Taken]]) -> list[list[dict[str, Any]]]:
        """Take the steps of several requests, and judge all that is over in one batch."""
        faults: dict[int, Verdict] = {}
        for taken in requests:
            self._advance(taken, faults)
        everything = [step for taken in requests for step in taken]
        over = [s for s in everything if _state(s).ended and id(s.episode) not in faults]
        verdicts = dict(faults)
        for step, verdict in zip(over, self._verdicts([_state(s) for s in over]), strict=True):
            verdicts[id(step.episode)] = verdict
        return [[self._outcome(s, verdicts.get(id(s.episode))) for s in ss] for ss in requests]

    def _advance(self, taken: list[_Taken], faults: dict[int, Verdict]) -> None:
        """The environment's answer to the steps of one request.

        Where it raises, these episodes end without a score: those of nobody else do.
        """
        states = [_state(step) for step in taken]
        replies = [Completion(step.reply, "length" if step.truncated else "stop") for step in taken]
        try:
            self.env.advance(states, replies)
        except Exception as error:
            _log.exception("%s raised in a turn", self.env.name)
            why = f"the environment raised {type(error).__name__}"
            for step, state in zip(taken, states, strict=True):
                state.ended = "done"
                faults[id(step.episode)] = Verdict.fault(Status.VERIFIER_ERROR, why)
            return
        for state in states:
            size = sum(len(m["content"]) for m in state.messages)
            if not state.ended and size > self.limits.episode_chars:
                state.ended = "truncated"

    def _verdicts(self, states: list[State]) -> list[Verdict]:
        """What episodes are worth; where that raises for one, the others still have theirs."""
        if not states:
            return []
        try:
            found = self.env.verdicts(states)
            if len(found) != len(states):
                raise ValueError(f"expected {len(states)} verdicts, got {len(found)}")
            return found
        except Exception as error:
            if len(states) > 1:
                return [self._verdicts([state])[0] for state in states]
            _log.exception("%s raised in judging", self.env.name)
            why = f"the environment raised {type(error).__name__}"
            return [Verdict.fault(Status.VERIFIER_ERROR, why)]

    def _judge_all(
        self, requests: list[tuple[Sequence[str], Sequence[Any]]]
    ) -> list[list[Verdict]]:
        """Verdicts of several requests, in one batch."""
        replies = [reply for some, _ in requests for reply in some]
        golds = [gold for _, some in requests for gold in some]
        try:
            found = self.env.rubric.verify_many(replies, golds)
            if len(found) != len(replies):
                raise ValueError(f"expected {len(replies)} verdicts, got {len(found)}")
        except Exception as error:
            if len(requests) > 1:
                return [self._judge_all([request])[0] for request in requests]
            _log.exception("the rubric of %s raised", self.env.name)
            why = f"the rubric raised {type(error).__name__}"
            found = [Verdict.fault(Status.VERIFIER_ERROR, why)] * len(replies)
        rest = iter(found)
        return [[next(rest) for _ in some] for some, _ in requests]

    def _outcome(self, step: _Taken, verdict: Verdict | None) -> dict[str, Any]:
        """What is told of a step."""
        episode, state = step.episode, _state(step)
        after = [i for i, m in enumerate(state.turns) if m["role"] == "assistant"]
        new = state.turns[after[-1] + 1 :] if after else []
        outcome = {
            "episode": episode.id,
            "turn": episode.turn + 1,
            "messages": messages_told(new),
            "reward": finite(state.step_rewards[-1]) if state.step_rewards else None,
            "done": state.ended == "done",
            "truncated": state.ended == "truncated",
            "verdict": None if verdict is None else self._verdict(verdict),
        }
        episode.took(step.reply, outcome, over=bool(state.ended))
        return outcome

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        self.metrics.verdicts[verdict.status] += 1
        return verdict_told(verdict, reasons=self.reasons)

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

    def _probed(self) -> bool:
        """Judge one reply, a winning one where one is known: only a fault of ours is no score.

        Of an environment that is played, the first turn is taken too where it is known what to
        say: its tools may need the sandbox.
        """
        env, task = self.env, self.env.task(0)
        if not self.played:
            reply = env.solve(env.begin(task)) or ""
            return env.rubric.verify(reply, task.reference).score is not None
        winning = env.rubric.winning_reply(task.reference)
        if winning is not None and env.rubric.verify(winning, task.reference).score is None:
            return False
        if task.solution is None and type(env).solve is TextEnv.solve:
            return True  # to begin an episode may have effects elsewhere
        state = env.begin(task)
        said = env.solve(state)
        if said is not None:
            env.advance([state], [Completion(said)])
        return state.verdict is None or state.verdict.score is not None

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


_Call = Callable[[], Any]
_FEW = 64


def _called(calls: list[_Call]) -> list[Any]:
    """Results of calls; where one raises, its error in its place: the others have theirs."""
    return [_result(call) for call in calls]


def _result(call: _Call) -> Any:
    try:
        return call()
    except Refused as refused:
        return refused
    except Exception as error:
        _log.exception("an environment raised")
        return Refused(500, "environment", f"the environment raised {type(error).__name__}")


def _settle(taken: list[_Taken], holder: Holder) -> None:
    """The steps were taken, or could not be: the episodes are free again."""
    for step in taken:
        holder.grew(step.episode)
        step.episode.end()


def _is_going(episode: HeldEpisode, step: messages.Step) -> bool:
    """Whether a step is one that is being taken, sent again: after a broken connection, say."""
    return (
        episode.going is not None
        and step.turn == episode.turn
        and digest(step.reply) == episode.going[0]
    )


def _state(step: _Taken) -> State:
    state = step.episode.state
    assert state is not None  # noqa: S101  # one that is over takes no step
    return state


def _earlier(episode: HeldEpisode | None, step: messages.Step) -> dict[str, Any] | None:
    """The answer to a step that was taken before, or ``None`` for a new one.

    Raises:
        Refused: the step cannot be taken.
    """
    if episode is None:
        raise Refused(
            404,
            "episode",
            "there is no such episode here: it was closed or idle for too long, or the server was "
            "started anew; begin another",
        )
    if episode.busy:
        raise Refused(409, "busy", "a step of this episode is being taken: wait for its answer")
    if step.turn is not None and step.turn == episode.turn - 1 and episode.outcome is not None:
        if digest(step.reply) == episode.reply_hash:
            return episode.outcome
        raise Refused(409, "turn", f"turn {step.turn} was taken already, with another reply")
    if episode.state is None:
        raise Refused(409, "over", "the episode is over: begin another")
    if step.turn is not None and step.turn != episode.turn:
        raise Refused(409, "turn", f"expected turn {episode.turn}, got {step.turn}")
    return None
