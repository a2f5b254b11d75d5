"""A limit for rollouts: a verifier that never answers must not hold up a run without a word."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...sandbox.pool import threads
from .interrupt import deliver, in_main_thread

_WAITING = ("/threading.py", "/concurrent/futures/", threads.__file__, "/selectors.py")
_log = logging.getLogger(__name__)


class RolloutTimeout(RuntimeError):
    """A rollout takes longer than ``max_rollout_s`` allows; it is dropped."""


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Log where a block hangs after so many seconds, and stop it.

    Only the main thread can be stopped: in another, the stacks are logged and the block goes on.

    Args:
        seconds: 0 for no limit.
        what: names the block.

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
            deliver(number, before, frame)
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
    """The innermost frame of each other thread that does not wait for work, and their stacks."""
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
