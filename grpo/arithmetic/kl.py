"""Estimates of KL(policy || reference) from sampled tokens, for the loss or the reward.

Shapes: B replies, T tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .objective import Estimator

MAX_LOG_RATIO = 20.0
"""Where exp stops: e^20 = 4.9e8, in float32 still far from infinity, whose gradient is NaN."""


def kl_estimate(logprobs: Tensor, reference_logprobs: Tensor, estimator: Estimator) -> Tensor:
    """KL of each token, by one of the estimators of Schulman's note "Approximating KL divergence".

    With p of the policy, q of the reference and d = log p - log q:

    ====  =============  =========  ==============================  ==========================
    name  value          gradient   value for tokens drawn from p   gradient, as part of a loss
    ====  =============  =========  ==============================  ==========================
    k1    d              1          unbiased; may be negative       mean zero: no penalty
    k2    d^2 / 2        d          biased                          that of KL(p || q)
    k3    e^-d - 1 + d   1 - e^-d   unbiased, never negative        that of KL(q || p)
    ====  =============  =========  ==============================  ==========================

    "gradient" is d / d log p. As part of the reward only k1 gives the gradient of KL(p || q).
    k3 is DeepSeekMath's (arXiv 2402.03300) eq. 4.

    k3 stops at d = -20, where a token is e^20 times likelier under q; its gradient is 0 beyond.
    (verl cuts d at +-20, and k3 at 10, where its gradient is lost below d = -2.6 and above
    11: the very tokens that a penalty is there to hold.)

    Args:
        logprobs: [B, T].
        reference_logprobs: [B, T].
        estimator: a row of the table.

    Returns:
        [B, T], in nats.
    """
    d = logprobs - reference_logprobs
    if estimator == "k1":
        return d
    if estimator == "k2":
        return d.square() / 2
    d = d.clamp(min=-MAX_LOG_RATIO)
    return torch.expm1(-d) + d  # exp(-d) - 1 loses all digits of a small d


def k3(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """The third of :func:`kl_estimate`: ``q/p - log(q/p) - 1``. [B, T]."""
    return kl_estimate(logprobs, reference_logprobs, "k3")


@torch.no_grad()
def penalised_rewards(
    rewards: Tensor,
    logprobs: Tensor,
    reference_logprobs: Tensor,
    mask: Tensor,
    *,
    beta: float,
    estimator: Estimator = "k1",
) -> Tensor:
    """Take the KL penalty off the rewards: ``R_i - beta sum_t KL_it``.

    DeepSeekMath (arXiv 2402.03300) eq. 2, summed over the reply, as an outcome reward needs it.

    Args:
        rewards: [B]; NaN stays NaN.
        logprobs: [B, T] under the policy that sampled.
        reference_logprobs: [B, T].
        mask: [B, T] of bool, True on the tokens the policy wrote.
        beta: weight of the penalty.
        estimator: see :func:`kl_estimate`.

    Returns:
        [B].
    """
    kl = kl_estimate(logprobs, reference_logprobs, estimator).masked_fill(~mask, 0.0)
    return rewards - beta * kl.sum(dim=1).to(rewards.dtype)
