"""A served environment as an environment: for rollouts, vectors, learners and TRL."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from ..envs import Completion, GroupRubric, Source, State, Task, TextEnv, Turn
from ..verifiers import Status, Verdict, Verifier
from .remote import Remote, RemoteError, parts, sendable

TOKEN = "ASSAY_SERVE_TOKEN"


class RemoteEnv(TextEnv):
    """Put a server's tasks, and have the server judge.

    Observation, action and end are those of the environment that is served.
    Reward: the server's; none where the server is at fault or out of reach, never 0.0.

    A task's ``reference`` is its number on the server, which keeps the known answer to itself.

    Args:
        url: such as ``http://127.0.0.1:8000``.
        token: the server's; by default that of ``ASSAY_SERVE_TOKEN``, where it is set.
        group_rubric: a server judges each episode by itself; where its environment has rewards
            that depend on the group, give them here.
        retries: of a call that failed, before it counts as the server's fault.
        timeout_s: of one call.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        RemoteError: the server does not answer, or refuses the token.
        ValueError: the URL is none, or the environment has a group rubric and none is given.

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
            told = remote.get("/v1/environment")
        except RemoteError:
            remote.close()
            raise
        if told["group_rubric"] and group_rubric is None:
            remote.close()
            raise ValueError(
                f"{told['name']} at {url} has rewards that depend on the group, and a server "
                "judges each episode by itself: give the same group_rubric here"
            )
        self.remote, self.limits = remote, told["limits"]
        super().__init__(
            RemoteSource(remote, told["size"]),
            RemoteVerifier(remote, told["limits"]),
            name=told["name"],
            max_turns=told["max_turns"],
            render_mode=render_mode,
        )
        self.group_rubric = group_rubric

    def respond_many(self, states: Sequence[State], replies: Sequence[str]) -> list[Turn]:
        """The server's answer to each; one whose server fails ends without a score."""
        if self.max_turns == 1:  # judged with all others, when they are over
            return super().respond_many(states, replies)
        outcomes = self._steps(states, replies, [len(s.step_rewards) for s in states])
        return [self._turn(state, outcome) for state, outcome in zip(states, outcomes, strict=True)]

    def advance(self, states: Sequence[State], completions: Sequence[Completion]) -> None:
        """Take one turn in each episode; the server is told of those that were cut off."""
        super().advance(states, completions)
        if self.max_turns == 1:
            return
        cut = [s for s in states if s.ended == "truncated" and s.verdict is None]
        turns = [len(s.step_rewards) - 1 for s in cut]
        outcomes = self._steps(cut, [s.reply for s in cut], turns, truncated=True)
        for state, outcome in zip(cut, outcomes, strict=True):
            state.verdict = _verdict_of(outcome)

    def clone(self) -> tuple[State | None, dict[str, Any]]:
        """The episode and the random state, where an episode is one turn.

        Raises:
            RuntimeError: it is several: the rest of the episode is on the server.
        """
        if self.max_turns > 1:
            raise RuntimeError(
                f"{self.name} keeps its episodes on {self.remote.url}, where they cannot be "
                "copied: play the turns anew"
            )
        return super().clone()

    def close(self) -> None:
        """End the connections."""
        super().close()
        self.remote.close()

    def _take(self, state: State, turn: Turn) -> None:
        super()._take(state, turn)
        if state.ended and state.verdict is None and isinstance(state.data, _Played):
            state.verdict = state.data.verdict

    def _turn(self, state: State, outcome: Mapping[str, Any]) -> Turn:
        """A turn of the server's; where it cut the episode off, so will :meth:`_take`."""
        if "error" in outcome:
            return Turn.end(_verdict_of(outcome))
        said = tuple(outcome["messages"])
        if not (outcome["done"] or outcome["truncated"]):
            return Turn(said, reward=outcome["reward"])
        verdict = _verdict_of(outcome)
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
    ) -> list[Mapping[str, Any]]:
        """Outcomes of a turn in each episode; an ``error`` where there is none."""
        found: list[Mapping[str, Any]] = []
        for part in parts(replies, self.limits["batch"], self.limits["body_bytes"]):
            some = [states[i] for i in part]
            try:
                self._begin(some)
                body = [
                    {
                        "episode": states[i].data.episode,
                        "reply": sendable(replies[i]),
                        "turn": turns[i],
                        "truncated": truncated,
                    }
                    for i in part
                ]
                found += self.remote.post("/v1/episodes/step", {"steps": body})["outcomes"]
            except RemoteError as error:
                found += [{"error": {"message": str(error)}}] * len(some)
        return found

    def _begin(self, states: Sequence[State]) -> None:
        """Begin episodes on the server that have not begun there."""
        new = [state for state in states if not isinstance(state.data, _Played)]
        if new:
            body = {"tasks": [state.task.reference for state in new]}
            begun = self.remote.post("/v1/episodes", body)["episodes"]
            for state, row in zip(new, begun, strict=True):
                state.data = _Played(row["episode"])


