"""Sources of tasks: rows, or a generator."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ...verifiers.exits import reraise_termination
from ..seeding import rng_at, share
from ..task import Task
from .bad_rows import BadRow

Split = Literal["train", "test"]


class Source(ABC):
    """Tasks by index.

    Attributes:
        size: how many there are; ``None`` if they never end.
        bad_rows: the rows of the data that were left out, since they cannot be used.
        split: the split that they are of; empty if it is not known.
        remote: whether each task costs a request, so that nobody reads them all.
    """

    size: int | None
    bad_rows: Sequence[BadRow] = ()
    split: str = ""
    remote: bool = False

    @abstractmethod
    def task(self, index: int) -> Task:
        """Return the task at an index from 0; the same index gives the same task.

        Raises:
            IndexError: there is no such index.
        """

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a random index."""
        return int(rng.integers(self.size if self.size is not None else 2**62))

    def schedule(self, position: int, seed: int) -> int:
        """Return the index to train on at a position: each epoch is a shuffle of every task.

        Args:
            position: tasks taken before this one.
            seed: a different one gives a different order.
        """
        if self.size is None:
            return int(rng_at("schedule", seed, position).integers(2**62))
        epoch, place = divmod(position, self.size)
        return int(_shuffled(self.size, seed, epoch)[place])


@lru_cache(maxsize=4)
def _shuffled(size: int, seed: int, epoch: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return rng_at("epoch", seed, epoch).permutation(size)


class Rows(Source):
    """In-memory tasks.

    Args:
        tasks: in order; one without an id gets its number.
        split: the split that they are of; empty if it is not known.

    Raises:
        ValueError: there are none, or two have one id.
    """

    def __init__(self, tasks: Sequence[Task], split: str = "") -> None:
        self.split = split
        if not tasks:
            raise ValueError("an environment needs at least one task, got none")
        self.tasks = [t if t.id else t.named(str(i)) for i, t in enumerate(tasks)]
        self.size = len(self.tasks)
        self.index = {t.id: i for i, t in enumerate(self.tasks)}
        if len(self.index) != self.size:
            seen: set[str] = set()
            twice = next(t.id for t in self.tasks if t.id in seen or seen.add(t.id))  # type: ignore[func-returns-value]  # set.add gives None, which is the point
            raise ValueError(f"task ids must be unique, got {twice!r} twice")

    def task(self, index: int) -> Task:
        """Return the task in row ``index``."""
        if not 0 <= index < len(self.tasks):
            raise IndexError(f"task must be from 0 to {len(self.tasks) - 1}, got {index}")
        return self.tasks[index]


_DRAWS = 10_000
"""Before a generator is taken to make no task of a split."""


class Generated(Source):
    """Tasks made on demand, without end.

    A task belongs to the split that its prompt hashes to, so no prompt can be in both,
    whatever the generator: draws that fall in the other split are drawn again.

    Args:
        make: one task from a random generator.
        name: sets the tasks of one environment apart from another's.
        split: ``train`` or ``test``.
        seed: another seed gives other tasks.
        test_share: the share of prompts that belong to ``test``.
        salt: another one parts the prompts into other splits; ``None`` for the name without its
            version, so that a new version leaves every prompt in its split.

    Raises:
        ValueError: the split is unknown, or the share is not inside (0, 1).
    """

    size = None

    def __init__(
        self,
        make: Callable[[np.random.Generator], Task],
        *,
        name: str,
        split: Split = "train",
        seed: int = 0,
        test_share: float = 0.1,
        salt: str | None = None,
    ) -> None:
        if split not in ("train", "test"):
            raise ValueError(f"split must be 'train' or 'test', got {split!r}")
        if not 0.0 < test_share < 1.0:
            raise ValueError(f"test_share must be between 0 and 1, got {test_share}")
        self.make, self.name, self.seed = make, name, seed
        self.split: Split = split
        self.test_share, self.salt = test_share, unversioned(name) if salt is None else salt

    def task(self, index: int) -> Task:
        """Return the task at ``index``.

        Raises:
            IndexError: the index is negative.
            ValueError: the function returns something else than a Task.
            RuntimeError: ten thousand draws gave no task of this split.
        """
        if index < 0:
            raise IndexError(f"task must be 0 or more, got {index}")
        for attempt in range(_DRAWS):
            task = self._made(index, attempt)
            if not isinstance(task, Task):
                raise ValueError(f"{self.name}: its function must return a Task, got {task!r:.80}")
            if self.in_split(task.text):
                return task if task.id else task.named(f"{self.split}-{self.seed}-{index}")
        raise RuntimeError(
            f"{self.name} made no {self.split} task in {_DRAWS} draws: "
            "its generator makes too few different prompts"
        )

    def _made(self, index: int, attempt: int) -> Task:
        try:
            return self.make(rng_at(self.name, self.seed, index, attempt))
        except (Exception, SystemExit) as error:
            where = f"{self.name}, task {index} of seed {self.seed}"
            reraise_termination(error)
            if isinstance(error, SystemExit):
                exited = f"{where}: its function called sys.exit({error.code!r})"
                raise RuntimeError(exited) from error
            error.add_note(f"In {where}")
            raise

    def in_split(self, prompt: str) -> bool:
        """Return True if a prompt belongs to this split."""
        return (share("split", self.salt, prompt) < self.test_share) == (self.split == "test")

    def altered(self, **changes: Any) -> Generated:
        """Return this generator with some of its arguments changed."""
        names = ("make", "name", "split", "seed", "test_share", "salt")
        return Generated(**{name: getattr(self, name) for name in names} | changes)


class Mapped(Source):
    """Another source's tasks, each changed by a function."""

    def __init__(self, source: Source, change: Callable[[Task], Task]) -> None:
        self.source, self.change = source, change
        self.size, self.bad_rows = source.size, source.bad_rows
        self.split, self.remote = source.split, source.remote

    def task(self, index: int) -> Task:
        """Return the changed task at an index."""
        return self.change(self.source.task(index))

    def draw(self, rng: np.random.Generator) -> int:
        """Draw from the other source."""
        return self.source.draw(rng)

    def schedule(self, position: int, seed: int) -> int:
        """Return the other source's schedule."""
        return self.source.schedule(position, seed)


def unversioned(name: str) -> str:
    """Return a name without the version at its end: ``mine/Sums`` for ``mine/Sums-v1``."""
    return re.sub(r"-v[0-9]+$", "", name)
