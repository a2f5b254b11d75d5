"""A short supervised warm start: reinforcement needs a policy that is right now and then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...envs import Task
from ...envs.turn_tokens import encode_prompt
from ..model.batch import Batch, Row
from ..model.forward import Forward, choose_forward
from ..run.evaluate import Rollout, evaluate
from ..sampling.policy import ModelPolicy


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
    rows = [_row(tokenizer, task) for task in tasks]
    if not rows:
        raise ValueError("a warm start needs at least one task with a solution, got none")
    policy = ModelPolicy(model, tokenizer, max_new_tokens=max_new_tokens, seed=seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True
    )
    generator = torch.Generator().manual_seed(seed)
    # No two pairs share a prompt, so there is no prefix to share.
    _, forward = choose_forward(model, among=("padded",))
    order: list[int] = []
    done = WarmStart(0, float("nan"), float("nan"))
    for step in range(1, max_steps + 1):
        if len(order) < batch_size:
            order += torch.randperm(len(rows), generator=generator).tolist()
        chosen, order = order[:batch_size], order[batch_size:]
        loss = _step(model, forward, optimizer, [rows[i] for i in chosen])
        if step % check_every and step < max_steps:
            continue
        passed = float("nan")
        if held_out is not None:
            policy.reseed(seed)
            passed = evaluate(policy, held_out).pass_at_1
        done = WarmStart(step, loss, passed)
        if progress is not None:
            progress(done)
        if passed >= target:
            break
    return done


def _step(
    model: Any, forward: Forward, optimizer: torch.optim.Optimizer, rows: Sequence[Row]
) -> float:
    batch = Batch.of([[row] for row in rows], device=model.device)
    logprobs, _ = forward(model, batch, 1.0)
    loss = -logprobs.sum() / batch.mask.sum()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


def _row(tokenizer: Any, task: Task) -> Row:
    if task.solution is None:
        raise ValueError(f"a warm start needs solutions, but task {task.id!r} has none")
    prompt = tuple(encode_prompt(tokenizer, task.messages))
    reply = (
        *tokenizer(task.solution, add_special_tokens=False)["input_ids"],
        tokenizer.eos_token_id,
    )
    zeros = (0.0,) * len(reply)
    return Row(prompt, reply, (True,) * len(reply), zeros, zeros)
