"""A short supervised warm start: reinforcement needs a policy that is right now and then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...envs import Task
from ..run.evaluate import Rollout, evaluate
from ..sampling.policy import ModelPolicy
from .fit import FitConfig, Metrics
from .supervised import sft


@dataclass(frozen=True, slots=True)
class WarmStart:
    """How a warm start ended.

    Attributes:
        steps: optimizer steps done.
        loss: mean negative log-likelihood of a token in the last step, in nats.
        pass_at_1: at the last look; NaN where none was taken.
    """

    steps: int
    loss: float
    pass_at_1: float


def warm_start(
    model: Any,
    tokenizer: Any,
    tasks: Sequence[Task],
    held_out: Rollout | None = None,
    *,
    target: float = 0.3,
    max_steps: int = 1000,
    check_every: int = 25,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.01,
    max_new_tokens: int = 64,
    seed: int = 0,
    progress: Callable[[WarmStart], None] | None = None,
) -> WarmStart:
    """Train on tasks' solutions until sampled replies are right often enough.

    The loss is the mean negative log-likelihood of the solution's tokens and of the
    end-of-sequence token after them.

    Args:
        model: trained in place.
        tokenizer: the model's.
        tasks: each with a ``solution``.
        held_out: gives episodes of tasks to judge by; without it ``max_steps`` are done.
        target: stop where sampled pass@1 on them, at temperature 1, is at least this.
        max_steps: stop after so many optimizer steps.
        check_every: optimizer steps between two looks.
        batch_size: pairs of an optimizer step, drawn without replacement until all were seen.
        learning_rate: of AdamW.
        weight_decay: of AdamW.
        max_new_tokens: of the replies that are sampled to judge.
        seed: of the order and of the sampling.
        progress: called after each look.

    Raises:
        ValueError: there is no task, or one has no solution.
    """
    if not tasks:
        raise ValueError("a warm start needs at least one task with a solution, got none")
    policy = ModelPolicy(model, tokenizer, max_new_tokens=max_new_tokens, seed=seed)
    done = WarmStart(0, float("nan"), float("nan"))

    def look(row: Metrics) -> bool:
        nonlocal done
        if row["step"] % check_every and row["step"] < max_steps:
            return False
        passed = float("nan")
        if held_out is not None:
            policy.reseed(seed)
            passed = evaluate(policy, held_out).pass_at_1
        done = WarmStart(row["step"], row["loss"], passed)
        if progress is not None:
            progress(done)
        return passed >= target

    config = FitConfig(
        steps=max_steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        warmup_steps=0,
        weight_decay=weight_decay,
        seed=seed,
    )
    sft(model, tokenizer, tasks, config, on_step=look)
    return done
