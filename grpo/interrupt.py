"""Ctrl-C, SIGTERM and hanging rollouts: a run ends between two optimizer steps."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from ..sandbox.pool import threads

_STOPS = (signal.SIGINT, signal.SIGTERM)


class Terminated(SystemExit):
    """SIGTERM, as schedulers send it; nothing that catches it ends the process with code 143."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)

    def __str__(self) -> str:
        return "terminated by SIGTERM"


class Signals:
    """Ctrl-C and SIGTERM during a run: at once where it may break off, else when asked for.

    As a context, it takes both signals. SIGTERM raises :class:`Terminated`, unless the program has
    a handler of its own; Ctrl-C does what it did before. A second one gets through at once. One
    that is still held at the end of the block is delivered then. Outside the main thread, where
    Python delivers no signals, it does nothing.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._held: list[int] = []
        self._open = False

    def __enter__(self) -> Self:
        if in_main_thread():
            self._before = {n: h for n in _STOPS if (h := signal.getsignal(n)) is not None}
            for number in self._before:
                signal.signal(number, self._take)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if error is None:
            self.deliver()

    def deliver(self) -> None:
        """Obey a signal that is held back."""
        if self._held:
            self._obey(self._held.pop(0), None)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let signals through in the block."""
        self.deliver()
        self._open = True
        try:
            yield
        finally:
            self._open = False

    def _take(self, number: int, frame: Any) -> None:
        if self._open or number in self._held:
            self._obey(number, frame)
        else:
            self._held.append(number)

    def _obey(self, number: int, frame: Any) -> None:
        handler = self._before[number]
        if number == signal.SIGTERM and handler is signal.SIG_DFL:
            raise Terminated
        call_handler(number, handler, frame)


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM raise :class:`Terminated` in the block, so that what is open is closed."""
    with Signals() as signals, signals.at_once():
        yield


def call_handler(number: int, handler: Any, frame: Any) -> None:
    """Do with a signal what a handler, as ``signal.getsignal`` gives it, would have done."""
    if callable(handler):
        handler(number, frame)
    elif handler is signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def in_main_thread() -> bool:
    """Return whether this is the thread in which Python delivers signals."""
    return threading.current_thread() is threading.main_thread()


_WAITING = ("/threading.py", "/concurrent/futures/", threads.__file__, "/selectors.py")
_log = logging.getLogger(__name__)


class TrainingStopped(RuntimeError):
    """A check has stopped the run; a derived class names the cause."""


class RolloutTimeout(TrainingStopped):
    """A rollout takes longer than ``max_rollout_s`` allows; it is dropped."""


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Log where a block hangs after so many seconds (0: never), and stop it.

    Only the main thread can be stopped: in another, the stacks are logged and the block goes on.

    Raises:
        RolloutTimeout: it names the innermost frame of each thread that runs Python code.
    """
    if not seconds:
        yield
        return
    done, late = threading.Event(), list[str]()
    thread, before = threading.get_ident(), signal.getsignal(signal.SIGINT)
    main = in_main_thread() and before is not None  # a handler that is not Python's must stay

    def watch() -> None:
        if done.wait(seconds):
            return
        places, stacks = _running()
        _log.error("%s has taken more than %g s:\n%s", what, seconds, stacks)
        late.append(places)
        while main and not done.is_set():
            signal.pthread_kill(thread, signal.SIGINT)
            done.wait(1.0)  # cleaning up may hang as well: again

    def interrupt(number: int, frame: Any) -> None:
        if not late:
            call_handler(number, before, frame)
        elif not done.is_set():
            raise KeyboardInterrupt

    watcher = threading.Thread(target=watch, name="assay-watchdog", daemon=True)
    if main:
        signal.signal(signal.SIGINT, interrupt)
    watcher.start()
    try:
        try:
            yield
        finally:
            done.set()
    except BaseException:
        done.set()
        if not (late and main):
            raise
    finally:
        watcher.join()
        if main:
            signal.signal(signal.SIGINT, before)
    if late and main:
        raise RolloutTimeout(
            f"{what} has taken more than {seconds:g} s (max_rollout_s): {late[0]}. Give what hangs "
            "a time limit of its own, or raise max_rollout_s (0 for no limit), and resume"
        )


def _running() -> tuple[str, str]:
    """Describe the other threads that do not wait for work: innermost frames, and stacks."""
    names = {t.ident: t.name for t in threading.enumerate() if t is not threading.current_thread()}
    places, stacks = [], []
    for ident, frame in sys._current_frames().items():
        stack = traceback.extract_stack(frame)
        own = [f for f in stack if not any(part in f.filename for part in _WAITING)]
        if ident in names and own:
            at = own[-1]
            places.append(f"{names[ident]} is in {at.name} ({at.filename}:{at.lineno})")
            stacks.append(f"{names[ident]}:\n{''.join(traceback.format_list(stack))}")
    return "; ".join(places), "\n".join(stacks)
