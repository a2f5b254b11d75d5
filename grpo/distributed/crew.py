"""The main process's side of a step: hand out shares, put together what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from ...envs import Completion, Conversation, ExtendingPolicy
from ..config import GRPOConfig
from ..loss import merge_sums
from ..model.batch import Row
from ..model.passes import Reading
from ..update import denominator_of, teaching
from .share import cuts, deal
from .team import Team
from .worker import Worker
from .world import World


class Crew:
    """All processes as one: what the learner's loop asks for, by as many as there are.

    With one process every call is a plain call of the worker.

    Args:
        worker: of this process.
        world: the processes.
        config: the settings.
    """

    def __init__(self, worker: Worker, world: World, config: GRPOConfig) -> None:
        self._worker, self._config = worker, config
        self._team = Team(world, worker.tasks, droppable=Worker.DROPPABLE)

    def leading(self) -> AbstractContextManager[None]:
        """In the main process: the others help for as long as the block lasts."""
        return self._team.leading()

    def follow(self) -> None:
        """In the other processes: help until the main one is done; see :meth:`Team.follow`."""
        self._team.follow()

    @property
    def whole(self) -> bool:
        """Whether a checkpoint can be made; not without the other processes' shards."""
        return not (self._team.lost and self._worker.sharded)

    def policy(self, *, seed: int, settings: Mapping[str, Any]) -> ExtendingPolicy:
        """The model as a policy that samples in all processes."""
        return _TeamPolicy(self._team, seed, dict(settings))

    def read(self, rows: Sequence[Row]) -> list[Reading]:
        """Read rows under the policy."""
        return self._read(rows, of_reference=False)

    def with_reference(self, rows: Sequence[Row]) -> list[Row]:
        """The rows with their log-probabilities under the reference."""
        read = self._read(rows, of_reference=True)
        return [replace(row, reference=x.logprobs) for row, x in zip(rows, read, strict=True)]

    def gradient(self, rows: Sequence[Row]) -> tuple[dict[str, float], float]:
        """Take the gradient of the loss over the rows of an optimizer step.

        Returns:
            The sums that :func:`~assay.grpo.update.accumulate_gradient` gives, over all
            processes, and the gradient's length before it is cut to ``max_grad_norm``.
        """
        shares = deal(teaching(rows, self._config), self._team.size)
        denominator = denominator_of(rows, self._config)
        passes = max(self._worker.passes(share) for share in shares) if len(shares) > 1 else 0
        parts = [(share, denominator, passes) for share in shares]
        sums: dict[str, float] = {}
        for found in self._team.call("accumulate", parts):
            merge_sums(sums, found)
        norms = self._team.call_all("reduce")
        return sums, norms[0]

    def step(self, rate: float) -> None:
        """Let every process's optimizer take a step."""
        self._team.call_all("step", rate)

    def refresh_reference(self) -> None:
        """Make the reference the policy as it is now."""
        self._team.call_all("refresh_reference")

    def be_whole(self) -> None:
        """Have the model in one piece here, where an update was broken off."""
        if self._worker.sharded and self._team.size > 1:
            self._team.call_all("be_whole")

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state in one piece."""
        if self._worker.sharded and self._team.size == 1:
            raise RuntimeError(
                "the optimizer's state lies in shards, and the other processes have gone home: "
                "checkpoints are written by train(), which leaves one at its end"
            )
        found: dict[str, Any] = self._team.call_all("gather_optimizer")[0]
        return found

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take up an optimizer's state; each process does so by itself."""
        self._worker.load_optimizer(saved)

    def _read(self, rows: Sequence[Row], *, of_reference: bool) -> list[Reading]:
        ranges = cuts([row.prompt for row in rows], self._team.size)
        parts = [(rows[a:b], of_reference) for a, b in ranges]
        return [reading for part in self._team.call("read", parts) for reading in part]


class _TeamPolicy:
    """A policy whose rows are sampled by all processes: the same replies as by one.

    The token at a place of a row is drawn with a random number that is addressed by seed, row and
    place, so each process needs to know no more than the number of its first row.
    """

    def __init__(self, team: Team, seed: int, settings: dict[str, Any]) -> None:
        self._team, self._seed, self._settings = team, seed, settings
        self._row = 0

    def __call__(self, conversations: Sequence[Conversation], /) -> list[Completion]:
        """Answer each conversation."""
        return self.extend(conversations, [()] * len(conversations))

    def extend(
        self, conversations: Sequence[Conversation], prefixes: Sequence[Sequence[int]], /
    ) -> list[Completion]:
        """Answer each conversation, going on from the tokens of its earlier turns."""
        sent = _plain(conversations)
        parts = [
            (self._settings, self._seed, self._row + a, sent[a:b], list(prefixes[a:b]))
            for a, b in cuts(sent, self._team.size)
        ]
        self._row += len(sent)
        return [reply for part in self._team.call("sample", parts) for reply in part]


def _plain(conversations: Sequence[Conversation]) -> list[list[dict[str, Any]]]:
    """As lists and dicts; what was one object stays one, and travels once."""
    made: dict[int, list[dict[str, Any]]] = {}
    found = []
    for conversation in conversations:
        if id(conversation) not in made:
            made[id(conversation)] = [{**message} for message in conversation]
        found.append(made[id(conversation)])
    return found
