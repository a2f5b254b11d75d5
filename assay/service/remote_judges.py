"""A server as a verifier and as a group's rubric; without its verdict there is no score."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..envs import Episode, GroupRubric, Task
from ..verifiers import Status, Verdict, Verifier
from ..verifiers.verifier import same_length
from .limits import too_long
from .remote import Remote, RemoteError, rows


class RemoteVerifier(Verifier):
    """Has a server judge replies to its tasks; a reference is a task's number.

    Args:
        remote: the server.
        limits: the limits of the server.
        score_range: the score range of the environment.
    """

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

    Args:
        remote: the server.
        limits: the limits of the server.
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
        return [
            e if e.reward is None else replace(e, verdict=_reasoned(found[k], e.verdict))
            for k, e in enumerate(episodes)
        ]

    def close(self) -> None:
        """End the connections."""
        self.remote.close()

    def to_json(self) -> dict[str, Any]:
        """Return the server's address."""
        return {"name": "RemoteGroupRubric", "url": self.remote.url}

    def __repr__(self) -> str:
        return f"RemoteGroupRubric({self.remote.url!r})"


def verdict_of(outcome: Mapping[str, Any] | Verdict) -> Verdict:
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
    verdict = episode.verdict
    return {
        "turns": [dict(message) for message in episode.turns],
        "verdict": {
            "status": verdict.status.value,
            "score": verdict.score,
            "reason": verdict.reason,
            "extracted": verdict.extracted,
            "parts": dict(verdict.parts),
        },
        "step_rewards": list(episode.step_rewards),
        "truncated": episode.truncated,
        "spans": [{"author": s.author, "ids": list(s.ids)} for s in episode.spans],
    }


def _reasoned(verdict: Verdict, before: Verdict) -> Verdict:
    """Keep the previous reason if the server sends none."""
    return verdict if verdict.reason else replace(verdict, reason=before.reason)
