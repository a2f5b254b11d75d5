"""uvicorn's connections, of which none waits for ever or fills the memory."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from .in_flight import Reservation
from .limits import ServiceLimits
from .refused import Refused
from .service import EnvironmentService

FRAGMENTS = 4096
"""Of one WebSocket message: a fragment of one byte costs the server sixty."""


class Connections:
    """HTTP connections that have no request under way, those that wait longest first.

    Args:
        limits: after ``read_s`` they are closed.
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self.limits = limits
        self._waiting: dict[HTTPProtocol, float] = {}

    def note(self, connection: HTTPProtocol, *, waits: bool) -> None:
        """Note whether a connection waits for a request."""
        if waits:
            self._waiting.setdefault(connection, time.monotonic())
        else:
            self._waiting.pop(connection, None)

    def close_late(self) -> None:
        """Close those that have waited too long."""
        oldest = time.monotonic() - self.limits.read_s
        for connection in [c for c, since in self._waiting.items() if since < oldest]:
            connection.transport.abort()


class HTTPProtocol(H11Protocol):
    """HTTP/1.1; uvicorn alone waits for ever for the first request, and for incomplete headers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._note()

    def data_received(self, data: bytes) -> None:
        """Take some."""
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._note()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the connection to a WebSocket."""
        super().handle_websocket_upgrade(event)
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._note()

    def _note(self) -> None:
        is_open = self in self.connections
        busy = self.cycle is not None and not self.cycle.response_complete
        self.config.app.state.connections.note(self, waits=is_open and not busy)  # type: ignore[union-attr]  # a FastAPI


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket whose incomplete message, and unread answers to pings, are bounded."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with nothing in flight."""
        super().connection_made(transport)
        self._service: EnvironmentService = self.config.app.state.service  # type: ignore[union-attr]  # a FastAPI
        self._held = Reservation(self._service.in_flight)

    def connection_lost(self, exc: Exception | None) -> None:
        """Hold nothing any more."""
        super().connection_lost(exc)
        self._held.resize(0)

    def data_received(self, data: bytes) -> None:
        """Take some; close if there is no room for a message that is incomplete."""
        super().data_received(data)
        if self.disconnected or self.transport.is_closing():
            return
        try:
            self._held.resize(len(self.conn.reader.buffer) + sum(map(len, self.frames)))
        except Refused as refused:
            self._service.metrics.refused(refused)
            self._fail(1013, refused.code)

    def handle_ping(self) -> None:
        """Answer a client that reads; else the answers pile up here."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment."""
        if len(self.frames) < FRAGMENTS:
            super().handle_cont(event)
        else:
            self._fail(1009, f"more than {FRAGMENTS} fragments")

    def _fail(self, code: int, reason: str) -> None:
        """Close with a reason."""
        if self.close_sent:
            return
        self.conn.fail(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent, self.frames = True, []
        self.transport.close()

    async def send(self, message: Any) -> None:
        """Send; a refusal completes the handshake, which uvicorn would log as an error."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True
