"""PPO with a critic: advantages from a value function, and the value function's own loss.

Shapes: B replies, T tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .average import average_tokens


def gae(
    rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float = 1.0, lam: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation: arXiv 1506.02438, eq. 16.

    ``A_t = d_t + gamma lam A_t+1`` with ``d_t = r_t + gamma V_t+1 - V_t``, where t + 1 is the
    next token *that the policy wrote*: tokens of the environment between two turns are no
    actions, take no step of gamma or lam, and their values are not read. After the last
    token V is 0: episodes end.

    Args:
        rewards: [B, T]. A reward off the mask counts for the last token before it that is on
            the mask.
        values: [B, T]; anything off the mask.
        mask: [B, T] of bool, True on the tokens the policy wrote.
        gamma: discount for each token, in [0, 1].
        lam: 1 for returns without bootstrapping, in [0, 1]. Outcome rewards of long replies
            want 1: at .95 a reward 100 tokens away is worth .006.

    Returns:
        Advantages and returns (``A + V``, what the values should have been), both [B, T]; zero
        off the mask.
    """
    advantages = torch.zeros_like(values)
    next_value, running, pending = (values.new_zeros(values.shape[0]) for _ in range(3))
    for t in range(values.shape[1] - 1, -1, -1):
        on, value = mask[:, t], values[:, t]
        pending = pending + rewards[:, t]
        delta = pending + gamma * next_value - value
        running = torch.where(on, delta + gamma * lam * running, running)
        next_value = torch.where(on, value, next_value)
        pending = pending.masked_fill(on, 0.0)
        advantages[:, t] = running.masked_fill(~on, 0.0)
    return advantages, (advantages + values).masked_fill(~mask, 0.0)


def value_loss(
    values: Tensor,
    old_values: Tensor,
    returns: Tensor,
    mask: Tensor,
    *,
    denominator: float,
    clip: float | None = 0.2,
) -> Tensor:
    """``mean 1/2 max((V - R)^2, (clip(V, V_old - clip, V_old + clip) - R)^2)``.

    Not in the PPO paper but in its first code (openai/baselines, ppo2): a value that has moved
    further than ``clip`` towards its return has no gradient any more.

    Args:
        values: [B, T], of the critic being trained; has a gradient.
        old_values: [B, T], of the critic that gave the advantages.
        returns: [B, T], from :func:`gae`.
        mask: [B, T] of bool.
        denominator: tokens of the whole optimizer step, from :func:`~.average.count`.
        clip: in the unit of a reward; ``None`` for none.

    Returns:
        A scalar; micro-batches' add up to the step's.
    """
    there = [x.masked_fill(~mask, 0.0) for x in (values, old_values, returns)]
    values, old_values, returns = there
    squares = (values - returns).square()
    if clip is not None:
        near = old_values + (values - old_values).clamp(-clip, clip)
        squares = torch.maximum(squares, (near - returns).square())
    return average_tokens(squares / 2, mask, denominator=denominator, average="dapo")
