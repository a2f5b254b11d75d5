"""The loss of the whole GRPO family: surrogate, KL penalty and entropy bonus under one average.

Shapes: B replies, T tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .average import average_tokens
from .kl import kl_estimate
from .objective import Objective
from .surrogate import gains, token_ratio


def policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    objective: Objective,
    *,
    denominator: float,
    reference_logprobs: Tensor | None = None,
    entropy: Tensor | None = None,
    kl: Tensor | None = None,
) -> Tensor:
    """Negated objective of (a part of) an optimizer step, to be minimised.

    ``-mean_it[ gain(r_it, A_it) - beta KL_it + entropy_bonus H_it ]`` with r = p / p_old:
    DeepSeekMath (arXiv 2402.03300) eq. 3 and its successors; the gain is one of
    :mod:`~.surrogate`, KL of :func:`~.kl.kl_estimate`, the mean of
    :func:`~.average.average_tokens`. All three terms have the same mean, so the losses of
    micro-batches add up to the loss of the step.

    With ``kl_correction`` KL is multiplied by the token's ratio, which has a gradient too:
    DeepSeek-V3.2 (arXiv 2512.02556) section 3.1. On-policy that makes k3's gradient the one of
    KL(p || q). Weights for the sampler's mismatch and for entropy belong into ``advantages``.

    Args:
        logprobs: [B, T] under the policy being trained; has a gradient.
        old_logprobs: [B, T] under the policy that sampled the replies.
        advantages: [B, T], zero or finite on the mask.
        mask: [B, T] of bool, True on the tokens the policy wrote. What lies off it may be
            anything, in any of the tensors.
        objective: see there.
        denominator: of the whole optimizer step, from :func:`~.average.count`.
        reference_logprobs: [B, T] under the reference policy; needed where ``beta`` is not 0
            and ``kl_in="loss"``.
        entropy: [B, T] of the policy being trained, in nats, with a gradient; needed where
            ``entropy_bonus`` is not 0.
        kl: [B, T], KL(p || p_ref) at each unit with a gradient, where a policy knows it in closed
            form (a Gaussian does); then ``reference_logprobs`` and ``objective.kl`` are not read.

    Returns:
        A scalar.

    Raises:
        ValueError: a tensor that the objective needs is missing or has another shape.
    """
    _check(logprobs, old_logprobs, advantages, mask, objective, reference_logprobs, entropy, kl)
    advantages = advantages.masked_fill(~mask, 0.0)
    log_ratio = (logprobs - old_logprobs).masked_fill(~mask, 0.0)  # [B, T]
    own = logprobs.masked_fill(~mask, 0.0)
    gain = gains(own, log_ratio, advantages, mask, objective)
    if penalised(objective):
        kl = _estimate(logprobs, reference_logprobs, mask, objective) if kl is None else kl
        kl = kl.masked_fill(~mask, 0.0)
        if objective.kl_correction:
            kl = kl * token_ratio(log_ratio)
        gain = gain - objective.beta * kl
    if objective.entropy_bonus and entropy is not None:
        gain = gain + objective.entropy_bonus * entropy.masked_fill(~mask, 0.0)
    return -average_tokens(gain, mask, denominator=denominator, average=objective.loss)


def _estimate(
    logprobs: Tensor, reference_logprobs: Tensor | None, mask: Tensor, objective: Objective
) -> Tensor:
    if reference_logprobs is None:
        raise ValueError(f"beta={objective.beta} needs reference_logprobs, got None")
    d = (logprobs - reference_logprobs).masked_fill(~mask, 0.0)
    return kl_estimate(d, torch.zeros_like(d), objective.kl)


def penalised(objective: Objective) -> bool:
    """Say whether the loss has a KL penalty, and so needs the reference."""
    return objective.beta != 0 and objective.kl_in == "loss"


def _check(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    objective: Objective,
    reference_logprobs: Tensor | None,
    entropy: Tensor | None,
    kl: Tensor | None,
) -> None:
    if objective.entropy_bonus and (
        entropy is None or (logprobs.requires_grad and not entropy.requires_grad)
    ):
        what = "None" if entropy is None else "entropies without a gradient"
        raise ValueError(
            f"entropy_bonus={objective.entropy_bonus} needs entropy with a gradient, got {what}"
        )
    tensors = {
        "old_logprobs": old_logprobs,
        "advantages": advantages,
        "mask": mask,
        "reference_logprobs": reference_logprobs,
        "entropy": entropy,
        "kl": kl,
    }
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != logprobs.shape:
            raise ValueError(
                f"{name} must be [B, T] = {list(logprobs.shape)}, as logprobs, "
                f"got {list(tensor.shape)}"
            )
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be of bool, got {mask.dtype}: use mask.bool()")
