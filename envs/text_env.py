"""Tasks as a Gymnasium environment: text in, text out, in one turn or in several."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, SupportsFloat

import gymnasium as gym

from ..verifiers import Verdict, Verifier
from ..verifiers.nearest import did_you_mean
from ..verifiers.verifier import checked
from .datasets.bad_rows import BadRow
from .datasets.source import Rows, Source
from .group_rubric import GroupRubric
from .policy import Completion
from .spaces import Unicode
from .state import State, Turn, describe, last_text
from .task import Task


class TextEnv(gym.Env[str, str]):
    """Put a task, and judge what the policy makes of it: in one reply, or in several turns.

    Observation: the prompt as text, later what the environment said last; the chat messages are
    in ``info["messages"]``.
    Action: the policy's reply.
    Reward: at the end the rubric's total, before it 0.0; plus the environment's own reward of the
    turn, if any. After an infrastructure failure it is NaN, never 0.0, and ``info["status"]`` names
    the failure.
    End: after one step, ``terminated``, unless :meth:`respond` is overridden; after ``max_turns``
    of the policy's turns ``truncated``, scored as it stands.

    For several turns override :meth:`respond`, and :meth:`begin` if there is more to keep than
    the conversation. An environment object plays any number of episodes side by side: what
    belongs to one is in its :class:`~assay.envs.state.State`, never in ``self``.

    Set :attr:`group_rubric` for rewards that depend on the other episodes of a group. ``step``
    has no group, and knows nothing of it.

    Args:
        source: the source of tasks.
        rubric: what judges replies; a lone verifier will do.
        name: what to call it in errors; the registry sets the id.
        max_turns: of the policy's, in one episode.
        checked: the references are known to be usable, and are not checked again.
        render_mode: ``"ansi"`` or ``None``.

    Attributes:
        extractive: the prompt contains the answer.

    Raises:
        ValueError: a row's reference cannot be used (the first few are listed), or ``max_turns``
            is below 1.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # Gymnasium's own, annotated as it is there
        "render_modes": ["ansi"],
        "render_fps": 1,
    }
    extractive: ClassVar[bool] = False
    group_rubric: GroupRubric | None = None

    def __init__(
        self,
        source: Source,
        rubric: Verifier,
        *,
        name: str = "",
        max_turns: int = 1,
        checked: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, got {max_turns}")
        self.source, self.rubric, self.render_mode = source, rubric, render_mode
        self.max_turns = max_turns
        self.name = name or type(self).__name__
        self.observation_space, self.action_space = Unicode(), Unicode()
        self._state: State | None = None
        self._verdict: Verdict | None = None
        if isinstance(source, Rows) and not checked:
            _refuse_bad_references(self.name, source, rubric)

    @property
    def bad_rows(self) -> Sequence[BadRow]:
        """The invalid rows of the data, which were omitted."""
        return self.source.bad_rows

    def task(self, index: int) -> Task:
        """Return the task at an index, independently of the current episode.

        Raises:
            IndexError: there is no such task.
            TypeError: the index is not an integer; NumPy's are.
        """
        try:
            index = operator.index(index)
        except TypeError as error:
            raise TypeError(
                f"task {index!r:.80} cannot be interpreted as an integer: give one from 0"
            ) from error
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
            ValueError: there is another option.
        """
        named = known_options(options, ("task",)).get("task")
        if seed is not None:
            super().reset(seed=seed)
        index = self.source.draw(self.np_random) if named is None else named
        self._state, self._verdict = self.begin(self.task(index)), None
        return self._state.task.text, describe(self._state)

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take the policy's turn; judge the episode if that ends it.

        Raises:
            TypeError: the reply is not text.
            RuntimeError: there is no task to reply to.
        """
        state = self._state
        if state is None or state.ended:
            raise RuntimeError("step needs a task to reply to: the episode is over, call reset")
        self.advance([state], [Completion(action)])
        info, reward = describe(state), state.step_rewards[-1] or 0.0
        ended: str = state.ended
        if ended:
            (verdict,) = self.verdicts([state])
            self._verdict = verdict
            info |= verdict_info(verdict)
            reward += math.nan if verdict.score is None else verdict.score
        return last_text(state), reward, ended == "done", ended == "truncated", info

    # -- for several turns ---------------------------------------------------------------------

    def begin(self, task: Task) -> State:
        """Begin an episode. Override it to put the episode's state into ``data``."""
        return State(task)

    def respond(self, state: State, reply: str) -> Turn:
        """Answer the policy's turn: by default the episode ends.

        Args:
            state: the episode; ``reply`` is its last turn already. Change ``state.data`` freely.
            reply: hostile text: whatever it holds, this neither raises nor hangs.
        """
        return _OVER

    def respond_many(self, states: Sequence[State], replies: Sequence[str]) -> list[Turn]:
        """Call :meth:`respond` for each; override it if a batch is faster."""
        # No map: a StopIteration in respond would silently end it.
        return [self.respond(s, reply) for s, reply in zip(states, replies, strict=True)]

    def answer(self, state: State) -> str:
        """Return what the rubric judges of an episode: by default the policy's last turn."""
        return state.reply

    def solve(self, state: State) -> str | None:
        """Return the next turn of an episode that earns full marks, or ``None`` if unknown.

        By default the task's ``solution``, whatever the turn; in an environment of one turn also
        what the rubric knows to win. Override it if turns must differ. It is for tests of the
        environment (:func:`~assay.envs.check`): it sees all of ``state``, as no policy does.
        """
        if state.task.solution is None and self.max_turns == 1:
            return self.rubric.oracle_reply(state.task.reference)
        return state.task.solution

    # -- episodes side by side -----------------------------------------------------------------

    def advance(self, states: Sequence[State], completions: Sequence[Completion]) -> None:
        """Take one turn in each episode. One that was cut off in mid-turn ends with it.

        One that a policy of tokens had no room to answer ends as it stands.
        """
        going = []
        for state, completion in zip(states, completions, strict=True):
            cut = completion.finish == "length"
            if cut and completion.prompt_ids and not completion.ids and state.spans:
                state.ended = "truncated"
                continue
            state.hear(completion)
            if cut:
                state.take(Turn())
                state.ended = "truncated"
            else:
                going.append(state)
        turns = self.respond_many(going, [state.reply for state in going])
        for state, turn in zip(going, turns, strict=True):
            self._take(state, turn)

    def _take(self, state: State, turn: Turn) -> None:
        """Add a turn of the environment; after the last one the episode is truncated."""
        state.take(turn)
        if not state.ended and len(state.step_rewards) >= self.max_turns:
            state.ended = "truncated"

    def verdicts(self, states: Sequence[State]) -> list[Verdict]:
        """Return the verdicts of finished episodes, judged in one batch."""
        asked = [state for state in states if state.verdict is None]
        answers = [self.answer(state) for state in asked]
        found = iter(checked(self.rubric, answers, [s.task.reference for s in asked]))
        return [next(found) if s.verdict is None else s.verdict for s in states]

    def clone(self) -> tuple[State | None, dict[str, Any]]:
        """Copy the current episode and the random state, for :meth:`restore`."""
        return copy.deepcopy(self._state), dict(copy.deepcopy(self.np_random.bit_generator.state))

    def restore(self, clone: tuple[State | None, dict[str, Any]]) -> None:
        """Go back to the state of :meth:`clone`, any number of times."""
        state, random_state = copy.deepcopy(clone)
        self._state, self._verdict = state, None
        self.np_random.bit_generator.state = random_state

    def render(self) -> str | None:
        """Return the conversation so far, in ``ansi`` mode."""
        if self.render_mode != "ansi" or self._state is None:
            return "" if self.render_mode == "ansi" else None
        texts = [m["content"] for m in self._state.messages]
        if self._verdict is not None:
            texts.append(f"{self._verdict.status} {self._verdict.score}")
        return "\n\n".join(texts)

    def close(self) -> None:
        """Give back what the rubrics hold: workers, sandboxes."""
        self.rubric.close()
        if self.group_rubric is not None:
            self.group_rubric.close()


_OVER = Turn(done=True)
_SHOWN = 5
"""References that cannot be used and are named in the error."""


def verdict_info(verdict: Verdict) -> dict[str, Any]:
    """Return what ``info`` shows of a verdict: no timings, so that it is deterministic."""
    return {
        "status": str(verdict.status),
        "rewards": {**verdict.parts},
        "reason": verdict.reason,
        "extracted": verdict.extracted,
    }


def _refuse_bad_references(name: str, source: Rows, rubric: Verifier) -> None:
    """Check every reference before any reply is judged."""
    bad = []
    for row, task in enumerate(source.tasks):
        fault = rubric.check_reference(task.reference)
        if fault is not None:
            bad.append(f"\n  row {row} ({task.id}): {fault}")
    if bad:
        more = f"\n  and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise ValueError(
            f"{name}: {len(bad)} of {source.size} references cannot be used, so no reply could be "
            f"scored against them. Correct or remove these rows:{''.join(bad[:_SHOWN])}{more}"
        )


def known_options(options: Mapping[str, Any] | None, known: Sequence[str]) -> dict[str, Any]:
    """Return a copy of the options of a ``reset``, empty for ``None``.

    Raises:
        TypeError: they are no mapping.
        ValueError: one of them is not known. The message names the nearest that is.
    """
    if options is None:
        return {}
    if type(options) is not dict and not isinstance(options, Mapping):
        raise TypeError(f"options of reset must be a dict or None, got {options!r:.80}")
    for key in options:
        if key not in known:
            here = f"Options here are {', '.join(known)}"
            near = did_you_mean(str(key), known, here)
            raise ValueError(
                f"reset does not know the option {key!r:.80}, and overlooks none. {near}"
            )
    return dict(options)
