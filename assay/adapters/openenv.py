"""OpenEnv: an environment behind its HTTP and WebSocket client as an Assay environment."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..envs import Conversation, Source, State, Task, TextEnv, Turn
from ..extras import needing
from ..verifiers import Status, Verdict, Verifier
from ..verifiers.text.words import replace_surrogates
from .judging import RewardFault

Connect = Callable[[], Any]
"""Gives a new client of OpenEnv's, connected or not: each episode has a session of its own."""


def from_openenv(
    connect: str | Connect,
    *,
    prompt: Callable[[Any], str | Conversation],
    action: Callable[[str], Any],
    reply: Callable[[Any], str] | None = None,
    size: int = 1000,
    seeded: bool = True,
    reset: Mapping[str, Any] | None = None,
    total: Callable[[Sequence[float]], float] = sum,
    low: float = 0.0,
    high: float = 1.0,
    max_turns: int = 1,
    name: str = "openenv/Server-v0",
    render_mode: str | None = None,
) -> TextEnv:
    """Make an environment of an OpenEnv server, which keeps the episodes and their rewards.

    Task i is what ``reset(seed=i)`` shows. Each episode holds one session of the server's from its
    first turn to its last, so the server must take as many as are played side by side.

    Args:
        connect: what gives a new client, or the server's address for OpenEnv's generic client,
            whose actions and observations are plain dicts.
        prompt: the first observation as the prompt.
        action: a reply as the client's action. What it raises says that the reply cannot be read:
            it ends the episode, unparseable. So does an action that the server refuses as invalid
            or too long.
        reply: a later observation as the text that the policy reads; by default ``prompt``.
        size: how many tasks there are.
        seeded: whether the server shows the same for the same seed. Many ignore the seed; with
            ``False`` each episode puts what its own reset shows, and a group's episodes may have
            different prompts.
        reset: further arguments of the client's ``reset``.
        total: makes one number of an episode's rewards: ``max``, or ``lambda r: r[-1]``.
        low: what a total of no worth is; it becomes 0.0.
        high: the highest total; it becomes 1.0.
        max_turns: of the policy's, in one episode.
        name: what to call it.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ImportError: an address is given and OpenEnv is missing: the extra ``openenv``.
        ValueError: ``high`` is not above ``low``, or ``size`` is below 1.
    """
    if not high > low:
        raise ValueError(f"high must be above low, got low={low} and high={high}")
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    new_client = _generic(connect) if isinstance(connect, str) else connect
    begin = functools.partial(_begun, new_client, reset or {})
    return OpenEnvEnv(
        _Resets(begin, prompt, size),
        begin=begin,
        prompt=prompt,
        action=action,
        reply=reply or (lambda seen: _text(prompt(seen))),
        seeded=seeded,
        worth=lambda rewards: (total(rewards) - low) / (high - low),
        max_turns=max_turns,
        name=name,
        render_mode=render_mode,
    )


