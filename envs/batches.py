"""Work in threads for callers that wait: what is ready at one time goes together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Generic, TypeVar

_Piece = TypeVar("_Piece")
_Found = TypeVar("_Found")


class BatchingQueue(Generic[_Piece, _Found]):
    """Batch the single calls of many threads into calls of one function.

    At most ``threads`` calls go on at once. Each takes its share of what is waiting, one part in
    ``threads``: so one that takes long, or raises, keeps back those few that went with it and no
    other, and if fewer wait than there are threads, each goes alone. With one thread all that is
    ready goes in one call.

    Args:
        work: gives one result for each piece, in order. Its StopIteration is a RuntimeError.
        pool: where it runs.
        threads: calls at once.
        largest: pieces in one call; ``None`` for any number.
    """

    def __init__(
        self,
        work: Callable[[list[_Piece]], Sequence[_Found]],
        pool: Executor,
        threads: int,
        largest: int | None = None,
    ) -> None:
        self._work, self._pool, self._threads, self._largest = work, pool, threads, largest
        self._free = threads
        self._waiting: list[_Call[_Piece, _Found]] = []

    async def do(self, piece: _Piece) -> _Found:
        """Return the result of one piece. If it is cancelled while waiting, it does not start.

        Raises:
            Exception: what the call raised that it was in.
        """
        return await self.put(piece)

    def put(self, piece: _Piece) -> asyncio.Future[_Found]:
        """Queue a piece and return a future of its result."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[_Found] = loop.create_future()
        self._waiting.append((piece, result))
        if len(self._waiting) == 1:
            loop.call_soon(self._begin)  # after the others that are ready by now
        return result

    def _begin(self) -> None:
        self._waiting = [call for call in self._waiting if not call[1].done()]
        while self._waiting and self._free:
            size = -(-len(self._waiting) // self._threads)
            size = size if self._largest is None else min(size, self._largest)
            taken, self._waiting = self._waiting[:size], self._waiting[size:]
            self._free -= 1
            pieces = [piece for piece, _ in taken]
            running = asyncio.get_running_loop().run_in_executor(self._pool, self._done, pieces)
            running.add_done_callback(partial(self._end, [result for _, result in taken]))

    def _done(self, pieces: list[_Piece]) -> list[_Found]:
        try:
            return list(self._work(pieces))
        except StopIteration as error:  # asyncio refuses to hand it on, and would wait for ever
            raise RuntimeError("StopIteration was raised: a next() found nothing") from error

    def _end(
        self, results: Sequence[asyncio.Future[_Found]], ran: asyncio.Future[list[_Found]]
    ) -> None:
        self._free += 1
        error = asyncio.CancelledError() if ran.cancelled() else ran.exception()
        for place, result in enumerate(results):
            if result.done():  # its caller was cancelled
                continue
            if error is None:
                result.set_result(ran.result()[place])
            elif isinstance(error, asyncio.CancelledError):
                result.cancel()
            else:
                result.set_exception(error)
        self._begin()


_Call = tuple[_Piece, "asyncio.Future[_Found]"]
