"""A client environment for a server: for rollouts, vectors, learners and TRL."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

from ..envs import Completion, GroupRubric, State, TextEnv, Turn
from ..verifiers import Verdict
from .remote import Remote, RemoteError, described, rows
from .remote_judges import RemoteGroupRubric, RemoteVerifier, verdict_of
from .remote_tasks import RemoteSource

TOKEN = "ASSAY_SERVE_TOKEN"


class RemoteEnv(TextEnv):
    """Play the tasks of a server, which scores the replies.

    Observation, action and end are those of the served environment.
    Reward: the server's; none, never 0.0, if the server fails or cannot be reached.

    A task's ``reference`` is its number on the server, which never sends the known answer.

    Args:
        url: such as ``http://127.0.0.1:8000``.
        token: the token, by default that of ``ASSAY_SERVE_TOKEN``, if set.
        group_rubric: replaces the server's rewards that depend on the group, if any.
        retries: attempts after a failed request, before it counts as the server's failure.
        timeout_s: timeout of one request.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        RemoteError: the server does not answer, refuses the token, or is of another version.
        ValueError: the URL is invalid.

    Example:
        >>> env = RemoteEnv("http://127.0.0.1:8000")  # doctest: +SKIP
        >>> rollout(env, policy, groups=8, group_size=4)  # doctest: +SKIP
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        group_rubric: GroupRubric | None = None,
        retries: int = 6,
        timeout_s: float = 330.0,
        render_mode: str | None = None,
    ) -> None:
        remote = Remote(
            url, token or os.environ.get(TOKEN) or None, retries=retries, timeout_s=timeout_s
        )
        try:
            served = described(remote)
        except RemoteError:
            remote.close()
            raise
        self.remote, self.limits, self.lone = remote, served["limits"], served["lone_replies"]
        self._tools: list[dict[str, Any]] | None = served["tools"]
        self._left: deque[str] = deque()
        super().__init__(
            RemoteSource(remote, served["size"], split=served.get("split", "")),
            RemoteVerifier(remote, served["limits"], tuple(served.get("score_range", (0.0, 1.0)))),
            name=served["name"],
            max_turns=served["max_turns"],
            render_mode=render_mode,
        )
        if group_rubric is None and served["group_rubric"]:
            group_rubric = RemoteGroupRubric(remote, served["limits"])
        self.group_rubric = group_rubric

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The JSON schemas of the tools that policies may call; the server executes the calls.

        Raises:
            AttributeError: there are no tools.
        """
        if self._tools is None:
            raise AttributeError(f"{self.name} has no tools and therefore no schemas")
        return self._tools

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a task, as for a TextEnv; with tools ``info["tools"]`` has their schemas."""
        text, info = super().reset(seed=seed, options=options)
        return text, info if self._tools is None else info | {"tools": self._tools}

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take the policy's turn, as for a TextEnv; with tools ``info`` has their schemas."""
        text, reward, terminated, truncated, info = super().step(action)
        more = {} if self._tools is None else {"tools": self._tools}
        return text, reward, terminated, truncated, info | more

    def respond_many(self, states: Sequence[State], replies: Sequence[str]) -> list[Turn]:
        """Return the server's response to each; a failed request ends the episode, unscored."""
        if self.lone:  # scored in one batch when they are over
            return super().respond_many(states, replies)
        outcomes = self._steps(states, replies, [len(s.step_rewards) for s in states])
        return [self._turn(state, outcome) for state, outcome in zip(states, outcomes, strict=True)]

    def advance(self, states: Sequence[State], completions: Sequence[Completion]) -> None:
        """Take one turn in each episode; truncated ones are reported to the server."""
        super().advance(states, completions)
        if self.lone:
            return
        cut = [s for s in states if s.ended == "truncated" and s.verdict is None]
        turns = [len(s.step_rewards) - 1 for s in cut]
        outcomes = self._steps(cut, [s.reply for s in cut], turns, truncated=True)
        for state, outcome in zip(cut, outcomes, strict=True):
            state.verdict = verdict_of(outcome)

    def clone(self) -> tuple[State | None, dict[str, Any]]:
        """Copy the episode and the random state, if an episode is one reply.

        Raises:
            RuntimeError: the episode is played on the server.
        """
        if not self.lone:
            raise RuntimeError(
                f"{self.name} keeps its episodes on {self.remote.url}, where they cannot be "
                "copied: play the turns again"
            )
        return super().clone()

    def close(self) -> None:
        """Close unfinished episodes on the server, and the connections."""
        self._state = None
        self._give_back(retries=0)
        super().close()
        self.remote.close()

    def _take(self, state: State, turn: Turn) -> None:
        super()._take(state, turn)
        if state.ended and state.verdict is None and isinstance(state.data, _Played):
            state.verdict = state.data.verdict

    def _turn(self, state: State, outcome: Mapping[str, Any] | Verdict) -> Turn:
        """Convert a turn of the server; truncation there is truncation in :meth:`_take`."""
        if isinstance(outcome, Verdict):
            return Turn.end(outcome)
        if outcome.get("error") is not None or not set(outcome) >= _OUTCOME:
            return Turn.end(verdict_of(outcome))
        said = tuple(outcome["messages"])
        if not (outcome["done"] or outcome["truncated"]):
            return Turn(said, reward=outcome["reward"])
        verdict = verdict_of(outcome)
        if outcome["truncated"] and len(state.step_rewards) + 1 >= self.max_turns:
            state.data.verdict = verdict
            return Turn(said, reward=outcome["reward"])
        return Turn(said, done=True, reward=outcome["reward"], verdict=verdict)

    def _steps(
        self,
        states: Sequence[State],
        replies: Sequence[str],
        turns: Sequence[int],
        *,
        truncated: bool = False,
    ) -> list[dict[str, Any] | Verdict]:
        """Return the outcome of a turn in each episode; a verdict if there is none."""

        def body(part: list[int]) -> dict[str, Any]:
            self._begin([states[i] for i in part])
            steps = [
                {
                    "episode": states[i].data.episode,
                    "reply": replies[i],
                    "turn": turns[i],
                    "truncated": truncated,
                }
                for i in part
            ]
            return {"steps": steps}

        found = self.remote.judged(
            "/v1/episodes/step", "outcomes", replies, body, self.limits, self.rubric.score_range[0]
        )
        for state, outcome in zip(states, found, strict=True):
            if not isinstance(outcome, Verdict) and outcome.get("verdict") is not None:
                state.data.over()
        return found

    def _begin(self, states: Sequence[State]) -> None:
        """Start episodes on the server that have not started there."""
        new = [state for state in states if not isinstance(state.data, _Played)]
        if new:
            self._give_back()
            body = {"tasks": [state.task.reference for state in new]}
            begun = rows(self.remote.post("/v1/episodes", body), "episodes", len(new))
            for state, row in zip(new, begun, strict=True):
                state.data = _Played(row["episode"], self._left)

    def _give_back(self, retries: int | None = None) -> None:
        """Close abandoned episodes, which the server would keep until they are idle."""
        ids = [self._left.popleft() for _ in range(min(len(self._left), self.limits["batch"]))]
        if ids:
            with contextlib.suppress(RemoteError):
                self.remote.post("/v1/episodes/close", {"episodes": ids}, retries=retries)


_OUTCOME = frozenset({"messages", "done", "truncated", "reward"})


class _Played:
    """The server's episode of a state, and its verdict if it was truncated.

    If it is garbage-collected before it is over, its id is queued for closing.
    """

    __slots__ = ("__weakref__", "_gone", "episode", "left", "verdict")

    def __init__(self, episode: str, left: deque[str]) -> None:
        self.episode, self.left = episode, left
        self.verdict: Verdict | None = None
        self._gone = weakref.finalize(self, left.append, episode)
        self._gone.atexit = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _Played, (self.episode, self.left)

    def over(self) -> None:
        """Cancel the closing: the server drops finished episodes itself."""
        self._gone.detach()
