"""Serve an environment: listening addresses and worker processes."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI

from .limits import ServiceLimits
from .process import configure, listen, run, url_of
from .tokens import Tokens
from .workers import supervise


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
    settings = {
        "timeout_graceful_shutdown": drain_s,
        "ssl_certfile": certificate,
        "ssl_keyfile": key,
    }
    if workers > 1:
        if isinstance(app, FastAPI):
            raise ValueError(
                f"workers={workers} need a function that makes the application, which each calls: "
                "pass functools.partial(make, ...) of a function that calls create_app"
            )
        supervise(
            app,
            workers,
            host=host,
            port=port,
            limits=limits,
            listening=listening,
            settings=settings,
        )
        return
    config = configure(app if isinstance(app, FastAPI) else app(), **settings)
    with listen(host, port, limits) as listener:
        url = url_of(listener, secure=certificate is not None)
        run(config, [listener], lambda: None if listening is None else listening(url))
