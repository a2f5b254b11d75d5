"""Serve an application: uvicorn's settings, the socket, worker processes and signals."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import resource
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess

from .limits import Refused, ServiceLimits
from .service import EnvironmentService
from .workers import worker_app

FRAGMENTS = 4096
"""Of one WebSocket message: a fragment of one byte costs the server sixty."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket whose incomplete message, and unread answers to pings, are bounded."""

    held = 0

    @property
    def _service(self) -> EnvironmentService:
        service: EnvironmentService = self.config.loaded_app.state.service
        return service

    def connection_lost(self, exc: Exception | None) -> None:
        """Hold nothing any more."""
        super().connection_lost(exc)
        self.held = self._service.in_flight.resize(self.held, 0)

    def data_received(self, data: bytes) -> None:
        """Take some; close if there is no room for a message that is incomplete."""
        super().data_received(data)
        if self.disconnected or self.transport.is_closing() or self.close_sent:
            return
        code, reason = 1009, f"more than {FRAGMENTS} fragments"
        if len(self.frames) <= FRAGMENTS:
            size = len(self.conn.reader.buffer) + sum(map(len, self.frames))
            try:
                self.held = self._service.in_flight.resize(self.held, size)
                return
            except Refused as refused:
                self._service.metrics.refused(refused)
                code, reason = 1013, refused.code
        self.conn.fail(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent, self.frames = True, []
        self.transport.close()

    def handle_ping(self) -> None:
        """Answer a client that reads; else the answers pile up here."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    async def send(self, message: Any) -> None:
        """Send; a refusal completes the handshake, which uvicorn would log as an error."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True


def configure(app: FastAPI | Callable[[], FastAPI], limits: ServiceLimits, **more: Any) -> Any:
    """Return uvicorn's settings for an application, or for a function that makes it."""
    return uvicorn.Config(
        app,
        factory=not isinstance(app, FastAPI),
        http="h11",
        ws=WebSocketProtocol,
        ws_max_size=limits.body_bytes,
        ws_per_message_deflate=False,  # a bomb of 8 MiB is small on the wire
        timeout_keep_alive=math.ceil(limits.read_s),
        h11_max_incomplete_event_size=32 * 2**10,
        lifespan="on",
        log_config=None,
        log_level="error",  # it warns of every invalid request, so a client could flood the log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_worker_healthcheck=60,
        **more,
    )


def listen(host: str, port: int, limits: ServiceLimits) -> socket.socket:
    """Return a socket that listens.

    Args:
        host: an address of this machine.
        port: 0 for any that is free.
        limits: after ``read_s`` a connection ends whose client does not read.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio leaves Nagle's algorithm on: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # ends those that are gone
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # not on macOS
            wait_ms = math.ceil(1000 * limits.read_s)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, wait_ms)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket, *, secure: bool = False) -> str:
    """Return the address of a socket that listens."""
    host, port = listener.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{name}:{port}"


def allow_files(count: int) -> None:
    """Raise the soft limit of open files, which is 1024 in many a shell, as far as is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Supervisor(Multiprocess):
    def keep_subprocess_alive(self) -> None:
        """Restart workers that have ended; one that ends while it is pinged is seen at once."""
        for process in self.processes:
            process.child_conn.close()  # else its end of the pipe stays open, and pings wait for it
        super().keep_subprocess_alive()


def serve(
    app: FastAPI | Callable[[], FastAPI],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: ServiceLimits | None = None,
    workers: int = 1,
    drain_s: int = 30,
    certificate: Path | None = None,
    key: Path | None = None,
    listening: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; then finish what was begun.

    Args:
        app: what :func:`create_app` gave, or a function that calls it. Several workers need the
            function, one that pickles: each makes its own application.
        host: an address of this machine.
        port: 0 for any that is free.
        limits: those of the application.
        workers: processes that serve the address together.
        drain_s: how long requests in progress may take to end.
        certificate: for TLS, a chain in PEM; with ``key``.
        key: its private key.
        listening: called with the address once there is one.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
        RuntimeError: a worker ended before it served.
        ValueError: there are several workers, and no function that makes their applications.
    """
    limits = limits or ServiceLimits()
    allow_files(limits.connections + limits.sockets + 2560)  # also connections without a request
    if workers > 1 and isinstance(app, FastAPI):
        raise ValueError(
            f"workers={workers} need a function that makes the application, which each calls: "
            "pass functools.partial(make, ...) of a function that calls create_app"
        )
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listen(host, port, limits))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-serve-")))
        made = app
        if workers > 1 and not isinstance(app, FastAPI):
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)  # of the workers, which it sums
            stack.callback(os.environ.pop, "PROMETHEUS_MULTIPROC_DIR")
            made = functools.partial(worker_app, app, folder)
        config = configure(
            made,
            limits,
            workers=workers,
            timeout_graceful_shutdown=drain_s,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        server = uvicorn.Server(config)
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                stack.callback(signal.signal, number, signal.getsignal(number))
            # uvicorn's own handler comes when it serves, and raises the signal again at the end.
            signal.signal(signal.SIGTERM, server.handle_exit)
        supervisor = _Supervisor(config, [listener]) if workers > 1 else None
        if listening is not None:
            listening(url_of(listener, secure=certificate is not None))
        if supervisor is None:
            server.run([listener])
            return
        supervisor.run()
        if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
            raise RuntimeError("a worker ended before it served: its error is above")
