"""Warm slots: started in the background, lent for one run at a time, replaced when they break."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from .backend import Backend
from .errors import SandboxUnavailable
from .slot import Slot, SlotBroken

RUNS_PER_SLOT = 1_000
STARTS_AT_ONCE = 2  # container daemons get slower, not faster, with more
FAILURES_TO_OPEN = 3
COOLDOWN_S = 30.0


class Pool:
    """At most ``size`` slots, made when they are first wanted. Safe to use from many threads.

    After a few failed starts in a row the pool refuses everybody for a while: its circuit
    breaker. Only starts count. A slot that dies under a program may be the program's doing, and
    a program must not be able to stop everything.

    In a forked child the pool is empty and starts slots of its own.
    """

    def __init__(self, backend: Backend, size: int) -> None:
        self.backend = backend
        self.size = size
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[Slot] = []
        self._lent: set[Slot] = set()
        self._starting = 0
        self._waiting = 0
        self._failures = 0
        self._cause = ""
        self._open_until = 0.0
        self._closed = False
        # bwrap dies with the thread that started it, so these threads stay until close().
        self._starters = ThreadPoolExecutor(STARTS_AT_ONCE, thread_name_prefix="assay-slot")

    @contextlib.contextmanager
    def lend(self, *, fresh: bool = False) -> Iterator[Slot]:
        """A slot of one's own. One that raises SlotBroken under its user is replaced.

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
        slot.runs = RUNS_PER_SLOT

    def _take(self, fresh: bool) -> Slot:
        with self._changed:
            self._waiting += 1
            try:
                while True:
                    self._check_open()
                    fit = [slot for slot in self._idle if not (fresh and slot.runs)]
                    if fit:
                        self._idle.remove(fit[-1])
                        self._lent.add(fit[-1])
                        return fit[-1]
                    if self._idle and self._count() >= self._room():  # used ones only: make room
                        self._starters.submit(self._idle.pop().close)
                    self._start_if_wanted()
                    self._changed.wait()
            finally:
                self._waiting -= 1

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxUnavailable("the sandbox is closed: make a new one")
        if time.monotonic() < self._open_until:
            raise SandboxUnavailable(
                f"{FAILURES_TO_OPEN} {self.backend.name} sandboxes in a row did not start: "
                f"{self._cause} (No program was judged.)"
            )

    def _start_if_wanted(self) -> None:
        """Start a slot for somebody who waits, where there is room for one."""
        if self._starting < self._waiting and self._count() < self._room():
            self._starting += 1
            self._starters.submit(self._start)

    def _room(self) -> int:
        """Slots that there may be now: fewer where some of several hosts are lost."""
        return min(self.size, getattr(self.backend, "room", self.size))

    def _count(self) -> int:
        return len(self._idle) + len(self._lent) + self._starting

    def _start(self) -> None:
        slot = None
        cause = ""
        try:
            slot = self.backend.start()
        except SlotBroken as error:
            cause = str(error)
        except Exception as error:  # a bug here must not leave its waiter waiting for ever
            cause = f"{type(error).__name__}: {error}"
        with self._changed:
            self._starting -= 1
            if slot is not None:
                self._failures = 0
                if not self._closed:
                    self._idle.append(slot)
                    slot = None
            else:
                self._failures += 1
                self._cause = cause
                if self._failures >= FAILURES_TO_OPEN:
                    self._failures = FAILURES_TO_OPEN - 1  # after the pause one try decides
                    self._open_until = time.monotonic() + COOLDOWN_S
            self._changed.notify_all()
        if slot is not None:
            slot.close()

    def _give_back(self, slot: Slot, *, fine: bool) -> None:
        with self._changed:
            self._lent.discard(slot)
            keep = fine and slot.runs < RUNS_PER_SLOT and not self._closed
            if keep:
                self._idle.append(slot)
            self._changed.notify_all()
        if not keep:
            slot.close()

    def close(self) -> None:
        """End every slot. Programs still running lose theirs."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            slots = [*self._idle, *self._lent]
            self._idle.clear()
            self._changed.notify_all()
        for slot in slots:
            slot.close()
        self._starters.shutdown(wait=True)
        self.backend.close()

    def drop(self) -> None:
        """Close without waiting: called where the owner is freed."""
        with contextlib.suppress(RuntimeError):  # at exit no thread starts; close_all closes
            threading.Thread(target=self.close, daemon=True).start()

    def forget(self) -> None:
        """Leave everything to the parent: called in a forked child."""
        for slot in [*self._idle, *self._lent]:
            slot.abandon()
        self._reset()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool.forget()


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_close_all)
