"""Sessions: episodes that a server holds between requests, bounded in number, text and time."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from ..envs import State
from .limits import ServiceLimits
from .messages import Step
from .refused import Refused


class Session:
    """An episode, and what its last step came to: so a step may be sent twice.

    Attributes:
        state: the episode; ``None`` when it is over.
        pending: turn and digest of the reply of the step that is being taken.
        taken: done when that step is.
    """

    __slots__ = (
        "chars",
        "id",
        "outcome",
        "pending",
        "reply_hash",
        "state",
        "taken",
        "touched",
        "turn",
    )

    def __init__(self, id_: str, state: State) -> None:
        self.id = id_
        self.state: State | None = state
        self.pending: tuple[int, bytes] | None = None
        self.taken: asyncio.Future[Any] | None = None
        self.turn, self.reply_hash = 0, b""
        self.outcome: dict[str, Any] | None = None
        self.chars = sum(len(m["content"]) for m in state.task.messages)
        self.touched = 0.0

    def begin(self, reply: str) -> None:
        """Note that a step is being taken."""
        self.pending = self.turn, digest(reply)  # a thread counts the turn before it is over

    def is_taking(self, step: Step) -> bool:
        """Return whether this very step is being taken: it was sent again, say."""
        return self.pending is not None and self.pending == (step.turn, digest(step.reply))

    def note(self, outcome: dict[str, Any], *, over: bool) -> None:
        """Note what the step that is being taken came to."""
        assert self.pending is not None  # noqa: S101  # for the type
        self.turn += 1
        self.reply_hash, self.outcome = self.pending[1], outcome
        if over:
            self.state = None


def earlier(session: Session, step: Step) -> dict[str, Any] | None:
    """Return the answer to a step that was taken before, or ``None`` for a new one.

    Raises:
        Refused: the step cannot be taken.
    """
    if session.pending is not None:
        raise Refused(409, "busy", "a step of this episode is being taken: wait for its answer")
    if step.turn is not None and step.turn == session.turn - 1 and session.outcome is not None:
        if digest(step.reply) == session.reply_hash:
            return session.outcome
        raise Refused(409, "turn", f"turn {step.turn} was taken already, with another reply")
    if session.state is None:
        raise Refused(409, "over", "the episode is over: begin another")
    if step.turn is not None and step.turn != session.turn:
        raise Refused(409, "turn", f"expected turn {session.turn}, got {step.turn}")
    return None


def digest(reply: str) -> bytes:
    """Tell replies apart without keeping them."""
    return hashlib.sha256(reply.encode("utf-8", "surrogatepass")).digest()


class SessionBudget:
    """The memory limits of all sessions together, and of one token.

    Args:
        limits: bounds of all.
        share: of each bound, for one token.

    Attributes:
        episodes: sessions held, by token.
        chars: of their text, by token.
        stores: all that hold any.
    """

    def __init__(self, limits: ServiceLimits, share: float = 1.0) -> None:
        self.limits, self.share = limits, share
        self.episodes, self.chars = Counter[str](), Counter[str]()
        self.stores: set[SessionStore] = set()

    def room_for(self, owner: str, episodes: int, chars: int = 0) -> None:
        """Make room by forgetting sessions that are over, or refuse.

        Raises:
            Refused: 503.
        """
        while lack := self._lack(owner, episodes, chars):
            code, message = lack
            stores = [s for s in self.stores if code != "share" or s.owner == owner]
            if not any(store.forget_one_over() for store in stores):
                raise Refused(503, code, message, retry_s=1)

    def forget_idle(self) -> None:
        """Forget the sessions that nobody has touched for too long."""
        for store in self.stores:
            store.forget_idle()

    def _lack(self, owner: str, episodes: int, chars: int) -> tuple[str, str] | None:
        """Return what there is no room for, as a code and a message."""
        limits = self.limits
        for code, held, more, most, unit in (
            ("episodes", self.episodes, episodes, limits.episodes, "episodes"),
            ("memory", self.chars, chars, limits.held_mib * 2**18, "characters of conversations"),
        ):
            own = int(self.share * most)
            if held.total() + more > most:
                has = f"the server holds {held.total()} of {most} {unit}"
            elif held[owner] + more > own:
                code, has = (
                    "share",
                    f"a token may hold {own} {unit} (token_share) and this has {held[owner]}",
                )
            else:
                continue
            return code, (
                f"{has}: no room for {more} more. Close episodes that are not needed, or come back"
            )
        return None


class SessionStore:
    """The sessions of one WebSocket, or of one token over HTTP.

    Args:
        budget: the server's.
        owner: the token's name.
        new_id: makes ids; they must not be guessed if others might use them.
        keep: hold sessions that are over, too, so that a last step may be sent again.
        clock: in seconds.
    """

    def __init__(
        self,
        budget: SessionBudget,
        owner: str,
        new_id: Callable[[], str],
        *,
        keep: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget, self.owner, self._new_id = budget, owner, new_id
        self.keep, self._clock = keep, clock
        self._held: OrderedDict[str, Session] = OrderedDict()
        self._over: OrderedDict[str, None] = OrderedDict()
        budget.stores.add(self)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, states: list[State]) -> list[Session]:
        """Hold episodes that have begun.

        Raises:
            Refused: there is no room, or the client has left; then none is held.
        """
        if self not in self._budget.stores:  # its client has disconnected
            raise Refused(410, "gone", "the connection has ended, and its episodes with it")
        new = [Session(self._new_id(), state) for state in states]
        chars = sum(session.chars for session in new)
        self.forget_idle()
        self._budget.room_for(self.owner, len(new), chars)
        now = self._clock()
        for session in new:
            session.touched = now
            self._held[session.id] = session
        self._budget.episodes[self.owner] += len(new)
        self._budget.chars[self.owner] += chars
        return new

    def get(self, id_: str) -> Session | None:
        """Return a session, now the last to be forgotten."""
        session = self._held.get(id_)
        if session is not None:
            session.touched = self._clock()
            self._held.move_to_end(id_)
        return session

    def settle(self, session: Session) -> None:
        """Recount a session's text after a step; close it if it is over and not kept."""
        session.pending = session.taken = None
        if session.id not in self._held:  # closed by another request
            return
        if session.state is None and not self.keep:
            self.forget(session.id)
            return
        now = 0
        if session.state is not None:
            now = sum(len(m["content"]) for m in session.state.messages)
        elif session.outcome is not None:
            self._over[session.id] = None
            now = sum(len(m["content"]) for m in session.outcome["messages"])
        self._budget.chars[self.owner] += now - session.chars
        session.chars = now

    def forget(self, id_: str) -> bool:
        """Drop a session; return whether there was one."""
        session = self._held.pop(id_, None)
        if session is None:
            return False
        self._over.pop(id_, None)
        self._budget.episodes[self.owner] -= 1
        self._budget.chars[self.owner] -= session.chars
        return True

    def forget_one_over(self) -> bool:
        """Drop the session that has been over longest; return whether there was one.

        It is held only so that its last step may be sent again, and playing goes before that.
        """
        return bool(self._over) and self.forget(next(iter(self._over)))

    def forget_idle(self) -> int:
        """Drop what nobody has touched for too long; return how many those were."""
        oldest = self._clock() - self._budget.limits.idle_s
        idle = []
        for session in self._held.values():  # least recently used first
            if session.touched > oldest:
                break
            if session.pending is None:
                idle.append(session.id)
        return sum(map(self.forget, idle))

    def end(self) -> None:
        """Drop everything, and hold nothing more."""
        self._budget.stores.discard(self)
        for id_ in list(self._held):
            self.forget(id_)
