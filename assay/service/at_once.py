"""What is done sooner than a thread begins: the event loop may do it itself, where it is short."""

from __future__ import annotations

from collections.abc import Iterable

from ..envs import Rows, TextEnv
from ..lone_replies import OWN
from ..verifiers import Rubric, Verifier

FEW = 64
"""Episodes, or replies, of one message."""

SHORT = 4096
"""Characters of a message's replies together: the worst of them take some milliseconds."""


def begun_at_once(env: TextEnv) -> bool:
    """Whether its episodes begin by looking up a row."""
    kind = type(env)
    return (
        isinstance(env.source, Rows) and kind.begin is TextEnv.begin and kind.task is TextEnv.task
    )


def judged_at_once(env: TextEnv) -> bool:
    """Whether a turn in it is the rubric's work alone, and all of that is quick."""
    kind = type(env)
    own = any(
        getattr(kind, name) is not getattr(TextEnv, name) for name in (*OWN, "_respond", "_take")
    )
    return not own and _is_quick(env.rubric)


def are_short(replies: Iterable[str]) -> bool:
    """Whether replies are few and short enough."""
    sizes = [*map(len, replies)]
    return len(sizes) <= FEW and sum(sizes) <= SHORT


def _is_quick(verifier: Verifier) -> bool:
    """Whether a verifier's very class says so, not one that it is derived from."""
    if type(verifier) is Rubric:
        return all(map(_is_quick, verifier.parts.values()))
    return bool(vars(type(verifier)).get("quick"))