class Session:
    """An episode at the server, closed when it is garbage-collected."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.rewards: list[float | None] = []
        self._close = weakref.finalize(self, client.close)

    def __deepcopy__(self, _: Any) -> Session:
        raise TypeError("an episode at a server cannot be cloned: the server keeps its state")

    def step(self, action: Any) -> Any:
        """Take one step and record its reward."""
        result = self.client.step(action)
        self.rewards.append(None if result.reward is None else float(result.reward))
        return result

    def close(self) -> None:
        """Give the session back. Calling it twice does no harm."""
        self._close()


Begin = Callable[[int], tuple[Session, Any]]
"""Gives the session of an episode with a seed, and the first result of its reset."""


def _begun(connect: Connect, reset: Mapping[str, Any], seed: int) -> tuple[Session, Any]:
    """Open and reset a new session; RewardFault if the server cannot be reached, or refuses."""
    try:
        client = connect()
        if hasattr(type(client), "sync"):  # OpenEnv's clients are made for asyncio
            client = client.sync()
        session = Session(client)
        return session, client.reset(**{"seed": seed, **reset})
    except Exception as error:
        raise RewardFault(
            f"OpenEnv's server gives no episode ({type(error).__name__}: {error}). Is it up, "
            "and does it accept this many sessions at once? (No reply was judged.)"
        ) from error


class _Resets(Source):
    """Task i is what the server shows after ``reset(seed=i)``; the last few are remembered."""

    size: int
    remote = True

    def __init__(
        self, begin: Begin, prompt: Callable[[Any], str | Conversation], size: int
    ) -> None:
        self.begin, self.prompt, self.size = begin, prompt, size
        self._shown = functools.lru_cache(4096)(self._show)

    def task(self, index: int) -> Task:
        if not 0 <= index < self.size:
            raise IndexError(f"task must be from 0 to {self.size - 1}, got {index}")
        return self._shown(index)

    def _show(self, index: int) -> Task:
        session, first = self.begin(index)
        session.close()
        return Task(self.prompt(first.observation), reference=index, id=str(index))


class _Played(str):
    """The episode's verdict as the rubric's result."""

    __slots__ = ("verdict",)
    verdict: Verdict


class ServersRewards(Verifier):
    """Return the total of the server's rewards. It cannot judge a single reply."""

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Return the verdict of a finished episode."""
        if isinstance(reply, _Played):
            return reply.verdict
        return Verdict.fault(
            Status.VERIFIER_ERROR, "the server judges episodes as they are played, not lone replies"
        )


class OpenEnvEnv(TextEnv):
    """Episodes of a server of OpenEnv's. Make one with :func:`from_openenv`.

    Observation: what ``prompt`` and ``reply`` make of the server's. Action: the policy's reply, of
    which ``action`` makes the server's. Reward: the total of the server's rewards, between ``low``
    and ``high``. End: when the server says so, or after ``max_turns``.
    """

    def __init__(
        self,
        source: _Resets,
        *,
        begin: Begin,
        prompt: Callable[[Any], str | Conversation],
        action: Callable[[str], Any],
        reply: Callable[[Any], str],
        seeded: bool,
        worth: Callable[[Sequence[float]], float],
        max_turns: int,
        name: str,
        render_mode: str | None,
    ) -> None:
        super().__init__(
            source, ServersRewards(), name=name, max_turns=max_turns, render_mode=render_mode
        )
        self._begin, self.prompt, self.action, self.reply = begin, prompt, action, reply
        self.seeded, self.worth = seeded, worth

    def begin(self, task: Task) -> State:
        """Open a session and reset it.

        Raises:
            RewardFault: the server cannot be reached, or shows another task for the same seed.
        """
        session, first = self._begin(int(task.reference))
        shown = Task(self.prompt(first.observation), reference=task.reference, id=task.id)
        if self.seeded and shown.messages != task.messages:
            session.close()
            raise RewardFault(
                f"{self.name} shows another task for seed {task.reference} than before: "
                f"{shown.text!r:.80}. It overlooks seeds: give seeded=False"
            )
        return State(shown, data=session)

    def respond(self, state: State, reply: str) -> Turn:
        """Take the server's step."""
        session: Session = state.data
        try:
            action = self.action(replace_surrogates(reply))
        except Exception as error:  # "[]" for an object, brackets a thousand deep
            session.close()
            return Turn.end(Verdict.wrong(_named(error), status=Status.UNPARSEABLE))
        try:
            result = session.step(action)
        except Exception as error:
            session.close()
            reason = f"the server gave no step ({_named(error)})"
            if _is_refusal(error):
                return Turn.end(Verdict.wrong(reason, status=Status.UNPARSEABLE))
            # the line, or the server: no fault of the policy
            return Turn.end(Verdict.fault(Status.VERIFIER_ERROR, reason))
        if result.done:
            session.close()
            return Turn.end()
        if len(state.step_rewards) + 1 >= self.max_turns:
            session.close()
        return Turn.say(self.reply(result.observation))

    def answer(self, state: State) -> str:
        """Return the episode as an answer, with its reward."""
        played = _Played(state.reply)
        played.verdict = self._worth(state.data.rewards)
        return played

    def _worth(self, rewards: Sequence[float | None]) -> Verdict:
        given = [r for r in rewards if r is not None]
        if not given:
            return Verdict.fault(Status.VERIFIER_ERROR, "the server gave no reward at all")
        score = self.worth(given)
        if not 0.0 <= score <= 1.0:
            return Verdict.fault(
                Status.VERIFIER_ERROR,
                f"rewards {given!r:.80} come to {score:g} of 1: give low= and high= of the totals",
            )
        reason = f"the server's rewards: {', '.join(f'{r:g}' for r in given[-8:])}"
        return Verdict(Status.CORRECT if score == 1.0 else Status.INCORRECT, score, reason)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _is_refusal(error: Exception) -> bool:
    """Return whether a working server rejects an action as invalid or too long."""
    closed = getattr(getattr(error, "rcvd", None), "code", 0)
    return closed == 1009 or "(code: VALIDATION_ERROR)" in str(error)


def _generic(address: str) -> Connect:
    with needing("an OpenEnv address", "openenv"):
        from openenv.core import GenericEnvClient
    return lambda: GenericEnvClient(base_url=address)


def _text(prompt: str | Conversation) -> str:
    return prompt if isinstance(prompt, str) else Task(prompt, reference=None).text
