"""The environment at work, in threads: where it raises, only what it raised for has no score."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..envs import Completion, State, TextEnv, Turn
from ..lone_replies import played
from ..verifiers import Status, Verdict
from .held import HeldEpisode
from .limits import ServiceLimits, too_long
from .told import finite, messages_told

_log = logging.getLogger("assay.service")


class Taken(NamedTuple):
    """A step that is being taken."""

    episode: HeldEpisode
    reply: str
    truncated: bool

    @property
    def state(self) -> State:
        """Its episode, which is not over: one that is takes no step."""
        assert self.episode.state is not None  # noqa: S101  # for the type
        return self.episode.state


class Judge:
    """Takes steps and judges replies, those of several requests in one batch.

    Args:
        env: takes them, and judges; from several threads.
        limits: a longer conversation is cut off, and a longer reply not judged.
        told: a verdict as it is told of a reply.
    """

    def __init__(
        self, env: TextEnv, limits: ServiceLimits, told: Callable[[Verdict, str], dict[str, Any]]
    ) -> None:
        self.env, self.limits, self._told = env, limits, told
        kind = type(env)
        own = kind.respond is not TextEnv.respond and kind.advance is TextEnv.advance
        self._one_by_one = own and kind.respond_many is TextEnv.respond_many

    def take(self, requests: list[list[Taken]]) -> list[list[dict[str, Any]]]:
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
        pairs = [pair for replies, golds in requests for pair in zip(replies, golds, strict=True)]
        judged = iter(self._scored([pair for pair in pairs if self._unread(pair[0]) is None]))
        found = iter([self._unread(reply) or next(judged) for reply, _ in pairs])
        return [[next(found) for _ in replies] for replies, _ in requests]

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

    def _unread(self, reply: str) -> Verdict | None:
        """The verdict of a reply that is too long to be judged."""
        most = self.limits.reply_chars
        if len(reply) <= most:
            return None
        return too_long(len(reply), most, "characters", self.env.rubric.score_range[0])

    def _scored(self, pairs: Sequence[tuple[str, Any]]) -> list[Verdict]:
        """Verdicts of the rubric; where it raises for one reply, the others still have theirs."""
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

    def _advance(self, taken: list[Taken], faults: dict[int, Verdict]) -> None:
        """The environment's answer to the steps of one request; one too long ends its episode."""
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

    def _answer(self, taken: list[Taken], faults: dict[int, Verdict]) -> None:
        """The environment's answer to some steps.

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
            if not state.ended and size > self.limits.episode_chars:
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

    def _outcome(self, step: Taken, verdict: Verdict | None) -> dict[str, Any]:
        """What is told of a step."""
        episode, state = step.episode, step.state
        after = [i for i, m in enumerate(state.turns) if m["role"] == "assistant"]
        new = state.turns[after[-1] + 1 :] if after else []
        outcome = {
            "episode": episode.id,
            "turn": episode.turn + 1,
            "messages": messages_told(new),
            "reward": finite(state.step_rewards[-1]) if state.step_rewards else None,
            "done": state.ended == "done",
            "truncated": state.ended == "truncated",
            "verdict": None if verdict is None else self._told(verdict, step.reply),
        }
        episode.took(outcome, over=bool(state.ended))
        return outcome
