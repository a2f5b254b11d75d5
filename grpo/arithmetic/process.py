"""Process supervision: rewards of steps become advantages of tokens.

Shapes: P prompts, G replies to each, K steps at most of a reply, T tokens.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from .advantage import group_advantages


def process_advantages(
    step_rewards: Tensor,
    step_ends: Tensor,
    tokens: int,
    *,
    std: Literal["population", "sample", "none"] = "population",
    eps: float = 1e-6,
) -> Tensor:
    """Give each token the rewards of the steps that end at it or later, normalised.

    ``A_t = sum_{k: end_k >= t} (r_k - mean R) / (std R + eps)`` with R all step rewards of all
    replies to the prompt: DeepSeekMath (arXiv 2402.03300), section 4.1.3. A step's last token
    has part in its own step's reward. The sum grows with the steps that are still to come.

    Args:
        step_rewards: [P, G, K]; NaN where a reply has no such step, or the step no reward.
        step_ends: [P, G, K] of int64: each step's last token. Read only beside a reward; -1 for a
            step before the first token, whose reward is in the statistics alone.
        tokens: T.
        std: as for :func:`~.advantage.group_advantages`, of R.
        eps: the same.

    Returns:
        [P, G, T]. Exactly zero for groups of fewer than two step rewards or of equal ones,
        and past a reply's last step.

    Raises:
        ValueError: the shapes differ, or a step with a reward ends outside [-1, T).
    """
    if step_rewards.dim() != 3 or step_ends.shape != step_rewards.shape:
        raise ValueError(
            "step_rewards and step_ends must both be [P, G, K], got "
            f"{tuple(step_rewards.shape)} and {tuple(step_ends.shape)}"
        )
    scored = ~step_rewards.isnan()
    ends = step_ends.masked_fill(~scored, -1)
    if ends.numel() and not (int(ends.min()) >= -1 and int(ends.max()) < tokens):
        wrong = next(int(end) for end in ends.flatten() if not -1 <= end < tokens)
        raise ValueError(
            f"step_ends must be in [-1, {tokens}), the tokens of a reply, got {wrong}: "
            "a step's end is the index of its last token"
        )
    normalised = group_advantages(step_rewards.flatten(1), std=std, eps=eps)  # [P, G * K]
    at_ends = step_rewards.new_zeros(*step_rewards.shape[:2], 1 + tokens)  # the first for -1
    at_ends.scatter_add_(2, 1 + ends, normalised.view_as(step_rewards))
    return _from_here_on(at_ends[..., 1:])


def _from_here_on(values: Tensor) -> Tensor:
    """Sum each [..., T] over its own and all later places."""
    return torch.flip(torch.flip(values, (-1,)).cumsum(-1), (-1,))
