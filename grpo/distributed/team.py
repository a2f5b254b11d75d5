"""One process leads, and the others do what it asks.

The main process runs the whole loop: it alone asks the environment, decides, writes and shows, so
no two processes can come to different conclusions. The others wait for its calls. Between two
calls it may stop for any reason, and whatever it says next (to save, to go home) is understood.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..run.interrupt import stop_later, terminable
from .world import ProcessFailed, ProcessLost, World, describe

_HOME = ""


class Team:
    """Calls of the main process to all, itself included.

    Args:
        world: the processes.
        tasks: what can be called, by name.
        droppable: those of the tasks in which Ctrl-C or SIGTERM may break in: they speak to no
            other process.
    """

    def __init__(
        self,
        world: World,
        tasks: Mapping[str, Callable[..., Any]],
        *,
        droppable: Sequence[str] = (),
    ) -> None:
        self._world, self._tasks, self._droppable = world, tasks, droppable
        self._leading = False
        self.lost = False

    @property
    def size(self) -> int:
        """Processes that answer a call: without :meth:`leading`, or once one is lost, this one."""
        return self._world.size if self._leading and not self.lost else 1

    @contextmanager
    def leading(self) -> Iterator[None]:
        """In the main process: the others follow for as long as the block lasts."""
        if self._world.size == 1:
            yield
            return
        self._leading = True
        why = ""
        try:
            yield
        except BaseException as error:
            why = describe(error)
            raise
        finally:
            self._leading = False
            if not self.lost:
                with stop_later(), contextlib.suppress(ProcessLost):
                    self._world.scatter([(_HOME, (why,))] * self._world.size)

    def call(self, name: str, parts: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Have every process do a task, each with its arguments.

        Args:
            name: of the task.
            parts: arguments for each of :attr:`size` processes.

        Returns:
            What each gave.

        Raises:
            ProcessFailed: one of the others raised.
            ProcessLost: one of them is gone.
        """
        if self.size == 1:
            return [self._tasks[name](*parts[0])]
        try:
            with stop_later():
                self._world.scatter([(name, part) for part in parts])
            mine, error = self._attempt(name, parts[0])
            with stop_later():
                found = self._world.gather(mine)
        except ProcessLost:
            self.lost = True
            raise
        if error is not None:
            raise error
        for rank, (ok, value) in enumerate(found):
            if not ok:
                raise ProcessFailed(
                    f"process {rank} of {len(found)} failed to {name.replace('_', ' ')}: {value}"
                )
        return [value for _, value in found]

    def call_all(self, name: str, *arguments: Any) -> list[Any]:
        """:meth:`call` with the same arguments for all."""
        return self.call(name, [arguments] * self.size)

    def follow(self) -> None:
        """In the other processes: do what the main one asks, until it lets go.

        A Ctrl-C or SIGTERM is answered after that; the main process gets the same.

        Raises:
            ProcessFailed: the main process stopped with an error.
            ProcessLost: it is gone.
        """
        stopped: BaseException | None = None
        with terminable():
            while True:
                try:
                    with stop_later():
                        name, arguments = self._world.scatter(None)
                except (KeyboardInterrupt, SystemExit) as error:  # raised with the message there
                    stopped = error
                if name == _HOME:
                    break
                if stopped is not None and name in self._droppable:
                    mine: tuple[bool, Any] = (False, describe(stopped))
                else:
                    mine, error_here = self._attempt(name, arguments)
                    if isinstance(error_here, KeyboardInterrupt | SystemExit):
                        stopped = error_here
                try:
                    with stop_later():
                        self._world.gather(mine)
                except (KeyboardInterrupt, SystemExit) as error:
                    stopped = error
            if stopped is not None:
                raise stopped
            if arguments[0]:
                raise ProcessFailed(f"process 0 stopped: {arguments[0]}")

    def _attempt(
        self, name: str, arguments: tuple[Any, ...]
    ) -> tuple[tuple[bool, Any], BaseException | None]:
        """What to hand in, and the error that stands in place of a result."""
        whole = contextlib.nullcontext() if name in self._droppable else stop_later()
        result: Any = None
        done = False
        try:
            with whole:
                result = self._tasks[name](*arguments)
                done = True
        except (KeyboardInterrupt, SystemExit) as error:
            return ((True, result) if done else (False, describe(error))), error
        except ProcessLost:
            raise
        except Exception as error:
            return (False, describe(error)), error
        return (True, result), None
