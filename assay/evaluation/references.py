"""The tasks of a run as their environment has them now: with references that were corrected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..envs import DataError, EpisodeGroup, Rows, Task, TextEnv


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
