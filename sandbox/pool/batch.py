"""Many programs at a time, in lists, in streams and from asyncio, out of one at a time."""

from __future__ import annotations

import abc
import contextlib
import functools
import queue
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, overload

from ..backends.forks import call_after_fork
from ..errors import SandboxUnavailable
from ..languages.language import PYTHON, ProgrammingLanguage
from ..limits import Limits
from ..result import Result, RunStatus
from .threads import Threads

AHEAD = 16
"""Items for each slot that a stream takes before their results are fetched: enough to keep the
other slots busy while one of them is at a program that takes thousands of times as long."""

Program = str | tuple[str, str]

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")
_Self = TypeVar("_Self", bound="BatchMixin")
_P = ParamSpec("_P")


class BatchMixin(abc.ABC):
    """What a sandbox can do with many programs, given that it can run one."""

    def __init__(self) -> None:
        self._renew()
        call_after_fork(self, "_renew")

    def _renew(self) -> None:
        """Forget all threads: in a forked child none is left that could give back a lock."""
        self._lock = threading.Lock()
        self._awaited: Threads | None = None

    @property
    @abc.abstractmethod
    def slots(self) -> int:
        """Programs at one time."""

    @abc.abstractmethod
    def run(
        self,
        code: str,
        stdin: str = "",
        *,
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> Result:
        """Run one program."""

    @abc.abstractmethod
    def close(self) -> None:
        """End everything that the sandbox started. Calling it twice does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @overload
    def run_many(
        self,
        programs: Iterable[Program],
        *,
        stream: Literal[False] = False,
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> list[Result]: ...
    @overload
    def run_many(
        self,
        programs: Iterable[Program],
        *,
        stream: Literal[True],
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> Generator[Result, None, None]: ...
    def run_many(
        self,
        programs: Iterable[Program],
        *,
        stream: bool = False,
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> list[Result] | Generator[Result, None, None]:
        """Run programs, or pairs of a program and its stdin, in all slots; the order is kept.

        Where the sandbox fails half-way, the programs not run get ``sandbox_error``.

        Args:
            programs: any number of them; with ``stream``, also an endless generator.
            stream: give an iterator in place of a list, see :meth:`map`.
            language: of all of them, as for :meth:`run`.
            limits: bounds on each.

        Raises:
            SandboxUnavailable: it failed before any program was run.
            ImageUnavailable, LanguageUnavailable, ValueError: as :meth:`run` does.
        """
        if isinstance(programs, str):
            raise ValueError(f"run_many takes many programs, got one text: {programs[:40]!r}")

        def run_one(program: Program) -> Result | SandboxUnavailable:
            code, stdin = (program, "") if isinstance(program, str) else program
            try:
                return self.run(code, stdin, language=language, limits=limits)
            except SandboxUnavailable as error:
                return error

        if not stream:
            return list(_results(self.map(run_one, programs)))
        return _streamed(self.map(run_one, programs, stream=True), self.slots * AHEAD)

    @overload
    def map(
        self,
        function: Callable[[_Item], _Found],
        items: Iterable[_Item],
        *,
        stream: Literal[False] = False,
    ) -> list[_Found]: ...
    @overload
    def map(
        self, function: Callable[[_Item], _Found], items: Iterable[_Item], *, stream: Literal[True]
    ) -> Generator[_Found, None, None]: ...
    def map(
        self, function: Callable[[_Item], _Found], items: Iterable[_Item], *, stream: bool = False
    ) -> list[_Found] | Generator[_Found, None, None]:
        """Call a function for each item, as many at a time as there are slots, in order.

        The first exception, in the order of the items, ends it: calls that have not begun are
        dropped, and those that have go on without anybody waiting for them.

        Args:
            function: called from several threads.
            items: any number of them; with ``stream``, also an endless generator.
            stream: give an iterator in place of a list. It yields each result as soon as it and
                those before it are there. Items are taken in a thread of their own, at most 16
                for each slot ahead of the results fetched; an exception there surfaces after
                the results before it. Closing the iterator drops the calls that have not begun.

        Example:
            >>> with Sandbox(backend="bwrap") as sandbox:
            ...     [r.exit_code for r in sandbox.map(sandbox.run, ["exit(1)", "exit(2)"])]
            [1, 2]
        """
        if stream:
            return _in_order(function, iter(items), self.slots)
        todo = list(items)
        if len(todo) < 2 or self.slots == 1:
            return [function(item) for item in todo]
        return list(_in_order(function, iter(todo), min(self.slots, len(todo))))

    def _in_thread(self, call: Callable[[], _Found]) -> Future[_Found]:
        """Make a call in one of as many threads as there are slots, first come, first served."""
        slots = self.slots  # of several hosts: they may have to be asked, under the lock
        with self._lock:
            if self._awaited is None:
                self._awaited = Threads(slots, "assay-await")
            return self._awaited.submit(call)

    def _end_threads(self) -> None:
        with self._lock:
            threads, self._awaited = self._awaited, None
        if threads is not None:
            threads.close()


def awaitable(
    method: Callable[Concatenate[_Self, _P], _Found],
) -> Callable[Concatenate[_Self, _P], Coroutine[Any, Any, _Found]]:
    """Return a coroutine method that awaits a method, with its arguments."""

    @functools.wraps(method)
    async def call(sandbox: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _Found:
        import asyncio  # takes longer to import than this room does

        bound = functools.partial(getattr(sandbox, method.__name__), *args, **kwargs)
        return await asyncio.wrap_future(sandbox._in_thread(bound))

    call.__name__ = f"a{method.__name__}"
    call.__qualname__ = f"{method.__qualname__.rpartition('.')[0]}.{call.__name__}"
    call.__doc__ = f"""Await :meth:`{method.__name__}`: the same arguments, result and exceptions.

    The event loop is never blocked. Any number of calls may wait; they are made in their order,
    as many at a time as there are slots. Cancelling one that waits drops it. Of one that has
    begun, the program runs on to its end or its limits, and the result is dropped.
    """
    return call


class _End:
    """After the last item: the exception that was raised in place of a further one, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def _in_order(
    function: Callable[[_Item], _Found], items: Iterator[_Item], slots: int
) -> Generator[_Found, None, None]:
    """See ``Batches.map``. Items are read where that may block for as long as it likes."""
    line: queue.SimpleQueue[Future[_Found] | _End] = queue.SimpleQueue()
    room = threading.Semaphore(slots * AHEAD)
    closed = threading.Event()
    threads = Threads(slots, "assay-run")

    def feed() -> None:
        error = None
        try:
            while room.acquire() and not closed.is_set():
                item = next(items)
                if closed.is_set():
                    return
                line.put(threads.submit(functools.partial(function, item)))
                del item
        except StopIteration:
            pass
        except BaseException as raised:  # the user's, raised to the user
            error = raised
        line.put(_End(error))

    threading.Thread(target=feed, name="assay-feed", daemon=True).start()
    try:
        while True:
            head = line.get()
            if isinstance(head, _End):
                if head.error is not None:
                    raise head.error
                return
            found = head.result()
            room.release()
            yield found
            del head, found
    finally:
        closed.set()
        room.release()  # wakes the feeder
        threads.close(cancel=True)


def _streamed(
    found: Generator[Result | SandboxUnavailable, None, None], most_held: int
) -> Generator[Result, None, None]:
    with contextlib.closing(found):
        yield from _results(found, most_held)


def _results(
    found: Iterable[Result | SandboxUnavailable], most_held: int | None = None
) -> Generator[Result, None, None]:
    """Yield results, and ``sandbox_error`` for failures, unless nothing but failures came.

    Args:
        found: what became of each program.
        most_held: raise after this many failures with no result before them.
    """
    held: list[SandboxUnavailable] | None = []
    for item in found:
        if isinstance(item, Result):
            yield from map(_failure, held or ())
            held = None
            yield item
        elif held is None:
            yield _failure(item)
        else:
            held.append(item)
            if len(held) == most_held:
                break
    if held:
        raise held[0]


def _failure(error: SandboxUnavailable) -> Result:
    return Result(RunStatus.SANDBOX_ERROR, reason=str(error))
