"""Work in threads, side by side; what waits is bounded."""

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
    """What waits for a thread, or has one.

    Args:
        limits: how many threads, how much may wait, and for how long an answer is awaited.

    Attributes:
        waiting: replies that wait, or are worked on.
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self.limits, self.waiting = limits, 0
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="assay-serve")
        self._calls: Batches[Callable[[], Any], Any] = self.batches(_called)

    def batches(self, work: Callable[[list[_Piece]], Sequence[_Found]]) -> Batches[_Piece, _Found]:
        """Work of one kind, of which what is ready at one time goes together."""
        return Batches(work, self._pool, self.limits.threads, self.limits.batch)

    async def call(self, weight: int, call: Callable[[], _Found]) -> _Found:
        """What a call gives.

        Raises:
            Refused: the call did, or raised; 503 or 504 where too much waits, or for too long.
        """
        self.room_for(weight)
        result: _Found | Refused = await self.do(weight, self._calls.put(call))
        if isinstance(result, Refused):
            raise result
        return result

    def room_for(self, weight: int) -> None:
        """Refuse work where too much waits already.

        Raises:
            Refused: 503.
        """
        if self.waiting + weight > self.limits.queue and self.waiting:
            raise Refused(
                503,
                "busy",
                f"{self.waiting} replies are waiting already, and {self.limits.queue} may: come "
                "back later",
                retry_s=1,
            )

    async def do(self, weight: int, work: asyncio.Future[_Found]) -> _Found:
        """Await work that waits for its turn; it goes on where nobody awaits it any more.

        Raises:
            Refused: 504.
        """
        self.waiting += weight
        work.add_done_callback(lambda _: self._done(weight, work))
        await asyncio.wait((work,), timeout=self.limits.request_s)
        if not work.done():
            raise Refused(
                504, "late", f"there is no answer after {self.limits.request_s:g} s", retry_s=5
            )
        return work.result()

    def shut(self) -> None:
        """Let what has begun end, and begin nothing more."""
        self._pool.shutdown(cancel_futures=True)

    def _done(self, weight: int, work: asyncio.Future[Any]) -> None:
        self.waiting -= weight
        if not work.cancelled():
            work.exception()  # somebody has asked: no complaint where nobody awaits it


def _called(calls: list[Callable[[], Any]]) -> list[Any]:
    """Results of calls; where one raises, its error in its place: the others have theirs."""
    return [_result(call) for call in calls]


def _result(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Refused as refused:
        return refused
    except Exception as error:
        _log.exception("an environment raised")
        return Refused(500, "environment", f"the environment raised {type(error).__name__}")
