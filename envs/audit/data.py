"""The promises about data: usable references, and nothing given away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from ..source import Rows
from ..task import Task
from .context import NotChecked, Panel, Tried
from .report import Failure
from .subject import known_answer

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
