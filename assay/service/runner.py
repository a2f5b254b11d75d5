"""Run an environment in threads: if it raises, only what it raised for has no score."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..envs import Completion, State, TextEnv
from ..lone_replies import OWN, played
from ..verifiers import Rubric, Status, Verdict, Verifier
from .serialize import finite, serialize_messages
from .sessions import Session

_log = logging.getLogger("assay.service")

FEW = 64
"""Replies or tasks of a message that may be done without a thread."""


class PendingStep(NamedTuple):
    """A step that is being taken."""

    session: Session
    reply: str
    truncated: bool

    @property
    def state(self) -> State:
        """The episode, which is not over: one that is takes no step."""
        assert self.session.state is not None  # noqa: S101  # for the type
        return self.session.state


class EpisodeRunner:
    """Takes steps and judges replies, those of several requests in one batch.

    Args:
        env: takes them, and judges; from several threads.
        episode_chars: a longer conversation is cut off.
        serialize: makes JSON of a verdict.
    """

    def __init__(
        self, env: TextEnv, episode_chars: int, serialize: Callable[[Verdict], dict[str, Any]]
    ) -> None:
        self.env, self.episode_chars, self._serialize = env, episode_chars, serialize
        names = (*OWN, "_respond", "_take")
        own = any(getattr(type(env), name) is not getattr(TextEnv, name) for name in names)
        self._quick = not own and _is_quick(env.rubric)

    def is_quick(self, replies: Sequence[str]) -> bool:
        """Return whether these replies are judged sooner than a thread begins."""
        return self._quick and len(replies) <= FEW and sum(map(len, replies)) <= 4096

    def take(self, requests: list[list[PendingStep]]) -> list[list[dict[str, Any]]]:
        """Take the steps of several requests, and judge all that is over in one batch."""
        faults: dict[int, Verdict] = {}
        for taken in requests:
            self._advance(taken, faults)
        everything = [step for taken in requests for step in taken]
        over = [s for s in everything if s.state.ended and id(s.session) not in faults]
        verdicts = dict(faults)
        for step, verdict in zip(over, self._verdicts([s.state for s in over]), strict=True):
            verdicts[id(step.session)] = verdict
        return [[self._outcome(s, verdicts.get(id(s.session))) for s in ss] for ss in requests]

    def score(self, requests: list[tuple[Sequence[str], Sequence[Any]]]) -> list[list[Verdict]]:
        """Judge the replies of several requests in one batch."""
        replies = [reply for some, _ in requests for reply in some]
        golds = [gold for _, some in requests for gold in some]
        try:
            found = self.env.rubric.verify_many(replies, golds)
            if len(found) != len(replies):
                raise ValueError(f"expected {len(replies)} verdicts, got {len(found)}")
        except Exception as error:
            if len(requests) > 1:
                return [self.score([request])[0] for request in requests]
            _log.exception("the rubric of %s raised", self.env.name)
            why = f"the rubric raised {type(error).__name__}"
            found = [Verdict.fault(Status.VERIFIER_ERROR, why)] * len(replies)
        rest = iter(found)
        return [[next(rest) for _ in some] for some, _ in requests]

    def is_able(self) -> bool:
        """Return whether a reply, one that wins if one is known, gets a score.

        Of an environment of several turns, the first turn is taken too if it is known what to
        say: its tools may need the sandbox.
        """
        env, task = self.env, self.env.task(0)
        if not played(env):
            reply = env.solve(env.begin(task)) or ""
            return env.rubric.verify(reply, task.reference).score is not None
        winning = env.rubric.winning_reply(task.reference)
        if winning is not None and env.rubric.verify(winning, task.reference).score is None:
            return False
        if task.solution is None and type(env).solve is TextEnv.solve:
            return True  # to begin an episode may have effects elsewhere
        state = env.begin(task)
        said = env.solve(state)
        if said is not None:
            env.advance([state], [Completion(said)])
        return state.verdict is None or state.verdict.score is not None

    def _advance(self, taken: list[PendingStep], faults: dict[int, Verdict]) -> None:
        """Take the steps of one request; if that raises, these episodes end without a score."""
        states = [step.state for step in taken]
        replies = [Completion(step.reply, "length" if step.truncated else "stop") for step in taken]
        try:
            self.env.advance(states, replies)
        except Exception as error:
            _log.exception("%s raised in a turn", self.env.name)
            why = f"the environment raised {type(error).__name__}"
            for step, state in zip(taken, states, strict=True):
                state.ended = "done"
                faults[id(step.session)] = Verdict.fault(Status.VERIFIER_ERROR, why)
            return
        for state in states:
            size = sum(len(m["content"]) for m in state.messages)
            if not state.ended and size > self.episode_chars:
                state.ended = "truncated"

    def _verdicts(self, states: list[State]) -> list[Verdict]:
        """Judge episodes; if that raises for one, the others still have their verdicts."""
        if not states:
            return []
        try:
            found = self.env.verdicts(states)
            if len(found) != len(states):
                raise ValueError(f"expected {len(states)} verdicts, got {len(found)}")
            return found
        except Exception as error:
            if len(states) > 1:
                return [self._verdicts([state])[0] for state in states]
            _log.exception("%s raised in judging", self.env.name)
            why = f"the environment raised {type(error).__name__}"
            return [Verdict.fault(Status.VERIFIER_ERROR, why)]

    def _outcome(self, step: PendingStep, verdict: Verdict | None) -> dict[str, Any]:
        """Return the outcome of a step."""
        session, state = step.session, step.state
        after = [i for i, m in enumerate(state.turns) if m["role"] == "assistant"]
        new = state.turns[after[-1] + 1 :] if after else []
        outcome = {
            "episode": session.id,
            "turn": session.turn + 1,
            "messages": serialize_messages(new),
            "reward": finite(state.step_rewards[-1]) if state.step_rewards else None,
            "done": state.ended == "done",
            "truncated": state.ended == "truncated",
            "verdict": None if verdict is None else self._serialize(verdict),
        }
        session.note(outcome, over=bool(state.ended))
        return outcome


def _is_quick(verifier: Verifier) -> bool:
    """Return whether a verifier's very class says so, not one that it is derived from."""
    if type(verifier) is Rubric:
        return all(map(_is_quick, verifier.parts.values()))
    return bool(vars(type(verifier)).get("quick"))
