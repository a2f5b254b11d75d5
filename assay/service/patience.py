"""Waiting for one message after the other, of which none may be too long in coming."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_Found = TypeVar("_Found")


class Patience:
    """A time limit for each of many waits of one task, with a timer that is seldom set.

    ``asyncio.timeout`` sets and cancels a timer for every wait: a tenth of what a message costs.
    Here one looks now and then whether the present wait has lasted too long, so a wait ends after
    its limit, and before twice that.

    Args:
        limit_s: of one wait.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._waits = self._seen = 0
        self._waiting = self._late = False
        self._timer = self._loop.call_later(limit_s, self._look)

    async def till(self, coming: Awaitable[_Found]) -> _Found:
        """What is awaited.

        Raises:
            TimeoutError: it did not come in time.
        """
        self._waits += 1
        self._waiting = True
        try:
            return await coming
        except asyncio.CancelledError:
            if not self._late or self._task is None or self._task.uncancel() > 0:
                raise
            raise TimeoutError from None
        finally:
            self._waiting = False

    def heard(self) -> None:
        """Something came another way."""
        self._waits += 1

    def end(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        if self._waiting and self._waits == self._seen and self._task is not None:
            self._late = True
            self._task.cancel()
            return
        self._seen = self._waits
        self._timer = self._loop.call_later(self.limit_s, self._look)
