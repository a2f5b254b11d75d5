"""Ctrl-C and SIGTERM at a moment that does no harm."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STOPS = (signal.SIGINT, signal.SIGTERM)


class Terminated(SystemExit):
    """SIGTERM, as schedulers send it; nothing that catches it ends the process with code 143."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)

    def __str__(self) -> str:
        return "terminated by SIGTERM"


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM raise :class:`Terminated` in the block, so that what is open is closed.

    Where the program has a handler of its own, that stays. Outside the main thread, where Python
    delivers no signals, it does nothing.
    """
    if not in_main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def stop_later() -> Iterator[None]:
    """Hold back a Ctrl-C or SIGTERM that comes in the block until the block is done.

    For stretches that must be done whole or not at all. A second one gets through at once.
    Outside the main thread, where Python delivers no signals, it does nothing.
    """
    if not in_main_thread():
        yield
        return
    before = {n: handler for n in _STOPS if (handler := signal.getsignal(n)) is not None}
    held: list[int] = []

    def hold(number: int, frame: Any) -> None:
        if number in held:
            deliver(number, before[signal.Signals(number)], frame)
        held.append(number)

    for number in before:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for came in held[:1]:
        deliver(came, before[signal.Signals(came)], None)


def deliver(number: int, handler: Any, frame: Any) -> None:
    """Do with a signal what a handler, as ``signal.getsignal`` gives it, would have done."""
    if callable(handler):
        handler(number, frame)
    elif handler is signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _terminate(number: int, frame: Any) -> None:
    raise Terminated


def in_main_thread() -> bool:
    """Whether this is the thread that Python delivers signals in."""
    return threading.current_thread() is threading.main_thread()
