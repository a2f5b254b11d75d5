"""Sessions: episodes that a server holds between requests, bounded in number, text and time."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ..envs import State
from .limits import Refused, ServiceLimits
from .schemas import OneStep, Outcome


class Client:
    """The holder of sessions: a token over HTTP, or one WebSocket.

    Args:
        owner: the token's name.
        prefix: of its ids over HTTP, which cannot be guessed; a WebSocket's count from 1, and its
            episodes are forgotten when they are over.
    """

    def __init__(self, owner: str, prefix: str = "") -> None:
        self.owner, self.prefix, self.gone = owner, prefix, False
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        """Return the id of another session."""
        if self.prefix:
            return self.prefix + secrets.token_urlsafe(16)
        return str(next(self._numbers))


class Session:
    """An episode, and the outcome of its last step, so that a step may be sent twice.

    Attributes:
        state: the episode; ``None`` when it is over.
        turn: steps that have begun.
        outcome: of the last one, once that is taken.
    """

    def __init__(self, id_: str, client: Client, state: State, now: float) -> None:
        self.id, self.client, self.touched = id_, client, now
        self.state: State | None = state
        self.turn, self._reply = 0, b""
        self.outcome: asyncio.Future[Outcome] | None = None
        self.chars = _chars(state.task.messages)

    @property
    def busy(self) -> bool:
        """Whether a step is being taken."""
        return self.outcome is not None and not self.outcome.done()

    def begin(self, step: OneStep) -> bool:
        """Begin a step, unless it is the last one sent again: then ``outcome`` is the answer.

        Raises:
            Refused: 409 if the step cannot be taken.
        """
        reply = hashlib.sha256(step.reply.encode("utf-8", "surrogatepass")).digest()
        last = self.outcome is not None and step.turn == self.turn - 1
        if last and reply == self._reply:
            return False
        if self.busy:
            raise Refused(409, "busy", "a step of this episode is being taken: wait for its answer")
        if last:
            raise Refused(409, "turn", f"turn {step.turn} was taken already, with another reply")
        if self.state is None:
            raise Refused(409, "over", "the episode is over: begin another")
        if step.turn is not None and step.turn != self.turn:
            raise Refused(409, "turn", f"expected turn {self.turn}, got {step.turn}")
        self.turn, self._reply = self.turn + 1, reply
        self.outcome = asyncio.get_running_loop().create_future()
        return True


class SessionStore:
    """All sessions of a process, within the memory limits of all and of one token.

    Attributes:
        episodes: sessions held, by token.
        chars: of their text, by token.
    """

    def __init__(
        self, limits: ServiceLimits, share: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits, self.share, self._clock = limits, share, clock
        self.episodes, self.chars = Counter[str](), Counter[str]()
        self._held: OrderedDict[tuple[Client, str], Session] = OrderedDict()  # oldest use first
        self._over: OrderedDict[Session, None] = OrderedDict()  # kept so that steps may be repeated

    def add(self, client: Client, states: Sequence[State]) -> list[Session]:
        """Hold episodes that have begun.

        Raises:
            Refused: 503 if there is no room, 410 if the client has disconnected.
        """
        if client.gone:
            raise Refused(410, "gone", "the connection has ended, and its episodes with it")
        now = self._clock()
        new = [Session(client.new_id(), client, state, now) for state in states]
        chars = sum(session.chars for session in new)
        self.room_for(client.owner, len(new), chars)
        self._held.update({(client, session.id): session for session in new})
        self.episodes[client.owner] += len(new)
        self.chars[client.owner] += chars
        return new

    def get(self, client: Client, id_: str) -> Session | None:
        """Return a client's session, now the most recently used."""
        session = self._held.get((client, id_))
        if session is not None:
            session.touched = self._clock()
            self._held.move_to_end((client, id_))
        return session

    def settle(self, session: Session, outcome: Outcome | None) -> None:
        """Note the outcome of a step, ``None`` if it failed, and recount the session's text."""
        state, future = session.state, session.outcome
        assert state is not None and future is not None  # noqa: S101, PT018  # a step was begun
        if outcome is None:
            session.turn, session.outcome = session.turn - 1, None
            future.cancel()
        else:
            future.set_result(outcome)
        messages: Sequence[Any] = state.messages
        if state.ended:
            session.state, messages = None, outcome["messages"] if outcome else ()
        if (session.client, session.id) not in self._held:  # closed by another request
            return
        if state.ended and not session.client.prefix:
            self.forget(session.client, session.id)
            return
        if state.ended:
            self._over[session] = None
        now = _chars(messages)
        self.chars[session.client.owner] += now - session.chars
        session.chars = now

    def forget(self, client: Client, id_: str) -> bool:
        """Drop a session; return whether it existed."""
        session = self._held.pop((client, id_), None)
        if session is None:
            return False
        self._over.pop(session, None)
        self.episodes[client.owner] -= 1
        self.chars[client.owner] -= session.chars
        return True

    def forget_idle(self) -> None:
        """Drop the sessions that nobody has used for too long."""
        oldest = self._clock() - self.limits.idle_s
        idle = itertools.takewhile(lambda s: s.touched <= oldest, self._held.values())
        for session in [session for session in idle if not session.busy]:
            self.forget(session.client, session.id)

    def end(self, client: Client) -> None:
        """Drop all sessions of a client, and hold no more of them."""
        client.gone = True
        for key in [key for key in self._held if key[0] is client]:
            self.forget(*key)

    def room_for(self, owner: str, episodes: int, chars: int = 0) -> None:
        """Make room by forgetting sessions that are idle or over, or refuse.

        Raises:
            Refused: 503.
        """
        self.forget_idle()
        while (lack := self._lack(owner, episodes, chars)) is not None:
            own = lack.code == "share"
            over = (s for s in self._over if not own or s.client.owner == owner)
            if (session := next(over, None)) is None:
                raise lack
            self.forget(session.client, session.id)

    def _lack(self, owner: str, episodes: int, chars: int) -> Refused | None:
        """Return the refusal for want of room, if any."""
        limits = self.limits
        for code, held, more, most, unit in (
            ("episodes", self.episodes, episodes, limits.episodes, "episodes"),
            ("memory", self.chars, chars, limits.held_mib * 2**18, "characters of conversations"),
        ):
            has, share = "", int(self.share * most)
            if held.total() + more > most:
                has = f"the server holds {held.total()} of {most} {unit}"
            elif held[owner] + more > share:
                code = "share"  # of the token, not of the server
                has = f"a token may hold {share} {unit} (token_share) and this has {held[owner]}"
            if has:
                advice = "Close episodes that are not needed, or come back"
                return Refused(503, code, f"{has}: no room for {more} more. {advice}", retry_s=1)
        return None


def _chars(messages: Sequence[Any]) -> int:
    return sum(len(message["content"]) for message in messages)
