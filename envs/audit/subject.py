"""Subject of an audit: a verifier with references, or an environment with its tasks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...sandbox.redaction import redact
from ...verifiers import Format, Rubric, Verifier
from ...verifiers.catalogue import examples_of
from ..datasets.source import Source, Split
from ..task import Task
from ..text_env import TextEnv

Sibling = Callable[[Split, int], Source]
"""Makes another split or seed of an environment's tasks."""


@dataclass(frozen=True)
class Sample:
    """A known answer to audit a verifier with.

    Attributes:
        reference: what a reply is judged against.
        reply: a reply that earns full marks, if one is known.
    """

    reference: Any
    reply: str | None = None


def sample_tasks(env: TextEnv, count: int, seed: int) -> dict[int, Task]:
    """Draw tasks of an environment, by their index in its source."""
    rng = random.Random(seed)  # noqa: S311  # a choice of samples, not a secret
    size = env.source.size
    if size is None:
        indices = [rng.randrange(2**31) for _ in range(count)]
    else:
        indices = rng.sample(range(size), min(count, size))
    return {i: env.task(i) for i in indices}


def tasks_of(verifier: Verifier, samples: Sequence[Sample]) -> dict[int, Task]:
    """Make a task of each known answer.

    Raises:
        ValueError: there are no known answers.
    """
    if not samples:
        raise ValueError(
            f"{type(verifier).__name__} needs references to be audited with: give samples, such as "
            "[Sample(reference='42', reply='It is 42')]"
        )
    return {
        i: Task("(no prompt)", s.reference, id=f"sample {i}", solution=s.reply)
        for i, s in enumerate(samples)
    }


def samples_for(verifier: Verifier) -> list[Sample]:
    """Return known answers for a verifier that comes with Assay, or is made of such; else none."""
    made_of = parts(verifier)
    form = [part for part in made_of if isinstance(part, Format)]
    answers = [part for part in made_of if part not in form]
    found = [example for part in answers or form for example in examples_of(part)]
    tagged = "<think>I try.</think><answer>%s</answer>" if form and answers else "%s"
    return [Sample(e.reference, tagged.replace("%s", e.wins[0])) for e in found]


def name_of(verifier: Verifier) -> str:
    """Return a verifier's name and options, on one line."""
    options = redact(verifier.to_json())
    name = options.pop("name", type(verifier).__name__)
    return f"{name} {json.dumps(options, default=repr)}" if options else str(name)


def parts(verifier: Verifier) -> list[Verifier]:
    """Return a verifier and all that it is made of."""
    inner = [*verifier.parts.values()] if isinstance(verifier, Rubric) else []
    wrapped = getattr(verifier, "verifier", None)
    inner += [wrapped] if isinstance(wrapped, Verifier) else []
    return [verifier, *(p for part in inner for p in parts(part))]


def judges_form(verifier: Verifier) -> bool:
    """Return whether only the form of a reply counts."""
    return all(part.judges_form for part in parts(verifier) if not isinstance(part, Rubric))


def known_answer(task: Task) -> str | None:
    """Return the known answer as text if it is a single value."""
    value = task.reference
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)
