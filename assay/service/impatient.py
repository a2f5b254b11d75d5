"""Connections that do not wait for ever: for headers, for a reader, for the end of a message."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

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
    """HTTP/1.1, of which the headers must be there in time."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for headers."""
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._late = loop.call_later(self.read_s, self._end_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _end_if_silent(self) -> None:
        """No request so far: end it. After the first, uvicorn's keep-alive sees to it."""
        if self.cycle is None and self.transport.get_protocol() is self:
            self.transport.abort()


class ImpatientWebSocket(_Impatient, WebSocketsSansIOProtocol):
    """A WebSocket, of which a message may be in so many fragments and no more."""

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
