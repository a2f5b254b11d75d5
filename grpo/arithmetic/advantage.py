"""How much better each reply is than the others to its prompt.

Shapes: P prompts, G replies to each.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Spread = Literal["population", "sample", "none"]


def group_advantages(
    rewards: Tensor,
    mask: Tensor | None = None,
    *,
    std: Spread = "population",
    eps: float = 1e-6,
) -> Tensor:
    """Score each reply against the others to its prompt.

    ``A = (r - mean(r)) / (std(r) + eps)``: DeepSeekMath (arXiv 2402.03300), section 4.1.2,
    outcome supervision. ``std="none"`` gives ``A = r - mean(r)``: Dr. GRPO (arXiv 2503.20783),
    which leaves out the division because it weights easy and hard prompts up.

    Args:
        rewards: [P, G], floating point. NaN where there is no reward.
        mask: [P, G] of bool, False where there is no reward; NaN counts as False either way.
        std: divide by the population's standard deviation (1/n), by the sample's (1/(n-1)), or
            by nothing. DeepSeekMath does not say which; trainers in use take the sample's.
        eps: added to the standard deviation, in the unit of a reward.

    Returns:
        [P, G], mean zero over the rewards that are there. Exactly zero where there is no
        reward, where fewer than two replies of the group have one, and where all are equal.

    Raises:
        ValueError: the shapes differ, or ``std`` is none of the three words.
    """
    if rewards.dim() != 2 or (mask is not None and mask.shape != rewards.shape):
        shape = None if mask is None else tuple(mask.shape)
        raise ValueError(
            f"rewards and mask must both be [P, G], got {tuple(rewards.shape)} and {shape}"
        )
    if std not in ("population", "sample", "none"):
        raise ValueError(f"std must be 'population', 'sample' or 'none', got {std!r}")
    scored = ~rewards.isnan() if mask is None else mask.bool() & ~rewards.isnan()
    rewards = rewards.masked_fill(~scored, 0.0)
    count = scored.sum(dim=1, keepdim=True)  # [P, 1]
    centred = rewards - rewards.sum(dim=1, keepdim=True) / count.clamp(min=1)
    centred = centred.masked_fill(~scored | ~has_variance(rewards, scored)[:, None], 0.0)
    if std == "none":
        return centred
    degrees = count - int(std == "sample")
    deviation = (centred.square().sum(dim=1, keepdim=True) / degrees.clamp(min=1)).sqrt()
    return centred / (deviation + eps)


def has_variance(rewards: Tensor, mask: Tensor) -> Tensor:
    """Say which groups hold two different rewards, and so anything to learn from.

    Compared as they are, not through a mean: rounding would turn eight times 0.1 into noise.

    Args:
        rewards: [P, G].
        mask: [P, G] of bool, False where there is no reward.

    Returns:
        [P] of bool.
    """
    highest = rewards.masked_fill(~mask, -torch.inf).amax(dim=1)
    lowest = rewards.masked_fill(~mask, torch.inf).amin(dim=1)
    return highest > lowest
