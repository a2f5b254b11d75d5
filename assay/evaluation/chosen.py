"""Which tasks are evaluated, and what they are by now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice

from ..envs import DataError, EpisodeGroup, Rows, Task, TextEnv
from ..envs.seeding import rng_at
from ..verifiers.nearest import did_you_mean

ENDLESS = 200
"""Tasks of a generator by default."""
_TRIES = 20


def chosen_tasks(
    env: TextEnv,
    *,
    limit: int | None = None,
    named: Sequence[str] = (),
    shuffle: bool = False,
    seed: int = 0,
) -> list[Task]:
    """Select the tasks to evaluate: all, the first few, a random few, or those named.

    Args:
        env: whose tasks.
        limit: how many; ``None`` for all, or for 200 if there is no end to them. Of a
            generator they are the first so many with different prompts.
        named: ids, or row numbers from 0.
        shuffle: draw ``limit`` of the rows in place of taking the first; they keep their order.
        seed: of that draw.

    Raises:
        ValueError: ``limit`` is below 1, or there is no such task.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    if named:
        return [_named(env, text) for text in dict.fromkeys(named)]
    size = env.source.size
    if size is None:
        return _different(env, limit or ENDLESS)
    places: Sequence[int] = range(size)
    if shuffle:
        places = rng_at("assay-eval-tasks", seed).permutation(size).tolist()
    return [env.task(i) for i in sorted(places[:limit])]


def _different(env: TextEnv, limit: int) -> list[Task]:
    found: dict[str, Task] = {}
    for index in islice(count(), _TRIES * limit):
        task = env.task(index)
        found.setdefault(task.text, task)
        if len(found) == limit:
            break
    return list(found.values())


def _named(env: TextEnv, text: str) -> Task:
    source = env.source
    if isinstance(source, Rows):
        if text in source.index:
            return source.tasks[source.index[text]]
        if not text.isdecimal():
            hint = did_you_mean(text, source.index, f"Ids look like {source.tasks[0].id}")
            raise ValueError(f"no task has the id {text!r}. {hint}")
    if not text.isdecimal():
        raise ValueError(f"--task takes a number if tasks are generated, got {text!r}")
    try:
        return env.task(int(text))
    except IndexError as error:
        raise ValueError(str(error)) from error


def task_now(env: TextEnv, task: Task) -> Task | None:
    """Return the environment's task with this id and prompt, or ``None``.

    Of tasks that are made on demand, ids end in the number that made them.
    """
    source = env.source
    found: Task | None = None
    if isinstance(source, Rows):
        place = source.index.get(task.id)
        found = None if place is None else source.tasks[place]
    elif number := re.search(r"(\d+)$", task.id):
        try:
            found = source.task(int(number[1]))
        except (IndexError, OverflowError):
            return None
    if found is None or found.id != task.id or found.messages != task.messages:
        return None
    return found


def with_references_of(env: TextEnv, groups: Iterable[EpisodeGroup]) -> Iterator[EpisodeGroup]:
    """Yield groups with the environment's current references, metadata and solutions.

    Args:
        env: whose tasks count.
        groups: of a run; their replies answered the prompts that they were given.

    Raises:
        DataError: a task is not there any more, or has another prompt.
    """
    for group in groups:
        task = task_now(env, group.task)
        if task is None:
            raise DataError(
                f"{env.name} has no task {group.task.id!r} with the prompt that was answered, so "
                "its reference cannot be taken anew: name the data with --set data=..., or "
                "evaluate again"
            )
        yield EpisodeGroup(task, group.episodes)
