"""What is done sooner than a thread begins: the event loop may do it itself, where it is short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..envs import Rows, TextEnv
from ..lone_replies import OWN
from ..verifiers import Rubric, Verifier
from . import messages

FEW = 64
"""Episodes, tasks or replies of one message."""

SHORT = 4096
"""Characters of a message's replies together: the worst of them take some milliseconds."""


class AtOnce:
    """Which messages of an environment's clients are answered without a thread.

    Attributes:
        found: tasks are rows that are looked up, and an episode begins with one.
        judged: a turn is the rubric's work alone, and all of that is quick.
    """

    def __init__(self, env: TextEnv) -> None:
        kind = type(env)
        plain = kind.begin is TextEnv.begin and kind.task is TextEnv.task
        self.found = plain and isinstance(env.source, Rows)
        names = (*OWN, "_respond", "_take")
        own = any(getattr(kind, name) is not getattr(TextEnv, name) for name in names)
        self.judged = not own and _is_quick(env.rubric)

    def answers(self, asked: messages.SocketMessage) -> bool:
        """Whether a message is answered without waiting for anything.

        A step may have to wait all the same, where one of its episode is being taken.
        """
        if isinstance(asked, messages.SocketSteps):
            return self.takes(asked.steps) and (asked.reset is None or self._begins(asked.reset))
        if isinstance(asked, messages.SocketReset):
            return self._begins(asked)
        if isinstance(asked, messages.SocketScore):
            return self.found and self.scores(asked)
        if isinstance(asked, messages.SocketTasks):
            return self.finds(len(asked.tasks))
        return isinstance(asked, messages.SocketClose)

    def finds(self, weight: int) -> bool:
        """Whether so many tasks are looked up, or episodes begun."""
        return self.found and weight <= FEW

    def takes(self, steps: Sequence[messages.Step]) -> bool:
        """Whether steps are."""
        return self.judged and _are_short(step.reply for step in steps)

    def scores(self, asked: messages.Score) -> bool:
        """Whether lone replies are; references of a client's own may be of any length."""
        return self.judged and asked.references is None and _are_short(asked.replies)

    def _begins(self, asked: messages.Reset) -> bool:
        return self.finds(weight_of(asked))


def weight_of(asked: messages.Reset) -> int:
    """How many episodes are to begin."""
    return (asked.count if asked.tasks is None else len(asked.tasks)) * asked.group_size


def _are_short(replies: Iterable[str]) -> bool:
    """Whether replies are few and short enough."""
    sizes = [*map(len, replies)]
    return len(sizes) <= FEW and sum(sizes) <= SHORT


def _is_quick(verifier: Verifier) -> bool:
    """Whether a verifier's very class says so, not one that it is derived from."""
    if type(verifier) is Rubric:
        return all(map(_is_quick, verifier.parts.values()))
    return bool(vars(type(verifier)).get("quick"))
