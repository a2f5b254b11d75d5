"""The same tasks under another judge: one that reads the question and not the known answer."""

from __future__ import annotations

import copy
from dataclasses import replace

from ..verifiers import Verifier
from .datasets.source import Mapped
from .task import Task
from .text_env import TextEnv


def rejudged(env: TextEnv, judge: Verifier) -> TextEnv:
    """Return an environment's tasks, judged by a model instead of its rubric.

    The reference of each task is ``{"messages": its prompt}``, as :class:`~assay.verifiers.Judge`,
    :class:`~assay.verifiers.RewardModel` and their kin read it: the known answer is left out, so
    that a reward model is no more than it is if none is known.

    Args:
        env: stays as it is. What the new one plays it plays as this one does.
        judge: of the replies. A group rubric of ``env`` is not taken over.
    """
    other = copy.copy(env)
    other.rubric, other.group_rubric = judge, None
    other.source = Mapped(env.source, _as_question)
    return other


def _as_question(task: Task) -> Task:
    return replace(task, reference={"messages": [dict(m) for m in task.messages]})
