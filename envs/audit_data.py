"""The promises about data: usable references, nothing given away, splits apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from .audit_panel import NotChecked, Panel, Tried
from .audit_report import Failure
from .audit_subject import known_answer
from .data import DataError
from .source import Generated, Rows, Source, Split
from .task import Task
from .text_env import TextEnv

_MANY = 1000
"""Tasks of a generator that are compared."""
_LONG = 12
"""Characters from which an answer is not in a prompt by accident."""


def references(panel: Panel) -> Tried:
    """Every reference can be used."""
    env = panel.subject.env
    rows = isinstance(env.source, Rows) if env is not None else False
    tasks = env.source.tasks if rows else panel.whole.tasks  # type: ignore[union-attr]  # rows says so
    faults = panel.bench.reference_faults([task.reference for task in tasks])
    failures = [
        Failure(task.id, "a reference", _text(task.reference), f"cannot be used: {fault}")
        for task, fault in zip(tasks, faults, strict=True)
        if fault is not None
    ]
    return Tried(len(tasks), failures)


# -- what the policy sees ----------------------------------------------------------------------


def leakage(panel: Panel) -> Tried:
    """What the policy sees does not hold the reference, nor a reply that wins.

    A short answer may stand in its question by accident, as often as another task's might;
    that is let through. A long one, or one that stands in most of the questions, is not.
    """
    if panel.subject.env is None:
        raise NotChecked("a verifier by itself has no prompt")
    if panel.subject.env.extractive:
        raise NotChecked("the answer is to be found in the prompt")
    seen = [_seen(panel, i) for i in range(len(panel.subject.tasks))]
    failures, hits, others = [], [], 0
    for place, task in enumerate(panel.subject.tasks):
        own = [s for s in _secrets(task) if _holds(seen[place], s)]
        elsewhere = seen[(place + 1) % len(seen)] if len(seen) > 1 else ""
        others += any(_holds(elsewhere, s) for s in _secrets(task))
        if own:
            hits.append(Failure(task.id, "in the prompt", own[0], "is what the policy sees"))
        if own and len(own[0]) >= _LONG and not _holds(elsewhere, own[0]):
            failures.append(hits[-1])
    tasks = len(seen)
    if tasks >= 4 and len(hits) > tasks / 2 and len(hits) > 2 * others:
        failures = hits
    note = f"{len(hits)} of {tasks} prompts hold their answer, {others} another's" if hits else ""
    return Tried(tasks, failures, note)


def _seen(panel: Panel, place: int) -> str:
    """Prompt, observation and info of a task, before a reply is given."""
    env = panel.subject.env
    assert env is not None  # noqa: S101  # leakage looked
    observation, info = env.reset(options={"task": panel.subject.indices[place]})
    told = [observation, panel.subject.tasks[place].text, *_leaves(info)]
    return "\n".join(told)


def _leaves(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() if key != "task" for text in _leaves(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _leaves(item)]
    return [str(value)]


def _secrets(task: Task) -> list[str]:
    """What would give a task away."""
    found = [task.solution] if task.solution else []
    answer = known_answer(task)
    if answer is not None:
        found.append(answer)
    reference = task.reference if isinstance(task.reference, dict) else {}
    tests = reference.get("tests")
    if isinstance(tests, str):  # one example may be shown; all of them are the whole test
        found.append(tests)
    for kind in ("stdio", "calls"):
        if kind in reference:
            found.append(_text(reference[kind]))
    return [text.strip() for text in found if text.strip()]


def _holds(seen: str, secret: str) -> bool:
    """Whether a text stands in another as a word or words of its own."""
    return re.search(rf"(?<![\w.,]){re.escape(secret)}(?![\w])", seen) is not None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)


# -- splits ------------------------------------------------------------------------------------


def splits(panel: Panel) -> Tried:
    """No prompt is in both splits, another seed puts other tasks, and ids name one task each."""
    env = panel.subject.env
    if env is None:
        raise NotChecked("a verifier by itself has no tasks")
    failures = _ids_fault(env.source)
    notes = []
    own, other = _pair(panel)
    if own is None:
        notes.append("the other split is not known: name its data to have it compared")
        if not failures:
            raise NotChecked(notes[0])
        return Tried(1, failures, notes[0])
    there = {_plain(prompt): prompt for prompt in other}
    for id_, prompt in own:
        if _plain(prompt) in there:
            failures.append(Failure(id_, "a prompt", prompt, "is in both splits"))
    failures += _seeds_fault(panel)
    return Tried(len(own) + len(other), failures)


def _pair(panel: Panel) -> tuple[list[tuple[str, str]] | None, list[str]]:
    """Ids and prompts of this split, and prompts of the other."""
    env, sibling = panel.subject.env, panel.subject.sibling
    assert env is not None  # noqa: S101  # splits looked
    if panel.other is not None:
        return [(t.id, t.text) for t in _some(env.source)], list(panel.other)
    if sibling is None:
        return None, []
    try:
        train, test = (_some(sibling(split, 0)) for split in _SPLITS)
    except (DataError, TypeError):  # this data has one split
        return None, []
    return [(t.id, t.text) for t in train], [t.text for t in test]


_SPLITS: tuple[Split, Split] = ("train", "test")


def _ids_fault(source: Source) -> list[Failure]:
    """Two tasks with one id."""
    seen: dict[str, str] = {}
    failures = []
    for task in _some(source):
        if seen.setdefault(task.id, task.text) != task.text:
            failures.append(Failure(task.id, "an id", task.id, "names two tasks"))
    return failures


def _seeds_fault(panel: Panel) -> list[Failure]:
    """Seeds 0 and 1 share more than chance has them share."""
    sibling = panel.subject.sibling
    if sibling is None or panel.other is not None:
        return []
    try:
        first, second = sibling("train", 0), sibling("train", 1)
    except (DataError, TypeError):
        return []
    if first.size is not None:
        return []  # rows are what they are, whatever the seed
    zero = {first.task(i).text for i in range(_MANY)}
    later = {first.task(i).text for i in range(_MANY, 2 * _MANY)}
    one = {second.task(i).text for i in range(_MANY)}
    # what two draws of one seed share is chance; the rest is a seed that hardly matters
    chance = len(zero & later)
    if len(zero & one) <= chance + 4 * chance**0.5 + 10:
        return []
    found = f"seeds 0 and 1 share {len(zero & one)} of {_MANY} prompts; by chance it is {chance}"
    return [Failure("", "the seeds", "", found)]


def _some(source: Source) -> list[Task]:
    if isinstance(source, Rows):
        return list(source.tasks)
    return [source.task(i) for i in range(_MANY if source.size is None else source.size)]


def _plain(prompt: str) -> str:
    """A prompt without what does not make it another: case, spaces, punctuation around words.

    Signs that stand by themselves stay: they may be a drawing, of a maze, say.
    """
    words = re.sub(rf"(?<=\w){_SIGNS}+(?!\S)|(?<!\S){_SIGNS}+(?=\w)", " ", prompt.casefold())
    return " ".join(words.split())


_SIGNS = r"[^\w\s+*/=<>-]"


def sibling_of(source: Source) -> Any:
    """Other splits and seeds of a generator that is known only as it is."""
    if not isinstance(source, Generated):
        return None

    def sibling(split: Split, seed: int) -> Source:
        return Generated(
            source.make, name=source.name, split=split, seed=seed, test_share=source.test_share
        )

    return sibling


def prompts_of(env: TextEnv) -> list[str]:
    """The prompts of an environment; of a generator, the first thousand."""
    return [task.text for task in _some(env.source)]
