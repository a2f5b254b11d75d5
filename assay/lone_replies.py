"""Decide whether the rubric alone can judge a reply, or an episode must be played."""

from __future__ import annotations

from .envs import TextEnv

OWN = ("begin", "respond", "respond_many", "answer", "advance", "verdicts")


def overridden(env: TextEnv) -> list[str]:
    """Return the methods by which an environment does more than put a task and judge the reply."""
    return [name for name in OWN if getattr(type(env), name) is not getattr(TextEnv, name)]


def played(env: TextEnv) -> list[str]:
    """Return why a reply to a task must be played, or nothing if the rubric suffices.

    An environment of one turn may still answer the reply, judge another text than the reply, or
    reward it itself. A rubric that is asked alone would then give another score, or none.

    Returns:
        The environment's own methods, or its number of turns.
    """
    return overridden(env) or ([] if env.max_turns == 1 else [f"{env.max_turns} turns"])
