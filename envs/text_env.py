"""One task at a time, as a Gymnasium environment: text in, text out."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium as gym

from ..verifiers import Verdict, Verifier
from .source import Rows, Source
from .spaces import Unicode
from .task import Task


class TextEnv(gym.Env[str, str]):
    """Ask one question, judge one reply.

    Observation: the prompt as text; the chat messages are in ``info["messages"]``.
    Action: the policy's reply.
    Reward: the rubric's total in [0, 1]. Where a fault of ours leaves no score it is NaN, never
    0.0, and ``info["status"]`` says which fault.
    End: every episode ends after one step, ``terminated``.

    Args:
        source: where tasks come from.
        rubric: what judges replies; a lone verifier will do.
        name: what to call it in errors; the registry sets the id.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ValueError: a row's reference cannot be used. The first few are listed.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # Gymnasium's own, annotated as it is there
        "render_modes": ["ansi"],
        "render_fps": 1,
    }

    def __init__(
        self,
        source: Source,
        rubric: Verifier,
        *,
        name: str = "",
        render_mode: str | None = None,
    ) -> None:
        self.source, self.rubric, self.render_mode = source, rubric, render_mode
        self.name = name or type(self).__name__
        self.observation_space, self.action_space = Unicode(), Unicode()
        self._task: Task | None = None
        self._transcript = ""
        if isinstance(source, Rows):
            refuse_bad_golds(self.name, source, rubric)

    def task(self, index: int) -> Task:
        """The task at an index, whatever is being played."""
        return self.source.task(index)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Put a task; the same seed puts the same one.

        Args:
            seed: seeds the choice.
            options: ``{"task": index}`` names the task instead.

        Raises:
            IndexError: there is no such task.
        """
        super().reset(seed=seed)
        named = (options or {}).get("task")
        index = self.source.draw(self.np_random) if named is None else operator.index(named)
        self._task = task = self.source.task(index)
        self._transcript = task.text
        return task.text, describe(task)

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Judge the reply and end the episode.

        Raises:
            TypeError: the reply is not text.
            RuntimeError: there is no task to reply to.
        """
        if not isinstance(action, str):
            raise TypeError(f"a reply must be text, got {action!r:.80}")
        if self._task is None:
            raise RuntimeError("step needs a task: call reset first; an episode has one step")
        task, self._task = self._task, None
        verdict = self.rubric.verify(action, task.reference)
        self._transcript = f"{task.text}\n\n{action}\n\n{verdict.status} {verdict.score}"
        return task.text, reward_of(verdict), True, False, describe(task) | findings(verdict)

    def render(self) -> str | None:
        """What was said so far, in ``ansi`` mode."""
        return self._transcript if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Give back what the rubric holds: workers, sandboxes."""
        self.rubric.close()


def describe(task: Task) -> dict[str, Any]:
    """What ``info`` tells of a task: never its reference."""
    return {
        "task": task.id,
        "messages": [dict(m) for m in task.messages],
        "metadata": dict(task.metadata),
    }


def findings(verdict: Verdict) -> dict[str, Any]:
    """What ``info`` tells of a verdict: no timings, since everything in it is deterministic."""
    return {
        "status": verdict.status.value,
        "rewards": dict(verdict.parts),
        "reason": verdict.reason,
        "extracted": verdict.extracted,
    }


def reward_of(verdict: Verdict) -> float:
    """A verdict's score where Gymnasium wants a float; NaN where there is none."""
    return math.nan if verdict.score is None else verdict.score


def refuse_bad_golds(name: str, source: Rows, rubric: Verifier, shown: int = 5) -> None:
    """Check every reference before any reply is judged."""
    bad = []
    for row, task in enumerate(source.tasks):
        fault = rubric.check_reference(task.reference)
        if fault is not None:
            bad.append(f"  row {row} ({task.id}): {fault}")
    if bad:
        more = [f"  and {len(bad) - shown} more"] if len(bad) > shown else []
        raise ValueError(
            "\n".join(
                [
                    f"{name}: {len(bad)} of {source.size} references cannot be used, "
                    "so no reply could be scored against them. Correct or remove these rows:",
                    *bad[:shown],
                    *more,
                ]
            )
        )
