"""Advantages where several actions are tried in each state: Hybrid GRPO.

Shapes: B episodes, T states of the longest, N actions tried in each.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def hybrid_advantages(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    *,
    each: bool = False,
    gamma: float = 1.0,
    transform: Callable[[Tensor], Tensor] = torch.tanh,
) -> Tensor:
    """One step ahead, with the critic as baseline: Hybrid GRPO (arXiv 2502.01652).

    ``A = 1/N sum_n f(r(s, a_n)) + gamma V(s') - V(s)``, where s' is where the first action led,
    which the episode goes on from. The paper gives no code, and this equation is known to us at
    second hand. As it is written all tried actions share one average of rewards, so that only V(s')
    tells the taken one from the others: an action that ends the episode comes out ``gamma V(s)``
    below one that stays, whatever it pays. With ``each`` every tried action has its own,
    ``A_n = f(r(s, a_n)) + gamma V(s'_n) - V(s)``.

    ``f`` bounds rewards, and so can change which policy is best: of rewards 1 and 1 against 2.5
    and 0, the second earns more, and under tanh the first does (1.52 to 0.99).

    Args:
        rewards: [B, T, N].
        values: [B, T], of the states.
        next_values: [B, T, N], of the states that the actions led to; 0 where they ended the
            episode.
        each: see above.
        gamma: discount of each step.
        transform: f, of each reward.

    Returns:
        [B, T] of the action taken, or with ``each`` [B, T, N] of all that were tried.

    Raises:
        ValueError: the shapes do not fit.
    """
    if (
        rewards.dim() != 3
        or next_values.shape != rewards.shape
        or values.shape != rewards.shape[:2]
    ):
        raise ValueError(
            f"rewards and next_values must be [B, T, N] and values [B, T], got "
            f"{list(rewards.shape)}, {list(next_values.shape)} and {list(values.shape)}"
        )
    bounded = transform(rewards)
    if each:
        return bounded + gamma * next_values - values[:, :, None]
    return bounded.mean(dim=2) + gamma * next_values[:, :, 0] - values
