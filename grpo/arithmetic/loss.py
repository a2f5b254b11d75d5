"""The arithmetic of GRPO: a clipped surrogate, a KL penalty, and three ways to average them.

Pure functions of tensors. Shapes: B replies, T tokens.

Averages are sums over a denominator that the caller counts over the whole optimizer step.
However a step is cut into micro-batches, their losses then add up to the same loss.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Average = Literal["grpo", "dapo", "dr_grpo"]


def grpo_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    denominator: float,
    average: Average = "dapo",
    clip: float = 0.2,
    clip_high: float | None = None,
    reference_logprobs: Tensor | None = None,
    beta: float = 0.0,
) -> Tensor:
    """Negated GRPO objective of (a part of) an optimizer step.

    ``-mean[ min(r A, clip(r, 1 - clip, 1 + clip_high) A) - beta k3 ]`` with ``r = p / p_old``:
    DeepSeekMath (arXiv 2402.03300) eq. 3, on PPO's (arXiv 1707.06347) eq. 7.

    Args:
        logprobs: [B, T] under the policy being trained; the only input with a gradient.
        old_logprobs: [B, T] under the policy that sampled the replies.
        advantages: [B, T].
        mask: [B, T] of bool, True on the tokens the policy wrote.
        denominator: of the whole optimizer step, from :func:`count`.
        average: see :func:`average_tokens`.
        clip: how far below 1 (and above, by default) a token's ratio may usefully move.
        clip_high: how far above 1, where it differs ("clip-higher", DAPO section 3.1).
        reference_logprobs: [B, T] under the reference policy; needed where ``beta`` is not 0.
        beta: weight of the KL penalty.

    Raises:
        ValueError: ``beta`` is not 0, and there are no reference log-probabilities.
    """
    gain = clipped_surrogate(logprobs, old_logprobs, advantages, clip=clip, clip_high=clip_high)
    if beta:
        if reference_logprobs is None:
            raise ValueError(f"beta={beta} needs reference_logprobs, got None")
        gain = gain - beta * k3(logprobs, reference_logprobs)
    return -average_tokens(gain, mask, denominator=denominator, average=average)


def clipped_surrogate(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    *,
    clip: float = 0.2,
    clip_high: float | None = None,
) -> Tensor:
    """``min(r A, clip(r, 1 - clip, 1 + clip_high) A)`` for each token: PPO eq. 7. [B, T]."""
    ratio = (logprobs - old_logprobs).exp()  # [B, T]
    limited = ratio.clamp(1 - clip, 1 + (clip if clip_high is None else clip_high))
    return torch.minimum(ratio * advantages, limited * advantages)


def k3(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """Estimate KL(policy || reference) from the sampled tokens: ``q/p - log(q/p) - 1``.

    DeepSeekMath eq. 4; the third estimator of Schulman's note "Approximating KL divergence"
    (2020). Never negative, and unbiased for tokens drawn from the policy. [B, T].
    """
    log_ratio = reference_logprobs - logprobs
    return log_ratio.exp() - log_ratio - 1


def average_tokens(values: Tensor, mask: Tensor, *, denominator: float, average: Average) -> Tensor:
    """Average a value of each token over the tokens that the policy wrote.

    =========  ====================================  ===========================================
    average    sum                                   denominator
    =========  ====================================  ===========================================
    dapo       over all tokens                       tokens of the step (DAPO, arXiv 2503.14476,
                                                     eq. 8)
    grpo       over replies, of each reply's mean    replies of the step (DeepSeekMath eq. 3)
    dr_grpo    over all tokens                       replies x longest allowed reply (Dr. GRPO,
                                                     arXiv 2503.20783, section 3.2)
    =========  ====================================  ===========================================

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
        lengths: [B], tokens that the policy wrote in each scored reply of the step.
        average: see :func:`average_tokens`.
        max_tokens: the longest a reply may be.

    Returns:
        At least 1.
    """
    total = {
        "dapo": int(lengths.sum()),
        "grpo": lengths.numel(),
        "dr_grpo": lengths.numel() * max_tokens,
    }[average]
    return float(max(1, total))


@torch.no_grad()
def token_sums(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip: float = 0.2,
    clip_high: float | None = None,
    reference_logprobs: Tensor | None = None,
) -> dict[str, float]:
    """Sums over tokens, for the log: they add over micro-batches; divide by ``tokens``.

    Returns:
        ``tokens``; ``ratio``, of p / p_old; ``clipped``, tokens whose gradient the clip cut
        off; ``kl``, of k3 to the reference, where there is one.
    """
    ratio = (logprobs - old_logprobs).exp()
    above = (ratio > 1 + (clip if clip_high is None else clip_high)) & (advantages > 0)
    below = (ratio < 1 - clip) & (advantages < 0)
    sums = {
        "tokens": float(mask.sum()),
        "ratio": float(ratio[mask].sum()),
        "clipped": float((above | below)[mask].sum()),
    }
    if reference_logprobs is not None:
        sums["kl"] = float(k3(logprobs, reference_logprobs)[mask].sum())
    return sums
