"""Four ways to average a value over the tokens that the policy wrote.

Shapes: B replies, T tokens.

Each is a sum over a denominator that the caller counts over the whole optimizer step. However
a step is cut into micro-batches or spread over processes, their sums then add up to the same.
"""

from __future__ import annotations

from torch import Tensor

from .objective import Average


def average_tokens(values: Tensor, mask: Tensor, *, denominator: float, average: Average) -> Tensor:
    """Average a value of each token over the tokens that the policy wrote.

    =========  ====================================  ===========================================
    average    sum                                   denominator
    =========  ====================================  ===========================================
    dapo       over all tokens                       tokens of the step (DAPO, arXiv 2503.14476,
                                                     eq. 8)
    bnpo       the same                              the same
    grpo       over replies, of each reply's mean    replies of the step (DeepSeekMath, arXiv
                                                     2402.03300, eq. 3)
    dr_grpo    over all tokens                       replies x longest allowed reply (Dr. GRPO,
                                                     arXiv 2503.20783, section 3.2)
    =========  ====================================  ===========================================

    ``bnpo`` is TRL's name for the mean over the tokens of a micro-batch, and then over
    micro-batches: tokens beside long replies count for less, by how the batch was cut. Here
    the batch is the optimizer step, which makes it ``dapo``, and equal to TRL's where that
    has one micro-batch.

    Args:
        values: [B, T]. What lies off the mask may be anything but must not need a gradient.
        mask: [B, T] of bool.
        denominator: see the table; from :func:`count`.
        average: a row of the table.
    """
    values = values.masked_fill(~mask, 0.0)
    if average == "grpo":
        values = values / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return values.sum() / denominator


def count(lengths: Tensor, *, average: Average, max_tokens: int) -> float:
    """The denominator of :func:`average_tokens` for a whole optimizer step.

    Args:
        lengths: [B], tokens on the mask in each scored reply of the step; 0 for a reply that
            is masked for having been cut off, which still counts as a reply.
        average: see :func:`average_tokens`.
        max_tokens: the longest a reply may be.

    Returns:
        At least 1.
    """
    if average in ("dapo", "bnpo"):
        total = int(lengths.sum())
    else:
        total = lengths.numel() * (max_tokens if average == "dr_grpo" else 1)
    return float(max(1, total))
