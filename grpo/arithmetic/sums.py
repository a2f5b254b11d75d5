"""What the log needs of an optimizer step's tokens: sums and extremes that micro-batches share.

Shapes: B replies, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .kl import kl_estimate
from .objective import Objective
from .surrogate import ratios


@torch.no_grad()
def policy_sums(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    objective: Objective,
    *,
    reference_logprobs: Tensor | None = None,
) -> dict[str, float]:
    """Sums over tokens, to be divided by ``tokens``, and extremes, to be merged as such.

    Args:
        logprobs: [B, T].
        old_logprobs: [B, T].
        advantages: [B, T].
        mask: [B, T] of bool.
        objective: its ratio and clips.
        reference_logprobs: [B, T], where there is a reference.

    Returns:
        ``tokens``; ``ratio``, of p / p_old of tokens; ``min_ratio`` and ``max_ratio`` of the
        same, not cut, so that infinity shows; ``advantage``; ``clipped_low`` and
        ``clipped_high``, tokens whose gradient (of CISPO: weight) a lower or upper bound cut
        off; ``clipped_dual``, by ``dual_clip``; with a reference ``kl_k1``, ``kl_k2``,
        ``kl_k3``. Without any token all are 0, the ratios' extremes infinite.
    """
    log_ratio = (logprobs - old_logprobs).masked_fill(~mask, 0.0)
    ratio = log_ratio[mask].exp()
    low, high, dual = _clipped(log_ratio, advantages, mask, objective)
    sums = {
        "tokens": float(mask.sum()),
        "ratio": float(ratio.sum()),
        "min_ratio": float(ratio.min()) if ratio.numel() else float("inf"),
        "max_ratio": float(ratio.max()) if ratio.numel() else float("-inf"),
        "advantage": float(advantages[mask].sum()),
        "clipped_low": float(low[mask].sum()),
        "clipped_high": float(high[mask].sum()),
        "clipped_dual": float(dual[mask].sum()),
    }
    if reference_logprobs is not None:
        there = logprobs[mask], reference_logprobs[mask]
        for estimator in ("k1", "k2", "k3"):
            sums[f"kl_{estimator}"] = float(kl_estimate(*there, estimator).sum())
    return sums


def merge_sums(sums: dict[str, float], more: Mapping[str, float]) -> None:
    """Merge another micro-batch's into ``sums``: adds, but takes ``min_`` and ``max_`` as such."""
    for name, value in more.items():
        if name not in sums:
            sums[name] = value
        elif name.startswith("min_"):
            sums[name] = min(sums[name], value)
        elif name.startswith("max_"):
            sums[name] = max(sums[name], value)
        else:
            sums[name] += value


def _clipped(
    log_ratio: Tensor, advantages: Tensor, mask: Tensor, objective: Objective
) -> tuple[Tensor, Tensor, Tensor]:
    none = torch.zeros_like(mask)
    up, down = advantages > 0, advantages < 0
    if objective.surrogate == "sapo":
        return none, none, none
    if objective.surrogate == "gmpo":
        return (log_ratio < -objective.clip) & down, (log_ratio > objective.upper_clip) & up, none
    ratio = ratios(log_ratio, mask, objective)
    if objective.surrogate == "cispo":
        moved = up | down
        return (ratio < objective.cispo_floor) & moved, (ratio > objective.cispo_cap) & moved, none
    dual = none if objective.dual_clip is None else (ratio > objective.dual_clip) & down
    return (ratio < 1 - objective.clip) & down, (ratio > 1 + objective.upper_clip) & up, dual
