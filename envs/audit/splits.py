"""The check of splits and seeds: no prompt in both splits, other tasks for another seed."""

from __future__ import annotations

from collections.abc import Sequence

from ..data import DataError
from ..same_prompt import plain_prompt
from ..source import Generated, Rows, Source, Split
from ..task import Task
from ..text_env import TextEnv
from .context import Context, NotChecked, Outcome, check
from .report import Failure
from .subject import Sibling

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
    """Return the prompts of an environment; of a generator, so many of the first."""
    return [task.text for task in _some(env.source, most)]