class _Played:
    """Which episode of the server's a state is, and its verdict where it was cut off."""

    __slots__ = ("episode", "verdict")

    def __init__(self, episode: str) -> None:
        self.episode = episode
        self.verdict: Verdict | None = None


class RemoteSource(Source):
    """A server's tasks, of which it keeps the last few thousand.

    Args:
        remote: the server.
        size: how many it has; ``None`` where they never end.
        kept: tasks to keep.
    """

    def __init__(self, remote: Remote, size: int | None, *, kept: int = 4096) -> None:
        self.remote, self.size, self.kept = remote, size, kept
        self._tasks: OrderedDict[int, Task] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_lock": threading.Lock()})

    def task(self, index: int) -> Task:
        """The task at an index; its reference is the index.

        Raises:
            IndexError: there is no such task.
            RemoteError: the server does not answer.
        """
        with self._lock:
            if index in self._tasks:
                self._tasks.move_to_end(index)
                return self._tasks[index]
        if index < 0 or (self.size is not None and index >= self.size):
            raise IndexError(f"task must be from 0 to {(self.size or 2**63) - 1}, got {index}")
        row = self.remote.get(f"/v1/tasks/{index}")["tasks"][0]
        task = Task(row["messages"], index, row["id"], row["metadata"])
        with self._lock:
            self._tasks[index] = task
            while len(self._tasks) > self.kept:
                self._tasks.popitem(last=False)
        return task


class RemoteVerifier(Verifier):
    """Has a server judge replies to its tasks; a reference is a task's number.

    Args:
        remote: the server.
        limits: what it told of them.
    """

    def __init__(self, remote: Remote, limits: Mapping[str, Any]) -> None:
        self.remote, self.limits = remote, limits

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """The server's verdicts; ``verifier_error``, without a score, where it gives none."""
        found: list[Verdict] = []
        for part in parts(replies, self.limits["batch"], self.limits["body_bytes"]):
            body = {
                "replies": [sendable(replies[i]) for i in part],
                "tasks": [references[i] for i in part],
            }
            try:
                rows = self.remote.post("/v1/score", body)["verdicts"]
                found += [_verdict(row) for row in rows]
            except RemoteError as error:
                found += [Verdict.fault(Status.VERIFIER_ERROR, str(error))] * len(part)
        return found

    def to_json(self) -> dict[str, Any]:
        """Which server judges."""
        return {"name": "RemoteVerifier", "url": self.remote.url}

    def close(self) -> None:
        """End the connections."""
        self.remote.close()


def _verdict(row: Mapping[str, Any]) -> Verdict:
    return Verdict(row["status"], row["score"], row["reason"], row["extracted"], row["parts"])


def _verdict_of(outcome: Mapping[str, Any]) -> Verdict:
    """The verdict of an outcome; a fault where there is none."""
    row = outcome.get("verdict")
    if row is not None:
        return _verdict(row)
    why = outcome.get("error", {}).get("message", "the server gave no verdict")
    return Verdict.fault(Status.VERIFIER_ERROR, str(why))
