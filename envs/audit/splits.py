"""The promises about splits and seeds: no prompt in both, other tasks for another seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..data import DataError
from ..same_prompt import plain_prompt
from ..source import Generated, Rows, Source, Split
from ..task import Task
from ..text_env import TextEnv
from .context import NotChecked, Panel, Tried
from .report import Failure

_SPLITS: tuple[Split, Split] = ("train", "test")
_SEEDED = 300
"""Tasks of each seed that are compared: one that does nothing shares all of them."""


def splits(panel: Panel) -> Tried:
    """No prompt is in both splits, another seed puts other tasks, and ids name one task each."""
    env = panel.subject.env
    if env is None:
        raise NotChecked("a verifier by itself has no tasks")
    pair = None if panel.other is not None else _pair(panel)
    if pair is None and panel.other is None:
        failures = _ids_fault(_some(env.source, panel.prompts))
        note = "the other split is not known: name its data to have it compared"
        if not failures:
            raise NotChecked(note)
        return Tried(1, failures, note)
    if pair is None:
        own, other = _some(env.source, panel.prompts), list(panel.other or ())
        failures = _ids_fault(own)
    else:
        own, theirs = pair
        other = [task.text for task in theirs]
        failures = [*_ids_fault(own), *_ids_fault(theirs), *_seeds_fault(panel, own)]
    there = {plain_prompt(prompt) for prompt in other}
    failures += [
        Failure(task.id, "a prompt", task.text, "is in both splits")
        for task in own
        if plain_prompt(task.text) in there
    ]
    return Tried(len(own) + len(other), failures)


def _pair(panel: Panel) -> tuple[list[Task], list[Task]] | None:
    """Tasks of both splits, where it is known how to make them."""
    sibling = panel.subject.sibling
    if sibling is None:
        return None
    try:
        train, test = (sibling(split, 0) for split in _SPLITS)
    except (DataError, TypeError):  # this data has one split
        return None
    return _some(train, panel.prompts), _some(test, _enough(train, test, panel.prompts))


def _enough(train: Source, test: Source, most: int) -> int:
    """How many tasks of the test split are compared.

    Where the hash of a prompt decides, none can be in both, and what is left to be found are
    prompts that differ in spelling alone. A task of such a split costs as many draws as the split
    is small: so it is compared with fewer, for the price of as many draws.
    """
    both = (train, test)
    if not all(type(source) is Generated for source in both):
        return most
    rules = {(s.salt, s.test_share) for s in both if isinstance(s, Generated)}
    parted = len(rules) == 1 and [s.split for s in both if isinstance(s, Generated)] == [*_SPLITS]
    return max(10, int(most * rules.pop()[1])) if parted else most


def _ids_fault(tasks: Sequence[Task]) -> list[Failure]:
    """Two tasks with one id."""
    seen: dict[str, str] = {}
    return [
        Failure(task.id, "an id", task.id, "names two tasks")
        for task in tasks
        if seen.setdefault(task.id, task.text) != task.text
    ]


def _seeds_fault(panel: Panel, own: Sequence[Task]) -> list[Failure]:
    """Seeds 0 and 1 share more than chance has them share; ``own`` are tasks of seed 0."""
    sibling = panel.subject.sibling
    assert sibling is not None  # noqa: S101  # whence the tasks are
    second = sibling("train", 1)
    if second.size is not None:
        return []  # rows are what they are, whatever the seed
    many = min(_SEEDED, len(own) // 2)
    texts = [task.text for task in own]
    zero, later = set(texts[:many]), set(texts[many : 2 * many])
    one = {second.task(i).text for i in range(many)}
    # what two draws of one seed share is chance; the rest is a seed that hardly matters
    chance = len(zero & later)
    if len(zero & one) <= chance + 4 * chance**0.5 + 10:
        return []
    found = f"seeds 0 and 1 share {len(zero & one)} of {many} prompts; by chance it is {chance}"
    return [Failure("", "the seeds", "", found)]


def _some(source: Source, most: int) -> list[Task]:
    if isinstance(source, Rows):
        return list(source.tasks)
    return [source.task(i) for i in range(most if source.size is None else source.size)]


def sibling_of(source: Source) -> Any:
    """Other splits and seeds of a generator that is known only as it is."""
    if not isinstance(source, Generated):
        return None

    def sibling(split: Split, seed: int) -> Source:
        return Generated(
            source.make,
            name=source.name,
            split=split,
            seed=seed,
            test_share=source.test_share,
            salt=source.salt,
        )

    return sibling


def prompts_of(env: TextEnv, most: int) -> list[str]:
    """The prompts of an environment; of a generator, so many of the first."""
    return [task.text for task in _some(env.source, most)]
