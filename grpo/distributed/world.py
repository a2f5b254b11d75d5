"""The processes that train together, and what they can say to each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")
TIMEOUT = "ASSAY_TIMEOUT_S"
"""Environment variable: seconds that a process waits for another, 1800 by default."""


class ProcessLost(RuntimeError):
    """Another process has died, or has said nothing for too long."""


class ProcessFailed(RuntimeError):
    """Another process has raised; its own output has the traceback."""


class World:
    """This process among those that train together; made by :meth:`single` or :meth:`join`.

    Tensors travel by torch's default process group (NCCL between GPUs, else gloo), objects by
    gloo as pickles: between processes of one run, which trust each other.

    Attributes:
        rank: of this process, in 0..size - 1. Process 0 is the main one.
        size: how many there are.
        timeout_s: how long one waits for another.
    """

    def __init__(self, rank: int, size: int, timeout_s: float, objects: Any) -> None:
        self.rank, self.size, self.timeout_s = rank, size, timeout_s
        self._objects = objects

    @classmethod
    def single(cls) -> Self:
        """One process alone: everything here costs nothing."""
        return cls(0, 1, 0.0, None)

    @classmethod
    def join(cls, *, timeout_s: float | None = None) -> Self:
        """The processes that ``torchrun`` or ``accelerate launch`` has started; else one alone.

        Where there are GPUs, ``cuda`` means the one of this process from here on: call it before
        a model is loaded.

        Args:
            timeout_s: how long one process waits for another before it gives up; by default
                what the environment variable ``ASSAY_TIMEOUT_S`` says, or 1800. It must be longer
                than the slowest verifier makes a rollout wait.

        Raises:
            ValueError: the environment variable is no number above 0.
            ProcessLost: the others did not come.
        """
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls.single()
        timeout_s = _timeout() if timeout_s is None else timeout_s
        rank, limit = int(os.environ["RANK"]), timedelta(seconds=timeout_s)
        world = cls(rank, size, timeout_s, None)
        with world._waiting("start"):
            if not dist.is_initialized():
                backend = "gloo"
                if torch.cuda.is_available():
                    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
                    backend = "cpu:gloo,cuda:nccl"
                dist.init_process_group(backend, timeout=limit)
            world._objects = dist.new_group(backend="gloo", timeout=limit)
        return world

    def leave(self) -> None:
        """Close the connections; nothing more can be said."""
        if self.size > 1 and dist.is_initialized():
            self._objects = None
            dist.destroy_process_group()

    @property
    def is_main(self) -> bool:
        """Whether this is process 0, which decides, writes and shows."""
        return self.rank == 0

    def sum_(self, tensor: Tensor) -> None:
        """Put the sum over all processes in place of each one's tensor."""
        if self.size > 1:
            with self._waiting("add up tensors"):
                dist.all_reduce(tensor)

    def copy_(self, tensor: Tensor) -> None:
        """Put the main process's tensor in place of each one's."""
        if self.size > 1:
            with self._waiting("copy a tensor"):
                dist.broadcast(tensor, src=0)

    def scatter(self, parts: Sequence[Any] | None) -> Any:
        """Give each process its part.

        Args:
            parts: one for each process, at the main one; elsewhere ``None``.

        Returns:
            The part of this process.
        """
        if self.size == 1:
            return parts[0] if parts else None
        found: list[Any] = [None]
        with self._waiting("hand out work"):
            listed = None if parts is None else list(parts)
            dist.scatter_object_list(found, listed, src=0, group=self._objects)
        return found[0]

    def gather(self, value: Any) -> list[Any]:
        """Each process's value, in their order, at the main one; elsewhere an empty list."""
        if self.size == 1:
            return [value]
        found: list[Any] | None = [None] * self.size if self.is_main else None
        with self._waiting("hand in results"):
            dist.gather_object(value, found, dst=0, group=self._objects)
        return found or []

    def decide(self, work: Callable[[], T]) -> T:
        """Do some work in the main process only, and have its result in all.

        Raises:
            ProcessFailed: it raised there. There the error itself is raised.
        """
        if self.size == 1:
            return work()
        if not self.is_main:
            ok, value = self.scatter(None)
            if not ok:
                raise ProcessFailed(f"process 0 stopped: {value}")
            found: T = value
            return found
        try:
            result = work()
        except BaseException as error:
            self.scatter([(False, describe(error))] * self.size)
            raise
        self.scatter([(True, result)] * self.size)
        return result

    def main_first(self, work: Callable[[], T]) -> T:
        """Do some work in the main process, and then in the others, such as write and read."""
        if self.is_main:
            made: list[T] = []
            self.decide(lambda: made.append(work()))
            return made[0]
        self.decide(lambda: None)
        return work()

    @contextmanager
    def _waiting(self, what: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # what torch's backends raise
            raise ProcessLost(
                f"process {self.rank} of {self.size} waited for the others to {what}, and they did "
                f"not come: one has died, or was silent for {self.timeout_s:g} s ({TIMEOUT}, or "
                f"World.join(timeout_s=)). Its own output says why; mend that and resume. "
                f"({str(error).splitlines()[0][:200]})"
            ) from error


def describe(error: BaseException) -> str:
    """An error in one line, as it travels between processes."""
    return f"{type(error).__name__}: {error}"


def _timeout() -> float:
    text = os.environ.get(TIMEOUT, "1800")
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not found > 0:
        raise ValueError(f"{TIMEOUT} must be a number of seconds above 0, got {text!r}")
    return found
