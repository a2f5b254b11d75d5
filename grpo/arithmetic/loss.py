"""The arithmetic of GRPO: a clipped surrogate, a KL penalty, and three ways to average them.

Pure functions of tensors. Shapes: B replies, T tokens.

Averages are sums over a denominator that the caller counts over the whole optimizer step.
However a step is cut into micro-batches, their losses then add up to the same loss.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .average import average_tokens, count
from .kl import k3
from .objective import Average


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


__all__ = [
    "Average",
    "average_tokens",
    "clipped_surrogate",
    "count",
    "grpo_loss",
    "k3",
    "token_sums",
]
