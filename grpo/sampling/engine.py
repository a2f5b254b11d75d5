"""What a learner needs of that which samples for it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ...envs import ExtendingPolicy


@runtime_checkable
class Engine(ExtendingPolicy, Protocol):
    """A policy that follows a model in training: in this process, or on a server.

    Its completions carry the tokens it was given, those it sampled, and their log-probabilities
    under the distribution they were drawn from: the loss takes them for the old policy's.
    """

    def reseed(self, seed: int) -> None:
        """Start a new stream of random numbers, at row 0."""
        ...

    def sync(self, model: Any, step: int) -> None:
        """Sample with this model's weights, of this step, from now on; raise if that fails."""
        ...


def ready(engine: Engine, model: Any, *, step: int, seed: int) -> Engine:
    """The engine, with the model's weights and a stream of random numbers of its own.

    Args:
        engine: made once for the whole run.
        model: being trained.
        step: optimizer steps done; the same step means the same weights.
        seed: of the calls that follow.
    """
    engine.sync(model, step)
    engine.reseed(seed)
    return engine
