"""Work in threads; what waits for one is bounded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ..envs.batches import Batches
from .limits import ServiceLimits
from .refused import Refused

_log = logging.getLogger("assay.service")
_Piece = TypeVar("_Piece")
_Found = TypeVar("_Found")


class WorkQueue:
    """Run an environment's code in threads.

    Args:
        limits: how many threads, how much may wait, and how long an answer may take.

    Attributes:
        waiting: replies that wait, or are worked on.
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self.limits, self.waiting = limits, 0
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="assay-serve")

    def batches(self, work: Callable[[list[_Piece]], Sequence[_Found]]) -> Batches[_Piece, _Found]:
        """Work of one kind; pieces that are ready at one time go together."""
        return Batches(work, self._pool, self.limits.threads, self.limits.batch)

    async def call(self, weight: int, call: Callable[[], _Found]) -> _Found:
        """Call a function in a thread.

        Raises:
            Refused: the call did, or raised (500); or as for :meth:`run`.
        """
        loop = asyncio.get_running_loop()
        return await self.run(weight, lambda: loop.run_in_executor(self._pool, _called, call))

    async def run(self, weight: int, begin: Callable[[], asyncio.Future[_Found]]) -> _Found:
        """Begin work and await it; it goes on if nobody awaits it any more.

        Raises:
            Refused: 503 if too much waits already, 504 if it takes too long.
        """
        self.room_for(weight)
        work = begin()
        self.waiting += weight
        work.add_done_callback(lambda _: self._end(weight, work))
        await asyncio.wait((work,), timeout=self.limits.request_s)
        if not work.done():
            raise Refused(
                504, "late", f"there is no answer after {self.limits.request_s:g} s", retry_s=5
            )
        return work.result()

    def room_for(self, weight: int) -> None:
        """Refuse work if too much waits already.

        Raises:
            Refused: 503.
        """
        if self.waiting and self.waiting + weight > self.limits.queue:
            raise Refused(
                503,
                "busy",
                f"{self.waiting} replies are waiting already, and {self.limits.queue} may: come "
                "back later",
                retry_s=1,
            )

    def close(self) -> None:
        """Let what has begun end, and begin nothing more."""
        self._pool.shutdown(cancel_futures=True)

    def _end(self, weight: int, work: asyncio.Future[Any]) -> None:
        self.waiting -= weight
        if not work.cancelled():
            work.exception()  # else asyncio logs an exception that is never awaited


def _called(call: Callable[[], _Found]) -> _Found:
    try:
        return call()
    except Refused:
        raise
    except Exception as error:  # also StopIteration, which a future cannot hold
        _log.exception("an environment raised")
        message = f"the environment raised {type(error).__name__}"
        raise Refused(500, "environment", message) from error
