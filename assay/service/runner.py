"""The environment at work, in threads: where it raises, only what it raised for has no score."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..envs import Completion, State, TextEnv
from ..lone_replies import played
from ..verifiers import Status, Verdict
from .serialize import finite, serialize_messages
from .sessions import Session

_log = logging.getLogger("assay.service")


class PendingStep(NamedTuple):
    """A step that is being taken."""

    episode: Session
    reply: str
    truncated: bool

    @property
    def state(self) -> State:
        """Its episode, which is not over: one that is takes no step."""
        assert self.episode.state is not None  # noqa: S101  # for the type
        return self.episode.state


class EpisodeRunner:
    """Takes steps and judges replies, those of several requests in one batch.

    Args:
        env: takes them, and judges; from several threads.
        episode_chars: a longer conversation is cut off.
        told: a verdict as it is told.
    """

    def __init__(
        self, env: TextEnv, episode_chars: int, told: Callable[[Verdict], dict[str, Any]]
    ) -> None:
        self.env, self.episode_chars, self._told = env, episode_chars, told

    def take(self, requests: list[list[PendingStep]]) -> list[list[dict[str, Any]]]:
        """Take the steps of several requests, and judge all that is over in one batch."""
        faults: dict[int, Verdict] = {}
        for taken in requests:
            self._advance(taken, faults)
        everything = [step for taken in requests for step in taken]
        over = [s for s in everything if s.state.ended and id(s.episode) not in faults]
        verdicts = dict(faults)
        for step, verdict in zip(over, self._verdicts([s.state for s in over]), strict=True):
            verdicts[id(step.episode)] = verdict
        return [[self._outcome(s, verdicts.get(id(s.episode))) for s in ss] for ss in requests]

    def score(self, requests: list[tuple[Sequence[str], Sequence[Any]]]) -> list[list[Verdict]]:
        """Verdicts of several requests, in one batch."""
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
        """Judge one reply, a winning one where one is known: only a fault of ours is no score.

        Of an environment that is played, the first turn is taken too where it is known what to
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
        """The environment's answer to the steps of one request.

        Where it raises, these episodes end without a score: those of nobody else do.
        """
        states = [step.state for step in taken]
        replies = [Completion(step.reply, "length" if step.truncated else "stop") for step in taken]
        try:
            self.env.advance(states, replies)
        except Exception as error:
            _log.exception("%s raised in a turn", self.env.name)
            why = f"the environment raised {type(error).__name__}"
            for step, state in zip(taken, states, strict=True):
                state.ended = "done"
                faults[id(step.episode)] = Verdict.fault(Status.VERIFIER_ERROR, why)
            return
        for state in states:
            size = sum(len(m["content"]) for m in state.messages)
            if not state.ended and size > self.episode_chars:
                state.ended = "truncated"

    def _verdicts(self, states: list[State]) -> list[Verdict]:
        """What episodes are worth; where that raises for one, the others still have theirs."""
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
        """What is told of a step."""
        episode, state = step.episode, step.state
        after = [i for i, m in enumerate(state.turns) if m["role"] == "assistant"]
        new = state.turns[after[-1] + 1 :] if after else []
        outcome = {
            "episode": episode.id,
            "turn": episode.turn + 1,
            "messages": serialize_messages(new),
            "reward": finite(state.step_rewards[-1]) if state.step_rewards else None,
            "done": state.ended == "done",
            "truncated": state.ended == "truncated",
            "verdict": None if verdict is None else self._told(verdict),
        }
        episode.took(outcome, over=bool(state.ended))
        return outcome
