"""Checks of data: usable references, no leaked answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from ..source import Rows
from ..task import Task
from .context import Context, NotChecked, Outcome, check
from .report import Failure
from .subject import known_answer

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
