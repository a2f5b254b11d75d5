"""Splits of training and evaluation, and the prompts that both contain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from ..registry import arguments, make
from ..spec import EnvSpec
from ..task import Task
from ..text_env import TextEnv
from .errors import SplitError
from .mixed import Mixed
from .same_prompt import plain_prompt
from .source import Generated, Source
from .split_files import is_for_evaluation

SAMPLE = "sample"
"""The split of the few rows that the package ships."""


def make_for(
    role: Literal["train", "test"],
    id: str | EnvSpec,  # noqa: A002  # Gymnasium's own name for it
    kwargs: Mapping[str, Any],
    *,
    any_split: bool = False,
    build: Callable[..., TextEnv] = make,
) -> tuple[TextEnv, dict[str, Any]]:
    """Make an environment to train on (``train``) or to evaluate on (``test``).

    It gets the split of that name, unless ``kwargs`` name one. A single file is taken for what its
    name says, whatever the role: :func:`refuse_training` refuses to train on ``test.jsonl``.

    Args:
        role: the split, if ``kwargs`` name none.
        id: a registered id, or a record.
        kwargs: the environment's arguments.
        any_split: take the only split that there is if it is another one.
        build: makes the environment of an id and arguments.

    Returns:
        The environment, and the arguments it was made with.

    Raises:
        SplitError: the environment's data lacks the split; the message lists those it has.
    """
    given = dict(kwargs)
    if "split" not in given and "split" in arguments(id):
        try:
            given["split"] = role
            return build(id, **given), given
        except SplitError as error:
            if not error.single and not (any_split and len(error.splits) == 1):
                raise
            given["split"] = error.splits[0]
    return build(id, **given), given


def refuse_training(
    env: TextEnv, *, allow_test_split: bool = False, allow_sample: bool = False
) -> None:
    """Refuse to train on rows that are kept for evaluation, or on the sample.

    Args:
        env: the environment to train on.
        allow_test_split: train on a split for evaluation.
        allow_sample: train on the few rows that the package ships.

    Raises:
        ValueError: the environment's tasks are such rows.
    """
    split = env.source.split
    if is_for_evaluation(split) and not allow_test_split:
        raise ValueError(
            f"{env.name}: training would be on the split {split!r}, which is for evaluation. Give "
            "data with a train split, or set allow_test_split (--allow-test-split) to train on it"
        )
    if SAMPLE in split.split("+") and not allow_sample:
        raise ValueError(
            f"{env.name}: training would be on the sample, {env.source.size} rows that the package "
            "ships to try an environment with. Give data (--data FILE, FOLDER or hub name), or set "
            "allow_sample (--allow-sample) to train on it"
        )


def refuse_overlap(
    train: Source, held_out: Source, tasks: Iterable[Task] | None = None, *, allow: bool = False
) -> int:
    """Refuse held-out tasks whose prompts are also trained on, by :func:`plain_prompt`.

    Args:
        train: the tasks to train on.
        held_out: source of the held-out tasks.
        tasks: the held-out tasks; None for all of a source that ends.
        allow: count them, and refuse nothing.

    Returns:
        The number of held-out prompts that training has too.

    Raises:
        ValueError: there are some.
    """
    shared = shared_prompts(train, held_out, tasks)
    if shared and not allow:
        raise ValueError(
            f"{len(shared):,} of the held-out prompts are trained on as well, the first is "
            f"{shared[0]!r:.120}. Give other held-out data, or remove these rows from one of the "
            "two; or set allow_overlap (--allow-overlap)"
        )
    return len(shared)


def shared_prompts(
    train: Source, held_out: Source, tasks: Iterable[Task] | None = None
) -> list[str]:
    """Return the held-out prompts that training has too, by :func:`plain_prompt`.

    Prompts of a generator are known by its name and the rule of its splits. Sources whose tasks
    cost a request each are not compared.
    """
    if tasks is None:
        tasks = [task for leaf in _leaves(held_out) for task in _tasks(leaf)]
    prompts = dict.fromkeys(task.text for task in tasks)
    others = _generated(held_out)
    same = [one for one in _generated(train) if any(_may_meet(one, other) for other in others)]
    read = {plain_prompt(task.text) for leaf in _leaves(train) for task in _tasks(leaf)}
    return [
        prompt
        for prompt in prompts
        if plain_prompt(prompt) in read or any(leaf.in_split(prompt) for leaf in same)
    ]


def have_same_prompts(one: Source, other: Source) -> bool:
    """Return True if two sources that end have the same prompts, by :func:`plain_prompt`."""
    if None in (one.size, other.size) or one.remote or other.remote:
        return False
    found, theirs = (
        {plain_prompt(task.text) for task in _tasks(source)} for source in (one, other)
    )
    return found == theirs


def _leaves(source: Source) -> Iterator[Source]:
    """Yield the sources that a mixture or wrapper takes its tasks from."""
    if isinstance(source, Mixed):
        for one in source.sources:
            yield from _leaves(one)
    else:
        yield source


def _generated(source: Source) -> list[Generated]:
    return [leaf for leaf in _leaves(source) if isinstance(leaf, Generated)]


def _may_meet(one: Generated, other: Generated) -> bool:
    """Return whether two generators of one name may share prompts, despite the hash split."""
    same_rule = (one.salt, one.test_share) == (other.salt, other.test_share)
    return one.name == other.name and not (same_rule and one.split != other.split)


def _tasks(source: Source) -> Iterator[Task]:
    if source.size is not None and not source.remote:
        yield from map(source.task, range(source.size))
