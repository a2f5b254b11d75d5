"""Connections that do not wait for ever: for headers, for a reader, for the end of a message."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

ENOUGH = 32 * 2**10
"""Bytes of messages that wait; with more a WebSocket is not read."""

_EACH = 256
"""What a message costs beside its bytes."""

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

    _waiting = 0

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
        self.read_paused = True  # then uvicorn leaves the transport as it is
        super().send_receive_event_to_app()
        if self.close_sent:  # it was let go of: what is to come is the client's goodbye
            return
        self._waiting += size + _EACH
        if self._waiting > ENOUGH:
            self.transport.pause_reading()

    async def receive(self) -> Any:
        """The next message."""
        message = await self.queue.get()
        if self.queue.empty():
            self._waiting = 0
            self._read_on()
        return message

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
