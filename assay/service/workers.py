"""Several processes that serve one address; one that ends is started again."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from typing import Any

from fastapi import FastAPI
from prometheus_client.multiprocess import mark_process_dead

from .limits import ServiceLimits
from .process import configure, listen, run, url_of

_log = logging.getLogger("assay.service")


def supervise(
    make_app: Callable[[], FastAPI],
    workers: int,
    *,
    host: str,
    port: int,
    limits: ServiceLimits,
    listening: Callable[[str], None] | None,
    settings: dict[str, Any],
) -> None:
    """Serve with several processes until SIGTERM or SIGINT; then let them finish.

    The kernel spreads connections over the sockets, one for each worker. This process keeps the
    sockets, so connections that come while a worker is started again wait for it.

    Args:
        make_app: makes the application in a worker; it must pickle.
        workers: processes.
        host: an address of this machine.
        port: 0 for any that is free.
        limits: those of each worker.
        listening: called with the address once there is one.
        settings: of uvicorn.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
        RuntimeError: a worker ended before it served.
    """
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-serve-"))
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # of the workers, which it sums
        stack.callback(os.environ.pop, "PROMETHEUS_MULTIPROC_DIR")
        with listen(host, port, limits) as alone:  # nobody else's port, shared or not
            port = alone.getsockname()[1]
        public = [listen(host, port, limits, shared=True) for _ in range(workers)]
        paths = [f"{folder}/{index}.sock" for index in range(workers)]
        private = [_listen_here(path) for path in paths]
        for listener in (*public, *private):
            stack.enter_context(listener)

        def start(index: int) -> tuple[SpawnProcess, Event]:
            serving = context.Event()
            sockets = (public[index], private[index])
            process = context.Process(
                target=_work, args=(index, make_app, sockets, paths, serving, settings)
            )
            process.start()
            return process, serving

        running = [start(index) for index in range(workers)]
        stopping = threading.Event()

        def stop(*_signal: object) -> None:
            stopping.set()
            for process, _ in running:
                process.terminate()

        before = [(number, signal.signal(number, stop)) for number in _SIGNALS]
        try:
            if listening is not None:
                listening(url_of(public[0], secure=bool(settings.get("ssl_certfile"))))
            started = False
            while not stopping.is_set():
                connection.wait([process.sentinel for process, _ in running], timeout=1.0)
                started = started or all(serving.is_set() for _, serving in running)
                for index, (process, _) in enumerate(running):
                    if process.is_alive() or stopping.is_set():
                        continue
                    if not started:
                        raise RuntimeError(
                            f"worker {index} ended before it served, with exit code "
                            f"{process.exitcode}: its error is above"
                        )
                    _log.error(
                        "worker %d ended with exit code %s, and its episodes with it: it is "
                        "started again",
                        index,
                        process.exitcode,
                    )
                    mark_process_dead(process.pid)  # type: ignore[no-untyped-call]  # it has no types
                    time.sleep(1.0)  # one that cannot start does not keep a core busy
                    running[index] = start(index)
        finally:
            stop()
            for process, _ in running:
                process.join()
            for number, handler in before:
                signal.signal(number, handler)


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _listen_here(path: str) -> socket.socket:
    """Return a socket that only processes of this user can connect to."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(2048)
    return listener


def _work(
    index: int,
    make_app: Callable[[], FastAPI],
    sockets: tuple[socket.socket, ...],
    paths: list[str],
    serving: Event,
    settings: dict[str, Any],
) -> None:
    """Be a worker."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    app = make_app()
    app.state.peers.join(index, paths, secure=bool(settings.get("ssl_certfile")))
    run(configure(app, **settings), sockets, serving.set)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
