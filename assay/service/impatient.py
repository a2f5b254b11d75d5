"""Connections that do not wait for ever: for headers, for a reader, for the end of a message."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import State

from .in_flight import Reservation
from .refused import Refused

ENOUGH = 32 * 2**10
"""Bytes of messages that wait; with more a WebSocket is not read."""

_EACH = 256
"""What a message costs beside its bytes."""

SMALL = 16 * 2**10
"""Bytes of a message that may be answered at once."""

_TURN_S = 0.005
"""How long messages of one packet are answered before other sockets have their turn."""

FRAGMENTS = 4096
"""Of one WebSocket message: a fragment of one byte costs the server sixty."""


class _Impatient:
    """Cuts a connection off whose client reads nothing of its answer for too long."""

    read_s: float = 30.0
    transport: Any
    _stalled: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """The client does not read: wait so long and no longer."""
        super().pause_writing()  # type: ignore[misc]  # that of the protocol beside it
        loop = asyncio.get_running_loop()
        self._at_ease()
        self._stalled = loop.call_later(self.read_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()  # type: ignore[misc]  # as above
        self._at_ease()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._at_ease()
        super().connection_lost(exc)  # type: ignore[misc]  # as above

    def _at_ease(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class ImpatientHTTP(_Impatient, H11Protocol):
    """HTTP/1.1, of which the headers of every request must be there in time.

    Between requests uvicorn's keep-alive sees to it; but it waits for ever for the rest of headers
    of which a byte has come.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for headers."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take some; where a request begins with it wait for the rest of its headers."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._wait_no_more()
        elif self._late is None and (before is None or before.response_complete):
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._late = loop.call_later(self.read_s, self._end_if_silent)

    def _wait_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end_if_silent(self) -> None:
        self._late = None
        if self.transport.get_protocol() is self:  # and no WebSocket by now
            self.transport.abort()


class ImpatientWebSocket(_Impatient, WebSocketsSansIOProtocol):
    """A WebSocket, of which a message may be in so many fragments and no more.

    It is read while few messages wait and its client reads: each ping is answered, and answers
    that nobody reads would pile up.
    """

    at_once: Callable[[str], str | None] | None = None
    """Answers a short message where it is read; ``None`` for one that must wait for something."""

    share: Reservation | None = None
    """Of the bytes that all connections hold: of what is incomplete, waits or is being answered."""

    refused = ""
    """Why it was closed, where there was no room."""

    _waiting = 0
    _open = 0
    _listening = False
    _till = 0.0
    _got = 0
    _incomplete: asyncio.TimerHandle | None = None

    def handle_connect(self, event: Request) -> None:
        """Begin, and let what answers know of this connection."""
        super().handle_connect(event)
        self._sizes: deque[int] = deque()
        if not self.close_sent:
            self.scope["assay.connection"] = self  # type: ignore[typeddict-unknown-key]  # ASGI lets servers add their own

    def data_received(self, data: bytes) -> None:
        """Take some, and answer what can be for a while, before others have their turn."""
        self._till = self.loop.time() + _TURN_S
        super().data_received(data)
        self._count()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hold nothing any more."""
        super().connection_lost(exc)
        self._complete()
        if self.share is not None:
            self.share.hold(0)
        self.share = None

    def answered(self, size: int) -> None:
        """A message of so many bytes, as its :meth:`receive` told, is no longer held."""
        self._open -= size
        self._count()

    def _count(self) -> None:
        """Hold what is held; there must be room for it, and messages must become complete."""
        if self.disconnected:
            return
        incomplete = len(self.conn.reader.buffer) + sum(map(len, self.frames))
        if not incomplete:
            self._complete()
        elif self._incomplete is None:
            self._incomplete = self.loop.call_later(self.read_s, self._end_if_incomplete, self._got)
        if self.share is not None and incomplete + self._open != self.share.bytes:
            try:
                self.share.hold(incomplete + self._open)
            except Refused as refused:
                self._refuse(refused)

    def _complete(self) -> None:
        if self._incomplete is not None:
            self._incomplete.cancel()
            self._incomplete = None

    def _end_if_incomplete(self, got: int) -> None:
        """End it where no message has come whole for so long; but not where it was not read."""
        self._incomplete = None
        if got == self._got and self._waiting <= ENOUGH and self.writable.is_set():
            self.transport.abort()
        else:
            self._count()

    def _refuse(self, refused: Refused) -> None:
        """Close with "try again later"."""
        if self.close_sent or self.transport.is_closing():
            return
        self.refused = refused.code
        self.conn.fail(1013, refused.code)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent, self.frames = True, []
        self.transport.close()

    def pause_writing(self) -> None:
        """The client does not read: neither is it read."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._read_on()

    def send_receive_event_to_app(self) -> None:
        """Hand a message on. Unlike uvicorn's it does not stop reading at each: two calls less."""
        size = sum(map(len, self.frames))
        self._got += 1
        if size <= SMALL and self._is_free() and self._answered():
            return
        self.read_paused = True  # then uvicorn leaves the transport as it is
        super().send_receive_event_to_app()
        if self.close_sent:  # it was let go of: what is to come is the client's goodbye
            return
        self._waiting += size + _EACH
        self._open += size + _EACH
        self._sizes.append(size + _EACH)
        if self._waiting > ENOUGH:
            self.transport.pause_reading()

    async def receive(self) -> Any:
        """The next message."""
        self._listening = True
        message = await self.queue.get()
        self._listening = False
        if message["type"] == "websocket.receive":
            message["assay.bytes"] = self._sizes.popleft()  # type: ignore[typeddict-unknown-key]  # as above
        if self.queue.empty():
            self._waiting = 0
            self._read_on()
        return message

    def _is_free(self) -> bool:
        """Whether nothing is before a message, and its answer can be written."""
        return (
            self._listening
            and self.at_once is not None
            and self.curr_msg_data_type == "text"
            and self.queue.empty()
            and self.writable.is_set()
            and self.conn.state is State.OPEN
            and self.loop.time() < self._till
        )

    def _answered(self) -> bool:
        """Answer a message here and now, if that can be: a task costs as much again."""
        try:
            text = b"".join(self.frames).decode()
        except UnicodeDecodeError:
            return False
        answer = self.at_once(text) if self.at_once is not None else None
        if answer is None:
            return False
        self.frames = []
        self.conn.send_text(answer.encode())
        self.transport.write(b"".join(self.conn.data_to_send()))
        return True

    def _read_on(self) -> None:
        if self._waiting <= ENOUGH and self.writable.is_set():
            self.transport.resume_reading()

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment, or end the connection."""
        if len(self.frames) >= FRAGMENTS:
            self.frames = []
            self.transport.abort()
            return
        super().handle_cont(event)

    async def send(self, message: Any) -> None:
        """Send; a refusal completes the handshake, which uvicorn would call an error and log."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True


def protocols(read_s: float) -> tuple[type[ImpatientHTTP], type[ImpatientWebSocket]]:
    """Both, with this patience."""
    http = type("HTTP", (ImpatientHTTP,), {"read_s": read_s})
    websocket = type("WebSocket", (ImpatientWebSocket,), {"read_s": read_s})
    return http, websocket
