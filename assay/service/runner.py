"""Run an environment in threads: if it raises, only what it raised for has no score."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..envs import Completion, State, TextEnv, Turn
from ..lone_replies import OWN, played
from ..verifiers import Rubric, Status, Verdict, Verifier
from .limits import ServiceLimits, too_long
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
        """The episode, if it is in progress; a finished one accepts no step."""
        assert self.session.state is not None  # noqa: S101  # for the type
        return self.session.state


class EpisodeRunner:
    """Take steps and judges replies, those of several requests in one batch.

    Args:
        env: takes them, and judges; from several threads.
        limits: a longer conversation is cut off, and a longer reply not judged.
        serialize: makes JSON of a reply's verdict.
    """

    def __init__(
        self,
        env: TextEnv,
        limits: ServiceLimits,
        serialize: Callable[[Verdict, str], dict[str, Any]],
    ) -> None:
        self.env, self.limits, self._serialize = env, limits, serialize
        kind = type(env)
        respond = kind.respond is not TextEnv.respond and kind.advance is TextEnv.advance
        self._one_by_one = respond and kind.respond_many is TextEnv.respond_many
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
        pairs = [pair for replies, golds in requests for pair in zip(replies, golds, strict=True)]
        judged = iter(self._scored([pair for pair in pairs if self._unread(pair[0]) is None]))
        found = iter([self._unread(reply) or next(judged) for reply, _ in pairs])
        return [[next(found) for _ in replies] for replies, _ in requests]

    def is_able(self) -> bool:
        """Return whether a reply, a passing one if known, gets a score.

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
            return True  # starting an episode may have side effects
        state = env.begin(task)
        said = env.solve(state)
        if said is not None:
            env.advance([state], [Completion(said)])
        return state.verdict is None or state.verdict.score is not None

    def _unread(self, reply: str) -> Verdict | None:
        """Return the verdict of a reply that is too long to be judged."""
        most = self.limits.reply_chars
        if len(reply) <= most:
            return None
        return too_long(len(reply), most, "characters", self.env.rubric.score_range[0])

    def _scored(self, pairs: Sequence[tuple[str, Any]]) -> list[Verdict]:
        """Judge replies; if the rubric raises for one, the others still have their verdicts."""
        try:
            found = self.env.rubric.verify_many([r for r, _ in pairs], [gold for _, gold in pairs])
            if len(found) != len(pairs):
                raise ValueError(f"expected {len(pairs)} verdicts, got {len(found)}")
            return found
        except Exception as error:
            if len(pairs) > 1:
                return [self._scored([pair])[0] for pair in pairs]
            _log.exception("the rubric of %s raised", self.env.name)
            why = f"the rubric raised {type(error).__name__}"
            return [Verdict.fault(Status.VERIFIER_ERROR, why)]

    def _advance(self, taken: list[PendingStep], faults: dict[int, Verdict]) -> None:
        """Take the steps of one request; a reply that is too long ends its episode."""
        read = []
        for step in taken:
            unread = self._unread(step.reply)
            if unread is None:
                read.append(step)
            else:
                step.state.hear_text("")
                step.state.take(Turn.end(unread))
        for some in [[step] for step in read] if self._one_by_one else [read]:
            self._answer(some, faults)

    def _answer(self, taken: list[PendingStep], faults: dict[int, Verdict]) -> None:
        """Take some steps; if that raises, these episodes end without a score."""
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
            if not state.ended and size > self.limits.episode_chars:
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
            "verdict": None if verdict is None else self._serialize(verdict, step.reply),
        }
        session.note(outcome, over=bool(state.ended))
        return outcome


def _is_quick(verifier: Verifier) -> bool:
    """Return whether a verifier's very class says so, not one that it is derived from."""
    if type(verifier) is Rubric:
        return all(map(_is_quick, verifier.parts.values()))
    return bool(vars(type(verifier)).get("quick"))
