"""A server's tasks as a source: fetched by their number, and kept for a while."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from ..envs import Source, Task
from .remote import Remote, RemoteError, rows


class RemoteSource(Source):
    """A server's tasks, of which it keeps the last few thousand.

    Args:
        server: the server.
        size: how many it has; ``None`` if they never end.
        split: the split that they are of; empty if the server does not say.
        kept: tasks to keep.
    """

    remote = True

    def __init__(
        self, server: Remote, size: int | None, *, split: str = "", kept: int = 4096
    ) -> None:
        self.server, self.size, self.split, self.kept = server, size, split, kept
        self._tasks: OrderedDict[int, Task] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_lock": threading.Lock()})

    def task(self, index: int) -> Task:
        """Return the task at an index; its reference is the index.

        Raises:
            IndexError: there is no such task.
            RemoteError: the server does not answer.
        """
        with self._lock:
            if index in self._tasks:
                self._tasks.move_to_end(index)
                return self._tasks[index]
        if index < 0 or (self.size is not None and index >= self.size):
            raise IndexError(f"task must be from 0 to {(self.size or 2**63) - 1}, got {index}")
        (row,) = rows(self.server.get(f"/v1/tasks/{index}"), "tasks", 1)
        task = _task(row, index)
        with self._lock:
            self._tasks[index] = task
            while len(self._tasks) > self.kept:
                self._tasks.popitem(last=False)
        return task


def _task(row: Mapping[str, Any], index: int) -> Task:
    try:
        return Task(row["messages"], index, row["id"], row["metadata"])
    except (KeyError, TypeError, ValueError) as error:
        raise RemoteError(f"the server sent an invalid task: {error}") from error
