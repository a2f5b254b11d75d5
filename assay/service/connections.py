"""uvicorn's connections, of which none waits for ever or fills the memory."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
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


class Connections:
    """HTTP connections that have no request under way, those that wait longest first.

    A silent one has not sent a request yet. The oldest silent ones make room for new connections:
    those of an address that has more than a quarter of ``limits.silent``, and of all addresses if
    there are more than that. One that is younger than a second may be about to ask, and stays as
    long as the sum of all bounds allows.

    Args:
        limits: bounds; after ``read_s`` without a request a connection is closed.
        metrics: where the closed ones are counted, as ``silent``.
    """

    def __init__(self, limits: ServiceLimits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self._most = limits.connections + limits.silent + limits.sockets
        self._silent: dict[HTTPProtocol, float] = {}
        self._idle: dict[HTTPProtocol, float] = {}
        self._silent_of: Counter[str] = Counter()

    def opened(self, connection: HTTPProtocol) -> None:
        """Note a new connection; an old one may make room for it."""
        address = connection.address
        self._silent[connection] = time.monotonic()
        self._silent_of[address] += 1
        if self._silent_of[address] > self.limits.silent // 4:
            self._close_oldest((c for c in self._silent if c.address == address), address)
        elif len(self._silent) > self.limits.silent:
            self._close_oldest(self._silent, "all addresses")
        if len(connection.connections) > self._most:
            self._close_oldest((*self._idle, *self._silent), "all addresses", least_s=0.0)
        self._observe()

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
            self._observe()

    def close_late(self) -> None:
        """Close those that have waited too long."""
        oldest = time.monotonic() - self.limits.read_s
        for connection, since in [*self._silent.items(), *self._idle.items()]:
            if since < oldest:
                if connection in self._silent:
                    self.metrics.refused(Refused(408, "silent", "no request came"))
                self.forget(connection)
                connection.transport.abort()

    def _close_oldest(
        self, connections: Iterable[HTTPProtocol], whose: str, least_s: float = 1.0
    ) -> None:
        oldest = next(iter(connections), None)
        if oldest is None:
            return
        since = self._silent.get(oldest) or self._idle[oldest]
        if time.monotonic() - since >= least_s:
            message = f"too many connections without a request from {whose}: the oldest is closed"
            self.metrics.refused(Refused(503, "silent", message))
            self.forget(oldest)
            oldest.transport.abort()

    def _observe(self) -> None:
        self.metrics.gauges["silent_connections"].set(len(self._silent))


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
