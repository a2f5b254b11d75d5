"""The workers of this process: for each program as many as it has cores, shared by its verifiers.

They start when they are first needed, a second one only while the first is busy, and are
replaced when they die.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import LifoQueue
from typing import Any

from ...sandbox.cores import usable_cores
from .worker import SYMBOLIC, Worker, WorkerError, WorkerLimits, WorkerReply


class WorkerPool:
    """Workers that take questions from any thread.

    Args:
        limits: for every question.
        size: how many may run at a time.
        program: what they run.
    """

    def __init__(self, limits: WorkerLimits, size: int, program: str) -> None:
        self.limits, self.size, self.program = limits, size, program
        self._reset()

    def _reset(self) -> None:
        self._workers = [Worker(self.limits, self.program) for _ in range(self.size)]
        self._idle: LifoQueue[Worker] = LifoQueue()  # the last one back is still warm
        for worker in self._workers:
            self._idle.put(worker)

    def ask(self, question: dict[str, Any]) -> WorkerReply:
        """Put one question to a worker that is free.

        Raises:
            WorkerError: no worker can be had, or it got no CPU time to answer in.
        """
        idle = self._idle  # a child that is forked meanwhile has another
        worker = idle.get()
        try:
            return worker.ask(question)
        finally:
            idle.put(worker)

    def ask_many(self, questions: Sequence[dict[str, Any]]) -> list[WorkerReply | WorkerError]:
        """Put questions to all workers at once; the findings, or why there is none, in order."""

        def asked(question: dict[str, Any]) -> WorkerReply | WorkerError:
            try:
                return self.ask(question)
            except WorkerError as error:
                return error

        if len(questions) < 2 or self.size == 1:
            return [asked(question) for question in questions]
        with ThreadPoolExecutor(min(self.size, len(questions))) as threads:
            return list(threads.map(asked, questions))

    def close(self) -> None:
        """End the processes; the next question starts another."""
        for worker in self._workers:
            worker.close()

    def abandon(self) -> None:
        """Forget the processes without ending them: after a fork they are the parent's."""
        workers = self._workers
        self._reset()
        for worker in workers:
            worker.abandon()


# -- one for each process ----------------------------------------------------------------------

_pools: dict[tuple[WorkerLimits, str], WorkerPool] = {}
_guard = threading.Lock()
_size: int | None = None


def shared_pool(limits: WorkerLimits, program: str = SYMBOLIC) -> WorkerPool:
    """Return this process's workers for these limits."""
    key = limits, program
    with _guard:
        if key not in _pools:
            _pools[key] = WorkerPool(limits, _size or usable_cores(), program)
        return _pools[key]


def one_worker() -> None:
    """Limit this process to one worker, if its siblings use the other cores."""
    global _size
    _size = 1


def close_workers() -> None:
    """End this process's workers."""
    for pool in list(_pools.values()):
        pool.close()


def _after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    for pool in _pools.values():
        pool.abandon()


atexit.register(close_workers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
