"""Places that are started before a session wants them, for each image and its limits."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ..errors import SandboxError
from .bwrap import View
from .docker import ImageFacts, SessionContainer
from .limits import SessionLimits

Place = SessionContainer | View
Key = tuple[ImageFacts, SessionLimits]


class WarmPool:
    """Starts places, a few at one time, and keeps as many ahead as were asked for.

    Args:
        start: starts one; raises SandboxError.
        starters: starts at one time. A daemon is no faster with more.
    """

    def __init__(self, start: Callable[[Key], Place], starters: int) -> None:
        self._start = start
        self._turns = threading.BoundedSemaphore(starters)
        self._threads = ThreadPoolExecutor(starters, "assay-session-start")
        self._lock = threading.Lock()
        self._wanted: dict[Key, int] = {}
        self._ready: dict[Key, deque[Place]] = defaultdict(deque)
        self._coming: dict[Key, int] = defaultdict(int)
        self._closed = False

    def keep(self, key: Key, count: int) -> None:
        """Keep this many of a kind ahead, from now on."""
        with self._lock:
            self._wanted[key] = count
            surplus = [self._ready[key].popleft() for _ in range(len(self._ready[key]) - count)]
            self._refill(key)
        for place in surplus:
            place.end()

    def take(self, key: Key) -> Place:
        """Return a started place, or start one.

        Raises:
            SandboxError: it does not start.
        """
        while True:
            with self._lock:
                found = self._ready[key].popleft() if self._ready[key] else None
                self._refill(key)
            if found is None:
                with self._turns:
                    return self._start(key)
            if found.alive:
                return found
            found.end()

    def ready(self, key: Key) -> int:
        """Return how many of a kind are started and unused."""
        with self._lock:
            return len(self._ready[key])

    def _refill(self, key: Key) -> None:
        missing = self._wanted.get(key, 0) - len(self._ready[key]) - self._coming[key]
        for _ in range(0 if self._closed else missing):
            self._coming[key] += 1
            self._threads.submit(self._add, key)

    def _add(self, key: Key) -> None:
        place = None
        try:
            if not self._closed:
                with self._turns:
                    place = self._start(key)
        except SandboxError:  # whoever takes one starts it itself, and gets the cause
            self._wanted.pop(key, None)
        finally:
            with self._lock:
                self._coming[key] -= 1
                if place is not None and not self._closed:
                    self._ready[key].append(place)
                    place = None
            if place is not None:
                place.end()

    def close(self) -> None:
        """End what is unused, and start no more."""
        with self._lock:
            self._closed = True
            places = [place for ready in self._ready.values() for place in ready]
            self._ready.clear()
        for place in places:
            place.end()
        self._threads.shutdown(wait=True)
