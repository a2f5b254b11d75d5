"""Advantages from several named rewards, each normalised before they are added.

Shapes: K rewards, P prompts, G replies to each. Added first and normalised afterwards, the
reward of the largest scale decides; and (0, 1) against (1, 0) teaches nothing.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from .advantage import group_advantages
from .whiten import whiten


def mo_grpo(
    rewards: Tensor,
    weights: Tensor | None = None,
    *,
    std: Literal["population", "sample"] = "population",
    eps: float = 1e-6,
) -> Tensor:
    """``A = sum_k w_k (r_k - mean r_k) / (std r_k + eps)`` over each group.

    MO-GRPO (arXiv 2509.22047), which has no weights. A change of a reward's scale or origin
    changes nothing.

    Args:
        rewards: [K, P, G]; NaN where a reward is missing: its term is left out.
        weights: [K]; 1 each by default.
        std: as for :func:`~.advantage.group_advantages`.
        eps: the same.

    Returns:
        [P, G]. Exactly zero in groups where no reward of any weight differs.

    Raises:
        ValueError: the shapes do not fit.
    """
    if rewards.dim() != 3 or (weights is not None and weights.shape != rewards.shape[:1]):
        shape = None if weights is None else tuple(weights.shape)
        raise ValueError(
            f"rewards must be [K, P, G] and weights [K], got {tuple(rewards.shape)} and {shape}"
        )
    each = group_advantages(rewards.flatten(0, 1), std=std, eps=eps).view_as(rewards)
    if weights is None:
        return each.sum(dim=0)
    return (each * weights.to(each)[:, None, None]).sum(dim=0)


def gdpo(
    rewards: Tensor,
    weights: Tensor | None = None,
    *,
    std: Literal["population", "sample"] = "population",
    eps: float = 1e-6,
) -> Tensor:
    """:func:`mo_grpo`, then whitened over the batch: GDPO (arXiv 2601.05242).

    Args and errors: as :func:`mo_grpo`; ``eps`` is added to the batch's deviation too.

    Returns:
        [P, G]. Exactly zero in groups where no reward of any weight differs, and where a
        reply has no reward at all; such replies are not in the batch's statistics.
    """
    summed = mo_grpo(rewards, weights, std=std, eps=eps)
    scored = ~rewards.isnan().all(dim=0)
    informative = (summed != 0).any(dim=1, keepdim=True) & scored
    return whiten(summed, scored, eps=eps).masked_fill(~informative, 0.0)
