"""Which tasks are evaluated."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import count, islice

from ..envs import Rows, Task, TextEnv
from ..envs.seeding import rng_at

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
    many = min(size, limit or size)
    places = range(many)
    if shuffle:
        drawn = rng_at("assay-eval-tasks", seed).permutation(size)[:many]
        return [env.task(int(i)) for i in sorted(drawn)]
    return [env.task(i) for i in places]


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
            near = difflib.get_close_matches(text, source.index, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(
                f"no task has the id {text!r}. {hint or f'Ids look like {source.tasks[0].id}'}"
            )
    if not text.isdecimal():
        raise ValueError(f"--task takes a number if tasks are generated, got {text!r}")
    try:
        return env.task(int(text))
    except IndexError as error:
        raise ValueError(str(error)) from error
