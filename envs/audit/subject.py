"""What is audited: a verifier with known answers, or an environment with its tasks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...verifiers import Code, Rubric, Verifier
from ..source import Source, Split
from ..task import Task
from ..text_env import TextEnv

Sibling = Callable[[Split, int], Source]
"""Tasks of another split or seed of the same environment."""


@dataclass(frozen=True)
class Sample:
    """A known answer to audit a verifier with.

    Attributes:
        reference: what a reply is judged against.
        reply: a reply that earns full marks, where one is known.
    """

    reference: Any
    reply: str | None = None


@dataclass(frozen=True)
class Subject:
    """What is audited, and the tasks to try it on.

    Attributes:
        name: for people.
        rubric: what judges.
        tasks: a sample.
        indices: their places in the environment's source.
        env: where the tasks come from; ``None`` for a verifier by itself.
        sibling: makes other splits and seeds; ``None`` where nothing is known of any.
    """

    name: str
    rubric: Verifier
    tasks: tuple[Task, ...]
    indices: tuple[int, ...] = ()
    env: TextEnv | None = None
    sibling: Sibling | None = None

    @property
    def code(self) -> Code | None:
        """The part that runs programs, where there is one."""
        return next((part for part in parts(self.rubric) if isinstance(part, Code)), None)

    @property
    def judges_form(self) -> bool:
        """Whether only the form of a reply counts."""
        judges = [part for part in parts(self.rubric) if not isinstance(part, Rubric)]
        return all(part.judges_form for part in judges)

    @property
    def many_answers(self) -> bool:
        """Whether an answer to one task may be right for another."""
        return any(part.many_answers for part in parts(self.rubric))

    def winners(self, task: Task) -> list[str]:
        """Replies known to earn full marks: the task's own, and the one its verifier names."""
        named = self.rubric.winning_reply(task.reference)
        return list(dict.fromkeys(r for r in (task.solution, named) if r is not None))


def of_environment(
    env: TextEnv, *, sample: int, seed: int, sibling: Sibling | None = None
) -> Subject:
    """An environment and a sample of its tasks."""
    rng = random.Random(seed)  # noqa: S311  # a choice of samples, not a secret
    size = env.source.size
    if size is None:
        indices = [rng.randrange(2**31) for _ in range(sample)]
    else:
        indices = rng.sample(range(size), min(sample, size))
    tasks = tuple(env.task(i) for i in indices)
    return Subject(env.name, env.rubric, tasks, tuple(indices), env, sibling)


def of_verifier(verifier: Verifier, samples: Sequence[Sample], *, name: str = "") -> Subject:
    """A verifier and known answers.

    Raises:
        ValueError: there are no known answers.
    """
    if not samples:
        raise ValueError(
            f"{type(verifier).__name__} needs references to be audited with: give samples, such as "
            "[Sample(reference='42', reply='It is 42')]"
        )
    tasks = tuple(
        Task("(no prompt)", s.reference, id=f"sample {i}", solution=s.reply)
        for i, s in enumerate(samples)
    )
    return Subject(name or described(verifier), verifier, tasks)


def described(verifier: Verifier) -> str:
    """A verifier's name and options, on one line."""
    options = verifier.to_json()
    name = options.pop("name", type(verifier).__name__)
    return f"{name} {json.dumps(options, default=repr)}" if options else str(name)


def parts(verifier: Verifier) -> list[Verifier]:
    """A verifier and all that it is made of."""
    inner = [*verifier.parts.values()] if isinstance(verifier, Rubric) else []
    wrapped = getattr(verifier, "verifier", None)
    inner += [wrapped] if isinstance(wrapped, Verifier) else []
    return [verifier, *(p for part in inner for p in parts(part))]


def known_answer(task: Task) -> str | None:
    """The known answer as text, where it is a single value."""
    value = task.reference
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def without(subject: Subject, tasks: Sequence[Task]) -> Subject:
    """The subject without some tasks of its sample."""
    kept = [i for i, task in enumerate(subject.tasks) if task not in tasks]
    return replace(
        subject,
        tasks=tuple(subject.tasks[i] for i in kept),
        indices=tuple(subject.indices[i] for i in kept) if subject.indices else (),
    )
