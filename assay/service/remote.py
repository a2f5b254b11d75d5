"""A server as an environment, a verifier and a group's rubric: without a verdict, no score."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, SupportsFloat

from ..envs import Completion, Episode, GroupRubric, Source, State, Task, TextEnv, Turn
from ..verifiers import Status, Verdict, Verifier
from ..verifiers.verifier import same_length
from .client import Remote, RemoteError, rows
from .grading import serialize_verdict
from .limits import too_long

TOKEN = "ASSAY_SERVE_TOKEN"
_OUTCOME = frozenset({"messages", "done", "truncated", "reward"})


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
        token = token or os.environ.get(TOKEN) or None
        remote = Remote(url, token, retries=retries, timeout_s=timeout_s)
        try:
            served = remote.describe()
        except RemoteError:
            remote.close()
            raise
        self.remote, self.limits, self.lone = remote, served["limits"], served["lone_replies"]
        self._tools: list[dict[str, Any]] | None = served["tools"]
        self._left: deque[str] = deque()
        super().__init__(
            RemoteSource(remote, served["size"], served.get("split", "")),
            RemoteVerifier(remote, self.limits, tuple(served.get("score_range", (0.0, 1.0)))),
            name=served["name"],
            max_turns=served["max_turns"],
            render_mode=render_mode,
        )
        if group_rubric is None and served["group_rubric"]:
            group_rubric = RemoteGroupRubric(remote, self.limits)
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
            state.verdict = _verdict_of(outcome)

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
            return Turn.end(_verdict_of(outcome))
        messages = tuple(outcome["messages"])
        if not (outcome["done"] or outcome["truncated"]):
            return Turn(messages, reward=outcome["reward"])
        verdict = _verdict_of(outcome)
        if outcome["truncated"] and len(state.step_rewards) + 1 >= self.max_turns:
            state.data.verdict = verdict
            return Turn(messages, reward=outcome["reward"])
        return Turn(messages, done=True, reward=outcome["reward"], verdict=verdict)

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


class _Played:
    """The server's episode of a state, and its verdict if it was truncated.

    If it is garbage-collected before it is over, its id is queued for closing.
    """

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


class RemoteSource(Source):
    """A server's tasks, of which it keeps the last few thousand.

    Args:
        server: the server.
        size: how many it has; ``None`` if they never end.
        split: the split that they are of; empty if the server does not say.
        kept: tasks to keep.
    """

    remote = True

    def __init__(self, server: Remote, size: int | None, split: str = "", kept: int = 4096) -> None:
        self.server, self.size, self.split, self.kept = server, size, split, kept
        self._fetched = functools.lru_cache(kept)(self._fetch)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.server, self.size, self.split, self.kept)

    def task(self, index: int) -> Task:
        """Return the task at an index; its reference is the index.

        Raises:
            IndexError: there is no such task.
            RemoteError: the server does not answer.
        """
        if index < 0 or (self.size is not None and index >= self.size):
            raise IndexError(f"task must be from 0 to {(self.size or 2**63) - 1}, got {index}")
        return self._fetched(index)

    def _fetch(self, index: int) -> Task:
        (row,) = rows(self.server.get(f"/v1/tasks/{index}"), "tasks", 1)
        try:
            return Task(row["messages"], index, row["id"], row["metadata"])
        except (KeyError, TypeError, ValueError) as error:
            raise RemoteError(f"the server sent an invalid task: {error}") from error


class RemoteVerifier(Verifier):
    """Has a server judge replies to its tasks; a reference is a task's number."""

    def __init__(
        self,
        remote: Remote,
        limits: Mapping[str, Any],
        score_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.remote, self.limits, self.score_range = remote, limits, score_range

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Return the server's verdicts, or ``verifier_error`` without a score if it sends none."""
        same_length(replies, references)

        def body(part: list[int]) -> dict[str, Any]:
            return {"replies": [replies[i] for i in part], "tasks": [references[i] for i in part]}

        found = self.remote.judged(
            "/v1/score", "verdicts", replies, body, self.limits, self.score_range[0]
        )
        return [row if isinstance(row, Verdict) else self._in_range(_verdict(row)) for row in found]

    def to_json(self) -> dict[str, Any]:
        """Return the server's address."""
        return {"name": "RemoteVerifier", "url": self.remote.url}

    def close(self) -> None:
        """End the connections."""
        self.remote.close()


class RemoteGroupRubric(GroupRubric):
    """Has a server add the rewards that depend on the group.

    Episodes are sent with their tokens, without log-probabilities.
    """

    def __init__(self, remote: Remote, limits: Mapping[str, Any]) -> None:
        self.remote, self.limits = remote, limits

    def judged(self, task: Task, episodes: Sequence[Episode]) -> list[Episode]:
        """Return the episodes with the server's verdicts, without a score if it sends none."""
        given = [_given(episode) for episode in episodes]
        sizes = {k: len(json.dumps(row)) + 2 for k, row in enumerate(given)}
        room, found = self.limits["body_bytes"] - 1000, {}
        while sum(sizes.values()) > room:  # the longest is left out of the group
            longest = max(sizes, key=lambda k: sizes[k])
            lowest = min(0.0, episodes[longest].reward or 0.0)
            found[longest] = too_long(sizes.pop(longest), room, "bytes as JSON, by group", lowest)
        group = {"task": task.reference, "episodes": [given[k] for k in sizes]}
        try:
            (row,) = rows(self.remote.post("/v1/groups", {"groups": [group]}), "groups", 1)
            verdicts = [_verdict(v) for v in rows({"verdicts": row}, "verdicts", len(sizes))]
        except RemoteError as error:
            verdicts = [Verdict.fault(Status.VERIFIER_ERROR, str(error))] * len(sizes)
        found |= dict(zip(sizes, verdicts, strict=True))
        for k, episode in enumerate(episodes):
            if not found[k].reason:  # the server sends none
                found[k] = replace(found[k], reason=episode.verdict.reason)
        return [
            e if e.reward is None else replace(e, verdict=found[k]) for k, e in enumerate(episodes)
        ]

    def close(self) -> None:
        """End the connections."""
        self.remote.close()

    def to_json(self) -> dict[str, Any]:
        """Return the server's address."""
        return {"name": "RemoteGroupRubric", "url": self.remote.url}

    def __repr__(self) -> str:
        return f"RemoteGroupRubric({self.remote.url!r})"


def _verdict_of(outcome: Mapping[str, Any] | Verdict) -> Verdict:
    """Convert an outcome to a verdict; an outcome without one is a fault."""
    if isinstance(outcome, Verdict):
        return outcome
    row = outcome.get("verdict")
    if row is not None:
        return _verdict(row)
    fault = outcome.get("error") or {}
    return Verdict.fault(
        Status.VERIFIER_ERROR, str(fault.get("message", "the server gave no verdict"))
    )


def _verdict(row: Mapping[str, Any]) -> Verdict:
    """Parse a verdict from the server; an invalid one is the server's fault."""
    try:
        return Verdict(row["status"], row["score"], row["reason"], row["extracted"], row["parts"])
    except (KeyError, TypeError, ValueError) as error:
        return Verdict.fault(Status.VERIFIER_ERROR, f"the server sent an invalid verdict: {error}")


def _given(episode: Episode) -> dict[str, Any]:
    """Serialise an episode for the server."""
    return {
        "turns": [dict(message) for message in episode.turns],
        "verdict": serialize_verdict(episode.verdict, reasons=True),
        "step_rewards": list(episode.step_rewards),
        "truncated": episode.truncated,
        "spans": [{"author": s.author, "ids": list(s.ids)} for s in episode.spans],
    }
