"""How much better each reply is than the others to its prompt, from one total reward each.

Shapes: P prompts, G replies to each. A reward that is missing is NaN, in no statistic, and its
advantage is zero. Where a group has nothing to teach advantages are zero exactly, whatever
eps: the learner skips such groups.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .objective import Spread as Spread  # handed on


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
        std: divide by the group's standard deviation as a population (1/n) or a sample
            (1/(n-1)), by that of all rewards of the batch (1/(n-1); "Tricks or Traps", arXiv
            2508.08221), or by nothing. DeepSeekMath does not say which; trainers in use take
            the sample's.
        eps: added to the standard deviation, in the unit of a reward.

    Returns:
        [P, G], mean zero over the rewards that are there. Exactly zero where there is no
        reward, where fewer than two replies of the group have one, and where all are equal.

    Raises:
        ValueError: the shapes differ, or ``std`` is none of the four words.
    """
    if std not in ("population", "sample", "batch", "none"):
        raise ValueError(f"std must be 'population', 'sample', 'batch' or 'none', got {std!r}")
    rewards, scored = _scored(rewards, mask)
    centred = _centred(rewards, scored)
    if std == "none":
        return centred
    count = scored.sum(dim=1, keepdim=True)  # [P, 1]
    squares = centred.square().sum(dim=1, keepdim=True)
    if std == "batch":
        count = scored.sum()
        mean = rewards.sum() / count.clamp(min=1)
        squares = (rewards - mean).masked_fill(~scored, 0.0).square().sum()
    degrees = count - int(std != "population")
    deviation = (squares / degrees.clamp(min=1)).sqrt()
    return torch.where(centred == 0, centred, centred / (deviation + eps))  # not 0 / 0 at eps 0


def leave_one_out(rewards: Tensor, mask: Tensor | None = None) -> Tensor:
    """Score each reply against the mean of the others: ``A_i = r_i - mean_{j != i} r_j``.

    RLOO: Kool et al., "Buy 4 REINFORCE Samples, Get a Baseline for Free!" (2019); Ahmadian et
    al. (arXiv 2402.14740). Equal to ``(r_i - mean(r)) n / (n - 1)``.

    Args and returns: as :func:`group_advantages`.
    """
    rewards, scored = _scored(rewards, mask)
    count = scored.sum(dim=1, keepdim=True)
    return _centred(rewards, scored) * count / (count - 1).clamp(min=1)


def opo(rewards: Tensor, lengths: Tensor, mask: Tensor | None = None) -> Tensor:
    """Score each reply against the mean that weighs replies by length: ``r_i - sum l r / sum l``.

    OPO (arXiv 2505.23585): the baseline of least variance, if a reply's squared gradient grows
    with its length. The mean of a group's advantages is not zero, that over its tokens is.

    Args:
        rewards: [P, G]; NaN where there is no reward.
        lengths: [P, G], tokens that the policy wrote.
        mask: as for :func:`group_advantages`.

    Returns:
        [P, G], zero as :func:`group_advantages`.

    Raises:
        ValueError: the shapes differ.
    """
    rewards, scored = _scored(rewards, mask)
    if lengths.shape != rewards.shape:
        raise ValueError(
            f"lengths must be [P, G] = {list(rewards.shape)}, as rewards, got {list(lengths.shape)}"
        )
    weights = lengths.to(rewards.dtype).masked_fill(~scored, 0.0)
    total = weights.sum(dim=1, keepdim=True).clamp(min=1)
    centred = rewards - (weights * rewards).sum(dim=1, keepdim=True) / total
    return centred.masked_fill(~scored | ~has_variance(rewards, scored)[:, None], 0.0)


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


def _scored(rewards: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Zero where there is no reward, and where there is one; both [P, G]."""
    if rewards.dim() != 2 or (mask is not None and mask.shape != rewards.shape):
        shape = None if mask is None else tuple(mask.shape)
        raise ValueError(
            f"rewards and mask must both be [P, G], got {tuple(rewards.shape)} and {shape}"
        )
    scored = ~rewards.isnan() if mask is None else mask.bool() & ~rewards.isnan()
    return rewards.masked_fill(~scored, 0.0), scored


def _centred(rewards: Tensor, scored: Tensor) -> Tensor:
    """``r - mean(r)`` over each group; exactly zero where it teaches nothing."""
    count = scored.sum(dim=1, keepdim=True)  # [P, 1]
    centred = rewards - rewards.sum(dim=1, keepdim=True) / count.clamp(min=1)
    return centred.masked_fill(~scored | ~has_variance(rewards, scored)[:, None], 0.0)
