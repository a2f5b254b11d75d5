"""Episodes that a server holds: bounded in number, in text and in time."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ..envs import State
from .limits import ServiceLimits
from .messages import Step, Steps
from .refused import Refused


class SessionBudget:
    """What all holders of one server hold together."""

    def __init__(self, limits: ServiceLimits) -> None:
        self.limits = limits
        self.episodes = self.chars = 0
        self.keepers: list[SessionStore] = []

    def room_for(self, episodes: int, chars: int = 0) -> None:
        """Make room, of episodes that are over, or refuse what there is no room for.

        Raises:
            Refused: 503, as a rule for as long as others play.
        """
        while self._is_short(episodes, chars) and any(h.forget_one_over() for h in self.keepers):
            pass
        if self.episodes + episodes > self.limits.episodes:
            raise Refused(
                503,
                "episodes",
                f"the server holds {self.episodes} of {self.limits.episodes} episodes and has no "
                f"room for {episodes} more: close those that are not needed, or come back",
                retry_s=1,
            )
        if 4 * (self.chars + chars) > self.limits.held_mib * 2**20:
            raise Refused(
                503,
                "memory",
                f"the server holds {self.limits.held_mib} MiB of conversations already: close "
                "episodes that are not needed, or come back",
                retry_s=1,
            )

    def _is_short(self, episodes: int, chars: int) -> bool:
        many = self.episodes + episodes > self.limits.episodes
        return many or 4 * (self.chars + chars) > self.limits.held_mib * 2**20


class Session:
    """An episode, and what its last step came to: so a step may be sent twice.

    Attributes:
        state: the episode; ``None`` when it is over.
        going: turn and digest of the reply of the step that is being taken.
        next: what a message with this episode's step has begun, and that message's digest.
        next_chars: of the prompts in it.
    """

    __slots__ = (
        "_ended",
        "chars",
        "going",
        "id",
        "next",
        "next_chars",
        "outcome",
        "reply_hash",
        "state",
        "touched",
        "turn",
    )

    def __init__(self, id_: str, state: State) -> None:
        self.id = id_
        self.going: tuple[int, bytes] | None = None
        self._ended: asyncio.Future[None] | None = None
        self.state: State | None = state
        self.turn, self.reply_hash = 0, b""
        self.outcome: dict[str, Any] | None = None
        self.next: tuple[bytes, asyncio.Future[dict[str, Any]]] | None = None
        self.next_chars = 0
        self.chars = sum(len(m["content"]) for m in state.task.messages)
        self.touched = 0.0

    @property
    def busy(self) -> bool:
        """A step is being taken."""
        return self.going is not None

    def begin(self, reply: str) -> None:
        """A step is being taken from now on."""
        self.going = self.turn, digest(reply)  # a thread counts the turn before it is over

    def is_taking(self, step: Step) -> bool:
        """Whether this very step is being taken: sent again after a broken connection, say."""
        return self.going is not None and self.going == (step.turn, digest(step.reply))

    def end(self) -> None:
        """None is any more, whether it was taken or not."""
        self.going = None
        if self._ended is not None:
            self._ended.set_result(None)
            self._ended = None

    async def till_end(self) -> None:
        """Wait until none is being taken."""
        if self.going is not None:
            if self._ended is None:  # as a rule nobody waits for it
                self._ended = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._ended)

    def took(self, outcome: dict[str, Any], *, over: bool) -> None:
        """Note what the step that was being taken came to."""
        assert self.going is not None  # noqa: S101  # for the type
        self.turn += 1
        self.reply_hash, self.outcome = self.going[1], outcome
        if over:
            self.state = None


def earlier(episode: Session | None, step: Step) -> dict[str, Any] | None:
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


def digest(reply: str) -> bytes:
    """Tells replies apart without keeping them."""
    return hashlib.sha256(reply.encode("utf-8", "surrogatepass")).digest()


class SessionStore:
    """The episodes of one WebSocket, or those of HTTP.

    Args:
        budget: the server's.
        name: gives an episode its id; it must not be guessed where others might use it.
        keep: hold episodes that are over, too, so that a last step may be sent again.
        clock: in seconds.
    """

    def __init__(
        self,
        budget: SessionBudget,
        name: Callable[[], str],
        *,
        keep: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget, self._name, self.keep, self._clock = budget, name, keep, clock
        self._held: OrderedDict[str, Session] = OrderedDict()
        self._over: OrderedDict[str, None] = OrderedDict()
        self._ended = False
        if keep:
            budget.keepers.append(self)

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._held.values())

    def add(self, states: list[State], owner: str = "") -> list[Session]:
        """Hold episodes that have begun.

        Raises:
            Refused: there is no room, or its client has left; then none is held.
        """
        if self._ended:  # what was begun for somebody who left meanwhile
            raise Refused(410, "gone", "the connection has ended, and its episodes with it")
        new = [Session(owner + self._name(), state) for state in states]
        chars = sum(e.chars for e in new)
        self.forget_idle()
        self._budget.room_for(len(new), chars)
        now = self._clock()
        for episode in new:
            episode.touched = now
            self._held[episode.id] = episode
        self._budget.episodes += len(new)
        self._budget.chars += chars
        return new

    def get(self, id_: str, owner: str = "") -> Session | None:
        """An episode of this owner, now the last to be forgotten."""
        episode = self._held.get(owner + id_)
        if episode is not None:
            episode.touched = self._clock()
            self._held.move_to_end(episode.id)
        return episode

    async def once(
        self, asked: Steps, owner: str, begin: Callable[[], Coroutine[Any, Any, dict[str, Any]]]
    ) -> dict[str, Any]:
        """What a message begins after its steps; what it began, where it is sent again.

        Its first episode remembers that, for as long as it is held when it is over. A message with
        a step that does not say its turn is a new one each time.
        """
        again = self.keep and asked.steps and all(s.turn is not None for s in asked.steps)
        episode = self.get(asked.steps[0].episode, owner) if again else None
        if episode is None:
            return await begin()
        key = digest(asked.model_dump_json())
        if episode.next is None or episode.next[0] != key:
            begun = asyncio.ensure_future(begin())
            episode.next = key, begun
            begun.add_done_callback(lambda _: self._note(episode, begun))
        return await asyncio.shield(episode.next[1])

    def _note(self, episode: Session, begun: asyncio.Future[dict[str, Any]]) -> None:
        """Episodes were begun; where there are none, the message may be tried again."""
        failed = begun.cancelled() or begun.exception() is not None
        told = [] if failed else begun.result().get("episodes", [])
        if episode.next is None or episode.next[1] is not begun:
            return  # another message has come meanwhile
        if not told:
            episode.next = None
        episode.next_chars = sum(len(m["content"]) for e in told for m in e["task"]["messages"])
        self.grew(episode)

    def grew(self, episode: Session) -> None:
        """Count an episode's text anew, when a step was taken; it may be over."""
        if episode.id not in self._held:  # forgotten meanwhile
            return
        if episode.state is None and not self.keep:
            self.forget(episode.id)
            return
        now = 0
        if episode.state is not None:
            messages = episode.state.messages
            now = sum(len(m["content"]) for m in messages)
        elif episode.outcome is not None:
            self._over[episode.id] = None
            now = sum(len(m["content"]) for m in episode.outcome["messages"])
        now += episode.next_chars
        self._budget.chars += now - episode.chars
        episode.chars = now

    def forget(self, id_: str, owner: str = "") -> bool:
        """Let go of an episode; whether there was one."""
        episode = self._held.pop(owner + id_, None)
        if episode is None:
            return False
        self._over.pop(episode.id, None)
        self._budget.episodes -= 1
        self._budget.chars -= episode.chars
        return True

    def forget_one_over(self) -> bool:
        """Let go of the episode that has been over longest; whether there was one.

        It is held only so that its last step may be sent again, and playing goes before that.
        """
        return bool(self._over) and self.forget(next(iter(self._over)))

    def forget_idle(self) -> int:
        """Let go of what nobody has touched for too long; how many those were."""
        oldest = self._clock() - self._budget.limits.idle_s
        idle = []
        for episode in self._held.values():  # the one touched longest ago comes first
            if episode.touched > oldest:
                break
            if not episode.busy:
                idle.append(episode.id)
        return sum(map(self.forget, idle))

    def end(self) -> None:
        """Let go of everything, and hold nothing more."""
        self._ended = True
        for id_ in list(self._held):
            self.forget(id_)
