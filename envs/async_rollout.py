"""Rollouts of an async policy, such as a server: no episode waits for another."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..verifiers import Status, Verdict
from .batches import BatchingQueue
from .episode import EpisodeGroup
from .policy import Completion
from .rollout import grouped
from .state import State
from .task import Conversation, Task
from .text_env import TextEnv

_T = TypeVar("_T")

_LONGEST_PAUSE_S = 30.0


class AsyncPolicy(Protocol):
    """Answer one conversation; many are awaited side by side."""

    async def __call__(self, conversation: Conversation, /) -> Completion:
        """Answer a conversation. What it raises costs this episode its reward, and no other."""


@runtime_checkable
class AsyncExtendingPolicy(AsyncPolicy, Protocol):
    """One with tokens of its own: see :class:`~assay.envs.policy.ExtendingPolicy`."""

    async def extend(self, conversation: Conversation, prefix: Sequence[int], /) -> Completion:
        """Answer a conversation; ``prompt_ids`` of the completion begin with ``prefix``."""


def arollout(
    env: TextEnv,
    policy: AsyncPolicy,
    tasks: Iterable[Task],
    group_size: int,
    *,
    at_once: int = 64,
    timeout_s: float | None = None,
    retries: int = 0,
    pause_s: float = 0.5,
    ordered: bool = False,
    threads: int = 8,
) -> AsyncGenerator[EpisodeGroup, None]:
    """Let a policy answer tasks, several times each, and give each group when it is judged.

    If the policy fails, or is not done in time, the episode has no reward: its status is
    ``verifier_error``, for what could not be judged is no wrong answer, its reason says what
    happened, and its turns so far are kept. The others of its group are judged without it.
    Judging goes on in threads while replies are awaited, and so do the environment's turns. If
    more wait than there are threads, several groups are judged in one batch, and several episodes
    are answered by one ``respond_many``. What a verifier or the environment raises is raised here,
    and ends everything.

    Leaving early, by ``aclose``, an exception or cancellation, cancels what is awaited and leaves
    nothing running; use ``contextlib.aclosing`` around a loop that may break.

    Args:
        env: what puts tasks and judges replies; both from several threads.
        policy: what answers.
        tasks: such as those of :func:`~assay.envs.rollout.scheduled`; they are taken as there is
            room for them, so they may be without end.
        group_size: episodes for each task.
        at_once: episodes in flight. If groups are not taken from here, about as many more
            episodes are played, and then no more.
        timeout_s: wall-clock seconds for a group, from its first turn to its last, its judging
            not counted.
        retries: further attempts at a turn in which the policy failed.
        pause_s: seconds before the first of them; twice as long before each one more, and at most
            half a minute.
        ordered: give groups in the order of the tasks. Those that are done early are kept until
            their turn, however many.
        threads: for the environment's turns, and as many for judging. One that takes long keeps
            back those of its batch, at most one in so many of all that wait. With 1, all that is
            ready goes in one batch: for an environment that asks a model, say.

    Raises:
        TypeError: the policy is not async.
        ValueError: a number is out of its range.
    """
    if not any(inspect.iscoroutinefunction(f) for f in (policy, type(policy).__call__)):
        raise TypeError(
            f"a policy for arollout must be async, one conversation a call, got {policy!r:.80}; "
            "rollout and stream take others"
        )
    for name, value, least in (
        ("group_size", group_size, 1),
        ("at_once", at_once, 1),
        ("retries", retries, 0),
        ("pause_s", pause_s, 0),
        ("threads", threads, 1),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if timeout_s is not None and not timeout_s > 0:
        raise ValueError(f"timeout_s must be above 0, or None, got {timeout_s}")
    settings = (group_size, at_once, timeout_s, retries, pause_s, ordered, threads)
    return _groups(_Rollout(env, policy, *settings), tasks)


async def _groups(rollout: _Rollout, tasks: Iterable[Task]) -> AsyncGenerator[EpisodeGroup, None]:
    try:
        rollout.spawn(rollout.feed(tasks))
        while (found := await rollout.found.get()) is not None:
            rollout.changed.set()
            if isinstance(found, Exception):
                raise found
            yield found
    finally:
        await rollout.clear()


@dataclass
class _Rollout:
    """Episodes under way, and groups that are judged and not yet taken."""

    env: TextEnv
    policy: AsyncPolicy
    group_size: int
    at_once: int
    timeout_s: float | None
    retries: int
    pause_s: float
    ordered: bool
    threads: int

    def __post_init__(self) -> None:
        self.found: asyncio.Queue[EpisodeGroup | Exception | None] = asyncio.Queue()
        self.changed = asyncio.Event()
        self._slots = asyncio.Semaphore(self.at_once)
        self._playing = 0  # episodes that were begun and are not over
        self._judging = 0  # groups
        self._early: dict[int, EpisodeGroup] = {}
        self._due = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pools = [
            ThreadPoolExecutor(self.threads, thread_name_prefix=f"assay-{name}")
            for name in ("begin", "turn", "judge")
        ]
        begin, turn, judge = self._pools
        self._begins = BatchingQueue(self._begun, begin, self.threads, 1)
        self._turns = BatchingQueue(self._advanced, turn, self.threads)
        self._judges = BatchingQueue(self._grouped, judge, self.threads)

    def spawn(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Start a coroutine that :meth:`clear` can end."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # taken: the first of a group is raised, not each

    async def feed(self, tasks: Iterable[Task]) -> None:
        """Begin groups while there is room, and say when all are done."""
        groups: set[asyncio.Task[None]] = set()
        ahead = max(1, self.at_once // self.group_size)
        try:
            for place, task in enumerate(tasks):
                while self._playing >= self.at_once or self._judging + self.found.qsize() > ahead:
                    self.changed.clear()
                    await self.changed.wait()
                self._playing += self.group_size
                group = self.spawn(self._group(place, task))
                groups.add(group)
                group.add_done_callback(groups.discard)
                await asyncio.sleep(0)  # what is ready goes first, however many tasks there are
            if groups:
                await asyncio.wait(set(groups))
        except Exception as error:  # of the tasks: raised to the consumer of the groups
            self.found.put_nowait(error)
        self.found.put_nowait(None)

    async def clear(self) -> None:
        """End everything: cancel what is awaited, wait for threads that cannot be."""
        going = list(self._tasks)
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
            await asyncio.to_thread(pool.shutdown)

    async def _group(self, place: int, task: Task) -> None:
        try:
            states = await self._begins.do(task)
            episodes = [self.spawn(self._episode(state)) for state in states]
            _, late = await asyncio.wait(episodes, timeout=self.timeout_s)
            for k, episode in enumerate(episodes):
                if episode in late:
                    episode.cancel()
                    over = f"not over {self.timeout_s} s after its group began"
                    states[k] = _without_reward(states[k], over)
                elif episode.cancelled():
                    states[k] = _without_reward(states[k], "the policy cancelled it")
                else:
                    episode.result()  # what the environment raised is raised
            self._hand(place, await self._judged(task, states))
        except Exception as error:
            self.found.put_nowait(error)

    async def _judged(self, task: Task, states: list[State]) -> EpisodeGroup:
        self._judging += 1
        try:
            group = await self._judges.do((task, states))
        finally:
            self._judging -= 1
            self.changed.set()
        return group

    def _begun(self, tasks: list[Task]) -> list[list[State]]:
        return [[self.env.begin(task) for _ in range(self.group_size)] for task in tasks]

    def _advanced(self, turns: list[tuple[State, Completion]]) -> list[None]:
        self.env.advance([state for state, _ in turns], [completion for _, completion in turns])
        return [None] * len(turns)

    def _grouped(self, groups: list[tuple[Task, list[State]]]) -> list[EpisodeGroup]:
        states = [state for _, states in groups for state in states]
        return grouped(self.env, [task for task, _ in groups], states)

    async def _episode(self, state: State) -> None:
        try:
            async with self._slots:
                while not state.ended:
                    completion = await self._answer(state)
                    if completion is not None:
                        await self._turns.do((state, completion))
        finally:
            self._playing -= 1
            self.changed.set()

    async def _answer(self, state: State) -> Completion | None:
        """Return the policy's next turn; if it fails for good, end the episode without one."""
        policy = self.policy
        for attempt in range(self.retries + 1):
            try:
                if isinstance(policy, AsyncExtendingPolicy):
                    found = await policy.extend(state.messages, state.ids)
                else:
                    found = await policy(state.messages)
            except Exception as error:
                if attempt == self.retries:
                    state.verdict = _fault(f"the policy failed: {type(error).__name__}: {error}")
                    state.ended = "truncated"
                    break
            else:
                if isinstance(found, Completion):
                    return found
                raise TypeError(f"a policy gives a Completion, got {found!r:.80}")
            await asyncio.sleep(min(self.pause_s * 2**attempt, _LONGEST_PAUSE_S))
        return None

    def _hand(self, place: int, group: EpisodeGroup) -> None:
        if not self.ordered:
            self.found.put_nowait(group)
            return
        self._early[place] = group
        while self._due in self._early:
            self.found.put_nowait(self._early.pop(self._due))
            self._due += 1


def _without_reward(state: State, reason: str) -> State:
    """Return a copy of what there is of an episode: a thread may still be at work on the state."""
    return replace(
        state,
        data=None,
        turns=list(state.turns),
        step_rewards=list(state.step_rewards),
        ended="truncated",
        verdict=_fault(reason),
    )


def _fault(reason: str) -> Verdict:
    return Verdict.fault(Status.VERIFIER_ERROR, reason)
