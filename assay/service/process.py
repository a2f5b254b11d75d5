"""A process that serves: uvicorn's settings, the socket, and signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from fastapi import FastAPI

from .connections import HTTPProtocol, WebSocketProtocol
from .limits import ServiceLimits


def configure(app: FastAPI, **more: Any) -> uvicorn.Config:
    """Return uvicorn's settings for an application."""
    # It warns of every invalid request, so a client could flood the log.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    limits: ServiceLimits = app.state.service.limits
    return uvicorn.Config(
        app,
        http=HTTPProtocol,
        ws=WebSocketProtocol,
        ws_max_size=limits.body_bytes,
        ws_per_message_deflate=False,  # a bomb of 8 MiB is small on the wire
        timeout_keep_alive=math.ceil(limits.read_s),
        h11_max_incomplete_event_size=32 * 2**10,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        **more,
    )


def listen(host: str, port: int, limits: ServiceLimits, *, shared: bool = False) -> socket.socket:
    """Return a socket that listens.

    Args:
        host: an address of this machine.
        port: 0 for any that is free.
        limits: after ``read_s`` a connection ends whose client does not read.
        shared: let others that are shared listen at the same port.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio leaves Nagle's algorithm on: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
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


def run(
    config: uvicorn.Config, sockets: Sequence[socket.socket], began: Callable[[], object]
) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was begun; call ``began`` at the start."""
    limits: ServiceLimits = config.app.state.service.limits  # type: ignore[union-attr]  # a FastAPI
    allow_files(limits.connections + limits.silent + limits.sockets + 512)
    server = uvicorn.Server(config)
    with handling_sigterm(server):
        began()
        asyncio.run(server.serve(sockets=[*sockets]))


def allow_files(count: int) -> None:
    """Raise the soft limit of open files, which is 1024 in many a shell, as far as is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextlib.contextmanager
def handling_sigterm(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGTERM end the server from now on: its own handler comes only when it serves."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    before = signal.signal(signal.SIGTERM, server.handle_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
