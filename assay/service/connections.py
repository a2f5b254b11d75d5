"""uvicorn's connections, of which none waits for ever or fills the memory."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from .in_flight import Reservation
from .limits import ServiceLimits
from .metrics import Metrics
from .refused import Refused
from .service import EnvironmentService

FRAGMENTS = 4096
"""Of one WebSocket message: a fragment of one byte costs the server sixty."""


YOUNG_S = 5.0
"""How old a silent connection is before it counts: its client, or this server, may be busy."""


class Connections:
    """HTTP connections that have no request in progress, those that wait longest first.

    A silent one has not sent a request yet. If there are more than ``limits.silent``, or more than
    a quarter of that from one address, the oldest are closed.

    Args:
        limits: bounds; after ``read_s`` without a request a connection is closed.
        metrics: where the silent ones that were closed are counted.
    """

    def __init__(self, limits: ServiceLimits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self._most = limits.connections + limits.silent + limits.sockets
        self._silent: dict[HTTPProtocol, float] = {}
        self._idle: dict[HTTPProtocol, float] = {}
        self._silent_of: Counter[str] = Counter()

    def opened(self, connection: HTTPProtocol) -> None:
        """Note a new connection; if there are too many of all kinds, one that waits is closed."""
        if len(connection.connections) > self._most:
            for waiting in (self._idle, self._silent):
                if waiting:
                    self._close(next(iter(waiting)))
                    break
        self._silent[connection] = time.monotonic()
        self._silent_of[connection.address] += 1

    def waits(self, connection: HTTPProtocol) -> None:
        """Note that a connection waits for its next request."""
        if connection not in self._silent:
            self._idle.setdefault(connection, time.monotonic())

    def forget(self, connection: HTTPProtocol) -> None:
        """Note that a connection waits no more."""
        self._idle.pop(connection, None)
        if self._silent.pop(connection, None) is not None:
            self._silent_of[connection.address] -= 1
            if not self._silent_of[connection.address]:
                del self._silent_of[connection.address]

    def close_late(self) -> None:
        """Close those that have waited too long, or that are too many.

        It runs beside the reading of requests, and not when a connection comes: what has come in
        was read before.
        """
        now, most = time.monotonic(), self.limits.silent
        for connection, since in [*self._silent.items()]:
            many = len(self._silent) > most or self._silent_of[connection.address] > most // 4
            if now - since > (min(YOUNG_S, self.limits.read_s) if many else self.limits.read_s):
                self._close(connection, 503 if many else 408)
        for connection, since in [*self._idle.items()]:
            if now - since > self.limits.read_s:
                self._close(connection)
        self.metrics.gauges["silent_connections"].set(len(self._silent))

    def _close(self, connection: HTTPProtocol, status: int = 503) -> None:
        if connection in self._silent:
            message = (
                f"connections that send no request are closed, now one of {connection.address}"
            )
            self.metrics.refused(Refused(status, "silent", message))
        self.forget(connection)
        connection.transport.abort()


class HTTPProtocol(H11Protocol):
    """HTTP/1.1; uvicorn alone waits for ever for the first request, and for incomplete headers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._all: Connections = self.config.app.state.connections  # type: ignore[union-attr]  # a FastAPI
        self._all.opened(self)

    def data_received(self, data: bytes) -> None:
        """Take some; a request may begin with it."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._all.forget(self)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, unless it is there."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._all.waits(self)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the connection to a WebSocket."""
        self._all.forget(self)
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._all.forget(self)
        super().connection_lost(exc)


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
