"""Checks of data: usable references, no leaked answers, splits apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..datasets.reading import DataError
from ..datasets.same_prompt import plain_prompt
from ..datasets.source import Generated, Rows, Source
from ..task import Task
from ..text_env import TextEnv
from .context import Context, NotChecked, Outcome, check
from .report import Failure
from .subject import Sibling, known_answer

_LONG = 12
"""Characters from which an answer is not in a prompt by accident."""


@check("correct or remove these rows")
def references(context: Context) -> Outcome:
    """Check that every reference can be used."""
    source = None if context.env is None else context.env.source
    tasks = source.tasks if isinstance(source, Rows) else context.sample
    faults = context.harness.reference_faults([task.reference for task in tasks])
    failures = [
        Failure(task.id, "a reference", _text(task.reference), f"cannot be used: {fault}")
        for task, fault in zip(tasks, faults, strict=True)
        if fault is not None
    ]
    return Outcome(len(tasks), failures)


@check("take the answer out of prompt, observation and metadata")
def leakage(context: Context) -> Outcome:
    """Check that what the policy sees does not hold the answer.

    A short answer may stand in its question by accident, as often as another task's might;
    that is let through. A long one, or one that stands in most of the questions, is not.
    """
    if context.env is None:
        raise NotChecked("a verifier by itself has no prompt")
    if context.env.extractive:
        raise NotChecked("the answer is to be found in the prompt")
    seen = [_seen(context, index) for index in context.indexed]
    failures, hits, others = [], [], 0
    for place, task in enumerate(context.tasks):
        secrets = _secrets(task)
        own = [s for s in secrets if _holds(seen[place], s)]
        elsewhere = seen[(place + 1) % len(seen)] if len(seen) > 1 else ""
        others += any(_holds(elsewhere, s) for s in secrets)
        if own:
            hits.append(Failure(task.id, "in the prompt", own[0], "is what the policy sees"))
            if len(own[0]) >= _LONG and not _holds(elsewhere, own[0]):
                failures.append(hits[-1])
    tasks = len(seen)
    if tasks >= 4 and len(hits) > tasks / 2 and len(hits) > 2 * others:
        failures = hits
    note = f"{len(hits)} of {tasks} prompts hold their answer, {others} another's" if hits else ""
    return Outcome(tasks, failures, note)


def _seen(context: Context, index: int) -> str:
    """Return prompt, observation and info of a task, before a reply is given."""
    assert context.env is not None  # noqa: S101  # leakage looked
    observation, info = context.env.reset(options={"task": index})
    return "\n".join([observation, context.indexed[index].text, *_leaves(info)])


def _leaves(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() if key != "task" for text in _leaves(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _leaves(item)]
    return [str(value)]


def _secrets(task: Task) -> list[str]:
    """Return what would give a task away."""
    found = [task.solution, known_answer(task)]
    if isinstance(task.reference, dict):
        tests = task.reference.get("tests")
        if isinstance(tests, str):  # one example may be shown; all of them are the whole test
            found.append(tests)
        found += [_text(task.reference[k]) for k in ("stdio", "calls") if k in task.reference]
    return [text.strip() for text in found if text and text.strip()]


def _holds(seen: str, secret: str) -> bool:
    """Return whether a text occurs in another as whole words."""
    return re.search(rf"(?<![\w.,]){re.escape(secret)}(?![\w])", seen) is not None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)


_SEEDED = 300
"""Tasks of each seed that are compared: a seed without effect shares all of them."""


@check("split by the prompt's hash; make every draw from seed and counter")
def splits(context: Context) -> Outcome:
    """Check that train and test share no prompt, seeds put other tasks, ids are unique."""
    env, sibling = context.env, context.sibling
    if env is None:
        raise NotChecked("a verifier by itself has no tasks")
    if context.other is not None:
        own, other = _some(env.source, context.prompts), [*context.other]
        failures = _repeated_ids(own)
    elif sibling is not None and (pair := _both(sibling, context.prompts)) is not None:
        own, theirs = pair
        other = [task.text for task in theirs]
        failures = [*_repeated_ids(own), *_repeated_ids(theirs), *_idle_seed(sibling, own)]
    else:
        note = "the other split is not known: name its data to have it compared"
        failures = _repeated_ids(_some(env.source, context.prompts))
        if not failures:
            raise NotChecked(note)
        return Outcome(1, failures, note)
    there = {plain_prompt(prompt) for prompt in other}
    failures += [
        Failure(task.id, "a prompt", task.text, "is in both splits")
        for task in own
        if plain_prompt(task.text) in there
    ]
    return Outcome(len(own) + len(other), failures)


def _both(sibling: Sibling, most: int) -> tuple[list[Task], list[Task]] | None:
    """Return tasks of both splits, or ``None`` if the data has one split."""
    try:
        train, test = sibling("train", 0), sibling("test", 0)
    except (DataError, TypeError):
        return None
    return _some(train, most), _some(test, _enough(train, test, most))


def _enough(train: Source, test: Source, most: int) -> int:
    """Return how many tasks of the test split are compared.

    If the hash of a prompt decides, none can be in both, and what is left to be found are
    prompts that differ in spelling alone. A task of such a split costs as many draws as the split
    is small: so it is compared with fewer, for the price of as many draws.
    """
    if not (type(train) is type(test) is Generated):
        return most
    same = (train.salt, train.test_share) == (test.salt, test.test_share)
    parted = same and (train.split, test.split) == ("train", "test")
    return max(10, int(most * test.test_share)) if parted else most


def _repeated_ids(tasks: Sequence[Task]) -> list[Failure]:
    """Return the tasks whose id is another's too."""
    seen: dict[str, str] = {}
    return [
        Failure(task.id, "an id", task.id, "names two tasks")
        for task in tasks
        if seen.setdefault(task.id, task.text) != task.text
    ]


def _idle_seed(sibling: Sibling, own: Sequence[Task]) -> list[Failure]:
    """Compare seeds 0 and 1, which may share what chance explains; ``own`` are tasks of seed 0."""
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


def sibling_of(source: Source) -> Sibling | None:
    """Return what makes other splits and seeds of a generator."""
    if not isinstance(source, Generated):
        return None

    return lambda split, seed: source.altered(split=split, seed=seed)


def prompts_of(env: TextEnv, most: int) -> list[str]:
    """Return the prompts of an environment; of a generator, so many of the first."""
    return [task.text for task in _some(env.source, most)]
