"""Ctrl-C at a moment that does no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupt_later() -> Iterator[None]:
    """Hold back a Ctrl-C that comes in the block, and raise it when the block is done.

    For stretches that must be done whole or not at all. A second Ctrl-C gets through at once.
    Outside the main thread, where Python delivers no signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False
    before = signal.getsignal(signal.SIGINT)

    def remember(number: int, frame: Any) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
