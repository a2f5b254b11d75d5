"""Groups from a policy that is awaited, such as a server: no episode waits for another."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..verifiers import Status, Verdict
from .episode import EpisodeGroup
from .policy import Completion
from .rollout import grouped
from .state import State
from .task import Conversation, Task
from .text_env import TextEnv

_T = TypeVar("_T")

_THREADS = 8  # for turns of environments, and as many for judging
_LONGEST_PAUSE_S = 30.0


class AsyncPolicy(Protocol):
    """Answers one conversation; many are awaited side by side."""

    async def __call__(self, conversation: Conversation, /) -> Completion:
        """Answer a conversation. What it raises costs this episode its reward, and no other."""
        ...


@runtime_checkable
class AsyncExtendingPolicy(AsyncPolicy, Protocol):
    """One with tokens of its own: see :class:`~assay.envs.policy.ExtendingPolicy`."""

    async def extend(self, conversation: Conversation, prefix: Sequence[int], /) -> Completion:
        """Answer a conversation; ``prompt_ids`` of the completion begin with ``prefix``."""
        ...


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
) -> AsyncGenerator[EpisodeGroup, None]:
    """Let a policy answer tasks, several times each, and give each group when it is judged.

    Where the policy fails, or is not done in time, the episode has no reward: its status is
    ``verifier_error``, for what could not be judged is no wrong answer, its reason says what
    happened, and its turns so far are kept. The others of its group are judged without it.
    Judging goes on in threads while replies are awaited. What a verifier or the environment
    raises is raised here, and ends everything.

    Leaving early, by ``aclose``, an exception or cancellation, cancels what is awaited and leaves
    nothing running; use ``contextlib.aclosing`` around a loop that may break.

    Args:
        env: what puts tasks and judges replies; both from several threads.
        policy: what answers.
        tasks: such as those of :func:`~assay.envs.rollout.scheduled`; they are taken as there is
            room for them, so they may be without end.
        group_size: episodes for each task.
        at_once: episodes in flight. Where groups are not taken from here, about as many
            more episodes are played, and then no more.
        timeout_s: wall-clock seconds for a group, from its first turn to its last, its judging
            not counted.
        retries: further attempts at a turn in which the policy failed.
        pause_s: seconds before the first of them; twice as long before each one more, and at most
            half a minute.
        ordered: give groups in the order of the tasks. Those that are done early are kept until
            their turn, however many.

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
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if timeout_s is not None and not timeout_s > 0:
        raise ValueError(f"timeout_s must be above 0, or None, got {timeout_s}")
    table = _Table(env, policy, group_size, at_once, timeout_s, retries, pause_s, ordered)
    return _played(table, tasks)


async def _played(table: _Table, tasks: Iterable[Task]) -> AsyncGenerator[EpisodeGroup, None]:
    try:
        table.spawn(table.feed(tasks))
        while (found := await table.found.get()) is not None:
            table.changed.set()
            if isinstance(found, Exception):
                raise found
            yield found
    finally:
        await table.clear()


class _Table:
    """Where episodes are played: what is going on, and what is done and not yet taken."""

    def __init__(
        self,
        env: TextEnv,
        policy: AsyncPolicy,
        group_size: int,
        at_once: int,
        timeout_s: float | None,
        retries: int,
        pause_s: float,
        ordered: bool,
    ) -> None:
        self.env, self.policy, self.group_size, self.at_once = env, policy, group_size, at_once
        self.timeout_s, self.retries, self.pause_s = timeout_s, retries, pause_s
        self.ordered = ordered
        self.found: asyncio.Queue[EpisodeGroup | Exception | None] = asyncio.Queue()
        self.changed = asyncio.Event()
        self._seats = asyncio.Semaphore(at_once)
        self._playing = 0  # episodes that were begun and are not over
        self._judging = 0  # groups
        self._early: dict[int, EpisodeGroup] = {}
        self._due = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._turns = ThreadPoolExecutor(_THREADS, thread_name_prefix="assay-turn")
        self._judges = ThreadPoolExecutor(_THREADS, thread_name_prefix="assay-judge")
        # A turn that only ends the episode is not worth a thread.
        self._ends_at_once = all(
            getattr(type(env), name) is getattr(TextEnv, name)
            for name in ("begin", "respond", "respond_many", "advance")
        )

    def spawn(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Start a coroutine, and remember it so that :meth:`clear` can end it."""
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
        except Exception as error:  # of the tasks: whoever waits for groups must hear of it
            self.found.put_nowait(error)
        self.found.put_nowait(None)

    async def clear(self) -> None:
        """End everything: cancel what is awaited, wait for threads that cannot be."""
        going = list(self._tasks)
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        for pool in (self._turns, self._judges):
            pool.shutdown(wait=False, cancel_futures=True)
            await asyncio.to_thread(pool.shutdown)

    async def _group(self, place: int, task: Task) -> None:
        try:
            states = await self._in_turn(self._begun, task)
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
            (group,) = await self._threaded(self._judges, grouped, self.env, [task], states)
        finally:
            self._judging -= 1
            self.changed.set()
        return group

    def _begun(self, task: Task) -> list[State]:
        return [self.env.begin(task) for _ in range(self.group_size)]

    async def _episode(self, state: State) -> None:
        try:
            async with self._seats:
                while not state.ended:
                    completion = await self._answer(state)
                    if completion is not None:
                        await self._in_turn(self.env.advance, [state], [completion])
        finally:
            self._playing -= 1
            self.changed.set()

    async def _answer(self, state: State) -> Completion | None:
        """The policy's next turn; where it fails for good, the episode ends without one."""
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

    async def _in_turn(self, function: Callable[..., _T], *given: Any) -> _T:
        """Have the environment do something, in a thread where it may take long."""
        if self._ends_at_once:
            return function(*given)
        return await self._threaded(self._turns, function, *given)

    @staticmethod
    async def _threaded(pool: ThreadPoolExecutor, function: Callable[..., _T], *given: Any) -> _T:
        return await asyncio.get_running_loop().run_in_executor(pool, function, *given)


def _without_reward(state: State, reason: str) -> State:
    """What there is of an episode. A copy: a thread may still be at work on the state itself."""
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
