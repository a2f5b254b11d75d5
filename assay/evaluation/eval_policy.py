"""Policies under evaluation: replies by turn, and their cost."""

from __future__ import annotations

import inspect
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..envs import (
    Completion,
    Conversation,
    EpisodeGroup,
    ExtendingPolicy,
    Policy,
    StoredCompletion,
    Task,
)
from ..envs.policy import require_completions
from ..envs.seeding import share
from .digest import code_digest, digest


@dataclass(frozen=True, slots=True)
class Request:
    """One requested turn.

    Attributes:
        task: id of the task.
        copy: which of its episodes, from 0.
        turn: which of the policy's turns, from 0.
        messages: the conversation so far.
        ids: all its tokens, if the policy gave tokens.
        seed: depends on the run's seed, the task, the copy and the turn alone; in [0, 2^31).
    """

    task: str
    copy: int
    turn: int
    messages: Conversation
    ids: tuple[int, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Response:
    """A reply, or the failure to give one.

    Attributes:
        completion: the reply; ``None`` if there is none.
        fault: why there is none: it costs the episode its reward, and is no wrong answer.
        prompt_tokens: that were read, if known.
        reply_tokens: that were written, if known.
    """

    completion: Completion | None
    fault: str = ""
    prompt_tokens: int | None = None
    reply_tokens: int | None = None


class EvalPolicy(Protocol):
    """Answer turns.

    The same questions in the same call get the same answers, in every process: that is what lets
    a run be resumed as if it had never stopped.
    """

    def respond(self, requests: Sequence[Request], /) -> list[Response]:
        """Answer each request.

        Raises:
            Exception: nothing can be answered now; the run stops, and can be resumed.
        """

    def describe(self) -> dict[str, Any]:
        """Return as plain JSON values what replies depend on."""


@runtime_checkable
class GroupEvalPolicy(Protocol):
    """Play and judge whole episodes."""

    def play(self, tasks: Sequence[Task], count: int, seed: int, /) -> list[EpisodeGroup]:
        """Return a group of ``count`` episodes for each task."""

    def describe(self) -> dict[str, Any]:
        """Return as plain JSON values what replies depend on."""


def seed_of(seed: int, task: str, copy: int, turn: int) -> int:
    """Return the seed of one turn, in [0, 2^31)."""
    return int(share("assay-eval", seed, task, copy, turn) * 2**31)


class FilePolicy:
    """Completions that were saved: the k-th of a task answers its k-th episode."""

    def __init__(self, path: str, rows: Sequence[StoredCompletion]) -> None:
        self.path = path
        self.tasks = list({row.task.id: row.task for row in rows}.values())
        self.replies: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            self.replies[row.task.id].append(row.text)

    def respond(self, requests: Sequence[Request], /) -> list[Response]:
        """Return the stored replies."""
        return [Response(Completion(self.replies[r.task][r.copy])) for r in requests]

    def describe(self) -> dict[str, Any]:
        """Return the file and a hash of its content."""
        return {"kind": "file", "file": self.path, "sha256": digest(self.replies)}


class PolicyError(RuntimeError):
    """A policy raised. The message says what, and where."""


@contextmanager
def _naming(policy: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename}, line {last.lineno}"
        words = " ".join(str(error).split())  # one line: it may quote a reply
        raise PolicyError(f"{policy} raised {type(error).__name__}: {words} ({where})") from error


class FunctionEvalPolicy:
    """A Python function from one conversation to one reply.

    Args:
        name: ``module:function``; for :meth:`describe`.
        function: of the messages; if it takes ``seed`` as well, it is given the turn's, and
            replies may be random and yet be the same again.
    """

    def __init__(self, name: str, function: Callable[..., str]) -> None:
        self.name, self.function = name, function
        self._seeded = "seed" in inspect.signature(function).parameters

    def respond(self, requests: Sequence[Request], /) -> list[Response]:
        """Call the function for each.

        Raises:
            ValueError: what it returns is no text.
        """
        return [Response(Completion(self._reply(r))) for r in requests]

    def _reply(self, request: Request) -> str:
        seed = {"seed": request.seed} if self._seeded else {}
        with _naming(self.name):
            found = self.function(request.messages, **seed)
        if not isinstance(found, str):
            raise ValueError(
                f"{self.name} must return the reply as text, got {found!r:.80}; no reply is ''"
            )
        return found

    def describe(self) -> dict[str, Any]:
        """Return the function's name and a hash of its module, since the name may be reused."""
        return {"kind": "function", "name": self.name, "code": code_digest([self.function])}


class BatchEvalPolicy:
    """A :class:`~assay.envs.Policy`, such as a model.

    One with ``reseed`` is given a seed before each call, so that no call depends on those before.
    """

    def __init__(self, policy: Policy, about: Mapping[str, Any]) -> None:
        self.policy, self.about = policy, dict(about)

    def respond(self, requests: Sequence[Request], /) -> list[Response]:
        """Ask for all in one call.

        Raises:
            ValueError: there are more or fewer completions than questions, or it gives others.
        """
        if requests and hasattr(self.policy, "reseed"):
            self.policy.reseed(requests[0].seed)
        conversations = [r.messages for r in requests]
        if isinstance(self.policy, ExtendingPolicy):
            found = list(self.policy.extend(conversations, [r.ids for r in requests]))
        else:
            found = list(self.policy(conversations))
        require_completions(found, len(requests))
        return [Response(c, "", *_tokens(c)) for c in found]

    def describe(self) -> dict[str, Any]:
        """Return the policy's settings."""
        return self.about


def _tokens(completion: Completion) -> tuple[int | None, int | None]:
    if not completion.ids:
        return None, None
    return len(completion.prompt_ids), len(completion.ids)
