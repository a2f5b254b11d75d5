"""An episode while it is played, and what an environment says to a turn of the policy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, SupportsFloat

from ..verifiers import Verdict
from .episode import Episode, Span
from .policy import Completion
from .task import Message, Task, check_message


class Turn(NamedTuple):
    """The environment's answer to a turn of the policy.

    Attributes:
        messages: what it says; the policy's next turn answers them.
        done: whether the episode is over.
        reward: of the policy's turn, if the environment gives rewards by turn.
        verdict: what the episode is worth, if the environment knows: the rubric is not asked.
            It ends the episode.
    """

    messages: tuple[Message, ...] = ()
    done: bool = False
    reward: float | None = None
    verdict: Verdict | None = None

    @classmethod
    def say(cls, text: str, *, role: str = "user", reward: float | None = None) -> Self:
        """Continue with one message."""
        return cls(({"role": role, "content": text},), reward=reward)

    @classmethod
    def end(cls, verdict: Verdict | None = None, *, reward: float | None = None) -> Self:
        """End the episode; the rubric judges unless a verdict is given."""
        return cls(done=True, reward=reward, verdict=verdict)


@dataclass(slots=True)
class State:
    """Everything about one episode so far. A deep copy of it is a clone of the episode.

    Attributes:
        task: what is asked.
        data: the environment's own: a board, a tool's session. It must be copied by ``deepcopy``.
        turns: the messages after the prompt.
        step_rewards: one for each of the policy's turns; ``None`` if the environment gave none.
        spans: tokens, the prompt's first, if the policy gives them.
        ended: how, if it has: by the environment, or cut off by a limit of tokens or turns.
        verdict: the environment's own, if it gave one.
    """

    task: Task
    data: Any = None
    turns: list[Message] = field(default_factory=list)
    step_rewards: list[float | None] = field(default_factory=list)
    spans: tuple[Span, ...] = ()
    ended: Literal["", "done", "truncated"] = ""
    verdict: Verdict | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation: the prompt and all turns."""
        return (*self.task.messages, *self.turns)

    @property
    def reply(self) -> str:
        """Text of the policy's last turn, empty if there is none."""
        for message in reversed(self.turns):
            if message["role"] == "assistant":
                return message["content"]
        return ""

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens so far, of the prompt, the policy and the environment."""
        return tuple(i for span in self.spans for i in span.ids)

    def hear(self, completion: Completion) -> None:
        """Add a turn of the policy, with its tokens if it has them.

        Raises:
            ValueError: the tokens that the policy was given do not begin with those so far.
        """
        self.turns.append({"role": "assistant", "content": completion.text})
        if not completion.ids:
            return
        known, given = self.ids, tuple(completion.prompt_ids)
        if given[: len(known)] != known:
            raise ValueError(
                f"turn {len(self.step_rewards) + 1} of {self.task.id!r}: the policy was given "
                "other tokens than those of the turns before, so it cannot be trained on them; "
                "a policy must extend the tokens it wrote, never re-tokenize them"
            )
        self.spans = (
            *self.spans,
            Span("environment", given[len(known) :]),
            Span("model", completion.ids, completion.logprobs),
        )

    def take(self, turn: Turn) -> None:
        """Add the environment's messages, and end the episode if the turn does.

        Raises:
            TypeError, ValueError: it is no Turn of messages, a Verdict and a finite reward.
        """
        if not isinstance(turn, Turn):
            raise TypeError(f"respond must return Turn.say(text), Turn.end(), got {turn!r:.80}")
        messages, done, reward, verdict = turn
        if not isinstance(verdict, Verdict | None):
            raise TypeError(f"use Turn.end(Verdict) or Turn.end(reward=1.0), got {verdict!r:.80}")
        number = float(reward) if isinstance(reward, SupportsFloat) else math.nan
        if reward is not None and not math.isfinite(number):
            raise ValueError(
                f"the reward of a Turn must be a finite number or None, got {reward!r}"
            )
        for message in messages:
            check_message(message)
        self.turns += messages
        self.step_rewards.append(None if reward is None else number)
        self.verdict = verdict
        if done or verdict is not None:
            self.ended = "done"

    def episode(self, verdict: Verdict) -> Episode:
        """Return the record of the episode."""
        rewards = () if set(self.step_rewards) <= {None} else tuple(self.step_rewards)
        return Episode(
            task_id=self.task.id,
            turns=tuple(self.turns),
            verdict=verdict,
            step_rewards=rewards,
            truncated=self.ended == "truncated",
            spans=self.spans,
        )


def describe(state: State) -> dict[str, Any]:
    """Return what ``info`` shows of an episode: never its reference."""
    task = state.task
    messages = [{**m} for m in state.messages]  # copies, which a caller may change
    return {"task": task.id, "messages": messages, "metadata": {**task.metadata}}


def last_text(state: State) -> str:
    """Return the environment's last text, which is the prompt at first."""
    if not state.turns or state.turns[-1]["role"] == "assistant":
        return state.task.text
    new: list[str] = []
    for message in reversed(state.turns):
        if message["role"] == "assistant":
            break
        new.append(message["content"])
    return "\n\n".join(reversed(new)) or state.task.text
