"""Whitening over the whole batch, and REINFORCE++, which rests on it.

Shapes: P prompts, G replies to each.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .advantage import group_advantages


def whiten(
    values: Tensor, mask: Tensor, *, weights: Tensor | None = None, eps: float = 1e-6
) -> Tensor:
    """Bring values to mean 0 and standard deviation 1: ``(x - mean) / (std + eps)``.

    Args:
        values: of any shape, floating point; anything off the mask.
        mask: of the same shape, of bool.
        weights: of the same shape: how often each value counts; once by default.
        eps: added to the standard deviation (of a sample: 1/(n-1)).

    Returns:
        Of the same shape; zero off the mask, and everywhere if no two values differ.
    """
    held = values[mask]
    if held.numel() < 2 or held.min() == held.max():
        return torch.zeros_like(values)
    often = torch.ones_like(held) if weights is None else weights[mask].to(held.dtype)
    total = often.sum().clamp(min=1)
    mean = (often * held).sum() / total
    variance = (often * (held - mean).square()).sum() / (total - 1).clamp(min=1)
    return ((values - mean) / (variance.sqrt() + eps)).masked_fill(~mask, 0.0)


def reinforce_pp(
    rewards: Tensor,
    mask: Tensor | None = None,
    *,
    baseline: bool,
    lengths: Tensor | None = None,
    eps: float = 1e-6,
) -> Tensor:
    """Score each reply against all replies of the batch: REINFORCE++ (arXiv 2501.03262).

    ``A = whiten(r)`` over the batch; with ``baseline`` ``A = whiten(r - mean of the group)``,
    REINFORCE++-baseline. Without it groups are not looked at: one whose rewards are all equal
    has advantages, unless the whole batch is equal.

    Args:
        rewards: [P, G]; NaN where there is no reward.
        mask: [P, G] of bool, False where there is no reward; NaN counts as False either way.
        baseline: see above.
        lengths: [P, G], tokens that the policy wrote. Given, a reply counts once for each of
            them in mean and deviation, as in verl and OpenRLHF; else once.
        eps: see :func:`whiten`.

    Returns:
        [P, G]; zero where there is no reward. With ``baseline`` exactly zero where fewer than
        two replies of a group have one, or all are equal (they count in the batch's
        deviation; with ``lengths`` verl would shift them off zero).

    Raises:
        ValueError: the shapes differ.
    """
    for name, other in (("mask", mask), ("lengths", lengths)):
        if other is not None and other.shape != rewards.shape:
            raise ValueError(
                f"{name} must be [P, G] = {list(rewards.shape)}, as rewards, "
                f"got {list(other.shape)}"
            )
    scored = ~rewards.isnan() if mask is None else mask.bool() & ~rewards.isnan()
    if not baseline:
        return whiten(rewards, scored, weights=lengths, eps=eps)
    centred = group_advantages(rewards, scored, std="none")
    informative = (centred != 0).any(dim=1, keepdim=True) & scored
    return whiten(centred, scored, weights=lengths, eps=eps).masked_fill(~informative, 0.0)
