"""Warm slots: started in the background, lent for one run at a time, replaced when they break."""

from __future__ import annotations

import atexit
import contextlib
import logging
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator

from ..backends.backend import Backend
from ..backends.forks import call_after_fork
from ..backends.slot import Slot, SlotBroken
from ..errors import SandboxUnavailable
from .threads import Threads

RUNS_PER_SLOT = 1_000
RUNS_MEANWHILE = 500  # while the replacement of a slot that has made its runs starts
STARTS_AT_ONCE = 2  # container daemons get slower, not faster, with more
FAILURES_TO_OPEN = 3
COOLDOWN_S = 30.0

_CLOSED = "the sandbox is closed: make a new one"
_log = logging.getLogger(__name__)


class _Waiter:
    """Somebody in the line: wakes alone, with a slot or with the reason why there is none."""

    def __init__(self, fresh: bool) -> None:
        self.fresh = fresh
        self.slot: Slot | None = None
        self.refusal = ""
        self.answered = threading.Event()


class Pool:
    """At most ``size`` slots, made when they are first wanted. Safe to use from many threads.

    Slots go to those who wait in the order in which they came; while one starts for somebody who
    wants it unused, those behind get the used ones. One that nobody wanted for ``idle_s`` seconds
    is closed; ``None`` keeps all.

    After a few failed starts in a row the pool starts none for a while: its circuit breaker. Slots
    that work serve on, and whom they cannot serve is refused. Only starts count. A slot that dies
    under a program may be the program's doing, and a program must not be able to stop everything.

    In a forked child the pool is empty and starts slots of its own.
    """

    def __init__(self, backend: Backend, size: int, *, idle_s: float | None = None) -> None:
        self.backend = backend
        self.size = size
        self.idle_s = idle_s
        self._reset()
        call_after_fork(self, "forget")
        _pools.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._line: dict[_Waiter, None] = {}
        self._idle: dict[Slot, float] = {}
        """Since when, the longest idle first."""
        self._lent: set[Slot] = set()
        self._starting = 0
        self._worn: set[Slot] = set()
        """Idle or lent, and used until their replacements, which are starting, are there."""
        self._spent: set[Slot] = set()
        """Lent, and not to be used again."""
        self._failures = 0
        self._cause = ""
        self._open_until = 0.0
        self._closed = threading.Event()
        self._shrinking = False
        # bwrap dies with the thread that started it, so these threads stay until close().
        self._threads = Threads(STARTS_AT_ONCE, "assay-slot")

    @contextlib.contextmanager
    def lend(self, *, fresh: bool = False) -> Iterator[Slot]:
        """Lend a slot. One that raises SlotBroken under its user is replaced.

        Args:
            fresh: one that has run nothing yet, so whatever breaks it is its user.

        Raises:
            SandboxUnavailable: no slot can be started, or the pool is closed.
        """
        slot = self._take(fresh)
        fine = False
        try:
            yield slot
            fine = True
        finally:
            self._give_back(slot, fine=fine)

    def discard(self, slot: Slot) -> None:
        """Replace a slot when its user is done with it."""
        with self._lock:
            self._spent.add(slot)

    def _take(self, fresh: bool) -> Slot:
        waiter = _Waiter(fresh)
        with self._lock:
            if self._closed.is_set():
                raise SandboxUnavailable(_CLOSED)
            self._line[waiter] = None
            self._serve()
        try:
            waiter.answered.wait()
        except BaseException:  # Ctrl-C: step out of the line, with or without a slot
            with self._lock:
                self._line.pop(waiter, None)
            if waiter.slot is not None:
                self._give_back(waiter.slot, fine=True)
            raise
        if waiter.slot is None:
            raise SandboxUnavailable(waiter.refusal)
        return waiter.slot

    def _refuse(self, waiters: Iterable[_Waiter], refusal: str) -> None:
        for waiter in list(waiters):
            del self._line[waiter]
            waiter.refusal = refusal
            waiter.answered.set()

    def _serve(self) -> None:
        """Answer those who wait, in their order, as far as that can be done now."""
        self._hand_out()
        if self._line and self._paused() and not self._starting:
            # Slots that work may serve some of them, when they come back.
            works = bool(self._idle) or self._lent > self._spent
            refused = [
                waiter
                for waiter in self._line
                if not works or (waiter.fresh and self._fit(waiter) is None)
            ]
            self._refuse(
                refused,
                f"{FAILURES_TO_OPEN} {self.backend.name} sandboxes in a row did not start: "
                f"{self._cause} (No program was judged.)",
            )

    def _hand_out(self) -> None:
        """Hand slots to those who wait, in their order, and start those that are missing."""
        coming = self._starting  # each is for one of those who wait
        for waiter in list(self._line):
            if len(self._lent) >= self.size:
                return
            slot = self._fit(waiter)
            if slot is not None:
                del self._idle[slot]
                self._lent.add(slot)
                del self._line[waiter]
                waiter.slot = slot
                waiter.answered.set()
            elif coming:
                coming -= 1
            elif not self._paused():
                # Of several hosts some may be lost.
                capacity = min(self.size, getattr(self.backend, "capacity", self.size))
                count = len(self._idle) + len(self._lent) + self._starting - len(self._worn)
                if count >= capacity:
                    if not self._idle:
                        return
                    if not (unworn := self._idle.keys() - self._worn):
                        continue
                    self._worn.add(unworn.pop())
                self._start_one()

    def _paused(self) -> bool:
        """Return whether no slots are started for now, as the last few did not come up."""
        return time.monotonic() < self._open_until

    def _fit(self, waiter: _Waiter) -> Slot | None:
        if waiter.fresh:
            return next((slot for slot in self._idle if not slot.runs), None)
        return next(reversed(self._idle), None)  # so that the others become idle for long

    def _retire(self, slot: Slot) -> None:
        """Close an idle slot, without waiting for it."""
        del self._idle[slot]
        self._worn.discard(slot)
        self._threads.submit(slot.close)

    def _start_one(self) -> None:
        self._starting += 1
        try:
            self._threads.submit(self._start)
        except RuntimeError as error:
            self._starting -= 1
            self._failures = FAILURES_TO_OPEN  # nothing would try again
            self._failed(str(error))

    def _start(self) -> None:
        slot = None
        cause = ""
        try:
            slot = self.backend.start()
        except SlotBroken as error:
            cause = str(error)
        except Exception as error:  # a bug here must not leave its waiter waiting for ever
            cause = f"{type(error).__name__}: {error}"
        with self._lock:
            self._starting -= 1
            unwanted = slot if self._closed.is_set() else None
            if slot is None:
                self._failed(cause)
            elif unwanted is None:
                self._arrived(slot)
            if not self._closed.is_set():
                self._serve()
                self._watch_idle()
        if unwanted is not None:
            unwanted.close()

    def _arrived(self, slot: Slot) -> None:
        self._failures = 0
        self._idle[slot] = time.monotonic()
        if self._worn:
            old = self._worn.pop()
            if old in self._idle:
                self._retire(old)
            else:
                self._spent.add(old)

    def _failed(self, cause: str) -> None:
        self._failures += 1
        self._cause = cause
        if self._worn:
            self._worn.pop()  # it asks again when it has made its next run
        if self._failures >= FAILURES_TO_OPEN:
            self._failures = FAILURES_TO_OPEN - 1  # after the pause one try decides
            self._open_until = time.monotonic() + COOLDOWN_S
            if working := len(self._idle) + len(self._lent - self._spent):
                _log.warning(
                    "%d %s sandboxes in a row did not start, so %d of %d serve alone and none is "
                    "started for %g s: %s",
                    *(FAILURES_TO_OPEN, self.backend.name, working, self.size, COOLDOWN_S, cause),
                )

    def _give_back(self, slot: Slot, *, fine: bool) -> None:
        with self._lock:
            self._lent.discard(slot)
            keep = fine and slot not in self._spent and not self._closed.is_set()
            if keep and slot.runs >= RUNS_PER_SLOT:
                # A worn one is better than none, where none comes up.
                keep = slot.runs < RUNS_PER_SLOT + RUNS_MEANWHILE or self._failures > 0
                if keep and slot not in self._worn and not self._paused():
                    self._worn.add(slot)
                    self._start_one()
            self._spent.discard(slot)
            if keep:
                self._idle[slot] = time.monotonic()
            else:
                self._worn.discard(slot)
            if not self._closed.is_set():
                self._serve()
                self._watch_idle()
                if not keep:
                    self._threads.submit(slot.close)
                    return
        if not keep:
            slot.close()

    def _watch_idle(self) -> None:
        """See to it that slots which nobody wants are closed in time."""
        if self.idle_s is not None and self._idle and not self._shrinking:
            with contextlib.suppress(RuntimeError):  # no thread starts when the interpreter ends
                threading.Thread(target=self._shrink, name="assay-idle", daemon=True).start()
                self._shrinking = True

    def _shrink(self) -> None:
        """Close what has been idle for too long, until nothing is idle."""
        idle_s = self.idle_s or 0.0
        closed = self._closed
        while not closed.is_set():
            now = time.monotonic()
            with self._lock:
                old = [slot for slot, since in self._idle.items() if since + idle_s <= now]
                for slot in old:
                    self._retire(slot)
                if not self._idle:
                    self._shrinking = False
                    return
                next_end = next(iter(self._idle.values())) + idle_s
            closed.wait(next_end - now)

    def close(self) -> None:
        """End every slot. Programs still running lose theirs."""
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            slots = [*self._idle, *self._lent]
            self._idle.clear()
            self._refuse(self._line, _CLOSED)
        for slot in slots:
            slot.close()
        self._threads.close(wait=True)
        self.backend.close()

    def drop(self) -> None:
        """Close without waiting: called where the owner is freed."""
        if self._closed.is_set() or sys.is_finalizing():
            return  # at the very end a thread would be started and never run
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=self.close, daemon=True).start()

    def forget(self) -> None:
        """Leave everything to the parent: called in a forked child."""
        for slot in [*self._idle, *self._lent]:
            slot.abandon()
        self._reset()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


atexit.register(_close_all)
