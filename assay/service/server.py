"""The server as a process: where it listens, how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import math
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from .connections import HTTPProtocol, WebSocketProtocol
from .limits import ServiceLimits
from .tokens import Tokens


def check_exposure(host: str, tokens: Tokens) -> None:
    """Refuse to be open to a network without tokens.

    Raises:
        ValueError: the address is not this machine's own, and there are no tokens.
    """
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and not tokens:
        raise ValueError(
            f"--host {host} is open to others, and there is no token: anybody could ask. Give "
            "--token-file FILE or set ASSAY_SERVE_TOKEN (python -c 'import secrets; "
            "print(secrets.token_urlsafe(32))' makes one), or listen on 127.0.0.1"
        )


def serve(
    app: FastAPI,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: ServiceLimits | None = None,
    drain_s: int = 30,
    certificate: Path | None = None,
    key: Path | None = None,
    listening: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; then finish what was begun.

    Args:
        app: what :func:`create_app` gave.
        host: an address of this machine.
        port: 0 for any that is free.
        limits: those of the application.
        drain_s: how long requests under way may take to end.
        certificate: for TLS, a chain in PEM; with ``key``.
        key: its private key.
        listening: told the address once there is one.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
    """
    limits = limits or ServiceLimits()
    config = configure(
        app, limits, drain_s=drain_s, ssl_certfile=certificate, ssl_keyfile=key, lifespan="on"
    )
    _allow_files(limits.connections + limits.silent + limits.sockets + 512)
    with listen(host, port, limits) as listener:
        server = uvicorn.Server(config)
        with _hears_sigterm(server):
            if listening is not None:
                listening(url_of(listener, secure=certificate is not None))
            asyncio.run(server.serve(sockets=[listener]))


def configure(
    app: FastAPI, limits: ServiceLimits, drain_s: int = 30, **more: Any
) -> uvicorn.Config:
    """Return uvicorn's settings for an application."""
    # Its warnings tell of requests that are none: as many lines as somebody cares to send.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return uvicorn.Config(
        app,
        http=HTTPProtocol,
        ws=WebSocketProtocol,
        ws_max_size=limits.body_bytes,
        ws_per_message_deflate=False,  # a bomb of 8 MiB is small on the wire
        timeout_keep_alive=math.ceil(limits.read_s),
        timeout_graceful_shutdown=drain_s,
        h11_max_incomplete_event_size=32 * 2**10,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        **more,
    )


def listen(host: str, port: int, limits: ServiceLimits) -> socket.socket:
    """Return a socket that listens.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio leaves Nagle's algorithm on: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # ends connections whose clients do not read
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


def _allow_files(count: int) -> None:
    """Raise the soft limit of open files, which is 1024 in many a shell, as far as is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextlib.contextmanager
def _hears_sigterm(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGTERM end it from now on: its own handler comes only when it serves."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    before = signal.signal(signal.SIGTERM, server.handle_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
