"""What a token gains: the probability ratio, and what each method makes of it.

Shapes: B replies, T tokens; r = p / p_old is [B, T], A the advantages [B, T].

Every gain is c A with a factor c > 0 that depends on A by its sign alone (CISPO's is c A log p),
so weights of tokens can be multiplied into the advantages beforehand.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .kl import MAX_LOG_RATIO
from .objective import Objective


def gains(
    logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor, objective: Objective
) -> Tensor:
    """What each token gains, by ``objective.surrogate``. [B, T].

    Args:
        logprobs: [B, T], finite off the mask too.
        log_ratio: [B, T], log p - log p_old; zero off the mask.
        advantages: [B, T].
        mask: [B, T] of bool.
        objective: its surrogate, its ratio and what bounds them.
    """
    o = objective
    if o.surrogate == "gmpo":
        return gmpo(log_ratio, advantages, mask, clip=o.clip, high=o.upper_clip)
    ratio = ratios(log_ratio, mask, o)
    if o.surrogate == "cispo":
        return cispo(logprobs, ratio, advantages, cap=o.cispo_cap, floor=o.cispo_floor)
    if o.surrogate == "sapo":
        positive, negative = o.sapo_temperature, o.sapo_temperature_negative
        return sapo(ratio, advantages, positive=positive, negative=negative)
    return clipped(ratio, advantages, clip=o.clip, high=o.upper_clip, dual=o.dual_clip)


def ratios(log_ratio: Tensor, mask: Tensor, objective: Objective) -> Tensor:
    """Each token's p / p_old, or its reply's in the form that has per-token gradients. [B, T]."""
    if objective.ratio == "sequence":
        return sequence_ratio(log_ratio, mask)
    return token_ratio(log_ratio)


def token_ratio(log_ratio: Tensor) -> Tensor:
    """``r = exp(log p - log p_old)``, the logarithm cut at +-20, as verl does. [B, T].

    Beyond, a token has no gradient. TRL cuts nothing, and gets infinity from 89 on.
    """
    return log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def sequence_ratio(log_ratio: Tensor, mask: Tensor) -> Tensor:
    """``s_it = sg[s_i] p / sg[p]`` with ``s_i = exp(mean_t log r_it)``, sg: no gradient. [B, T].

    GSPO (arXiv 2507.18071) eq. 7 (s_i) and section 4.3 (s_it, GSPO-token). The value is s_i for
    every token. Where a reply's advantages are all equal the sum's gradient is s_i's too; where
    they differ, each token gets its own.
    """
    return _spread(log_ratio, mask)


def clipped(
    ratio: Tensor, advantages: Tensor, *, clip: float, high: float, dual: float | None = None
) -> Tensor:
    """``min(r A, clip(r, 1 - clip, 1 + high) A)``: PPO (arXiv 1707.06347) eq. 7. [B, T].

    Two clips: "clip-higher", DAPO (arXiv 2503.14476) section 3.1. With ``dual`` the gain is at
    least ``dual A`` where A < 0: dual-clip PPO (arXiv 1912.09729); TRL's ``delta``
    (INTELLECT-2, arXiv 2505.07291), ``min(r, delta)`` for r, is the same wherever
    delta is above 1 + high.
    """
    limited = ratio.clamp(1 - clip, 1 + high)
    if dual is not None:
        ratio = ratio.clamp(max=dual)
    return torch.minimum(ratio * advantages, limited * advantages)


def gmpo(
    log_ratio: Tensor, advantages: Tensor, mask: Tensor, *, clip: float, high: float
) -> Tensor:
    """``A s_i``, s_i the geometric mean of token ratios that are clipped one by one. [B, T].

    ``log s_i = mean_t min(log r, high)`` where A > 0, ``mean_t max(log r, -clip)`` where A < 0:
    GMPO (arXiv 2507.20673). The bounds are of the logarithm. Each token has its own gradient, as
    in :func:`sequence_ratio`; none where it is clipped. Tokens of A = 0, which an entropy mask
    makes, stay in the mean.
    """
    limited = torch.where(advantages < 0, log_ratio.clamp(min=-clip), log_ratio.clamp(max=high))
    return _spread(limited, mask) * advantages


def sapo(ratio: Tensor, advantages: Tensor, *, positive: float, negative: float) -> Tensor:
    """``4 / tau sigmoid(tau (r - 1)) A``, tau by A's sign: SAPO (arXiv 2511.20347). [B, T].

    Its slope at r = 1 is A, as the clipped gain's, and falls off smoothly on both sides.
    """
    temperature = torch.where(
        advantages > 0, ratio.new_tensor(positive), ratio.new_tensor(negative)
    )
    return torch.sigmoid(temperature * (ratio - 1)) * 4 / temperature * advantages


def cispo(
    logprobs: Tensor, ratio: Tensor, advantages: Tensor, *, cap: float, floor: float
) -> Tensor:
    """``sg[clip(r, floor, cap)] A log p``, sg: no gradient: CISPO (arXiv 2506.13585) eq. 4. [B, T].

    REINFORCE with a bounded importance weight: no token loses its gradient. ``cap`` bounds r
    itself. TRL's ``epsilon_high`` does; the paper and verl have 1 + ``epsilon_high``.
    """
    return ratio.detach().clamp(floor, cap) * advantages * logprobs


def _spread(log_ratio: Tensor, mask: Tensor) -> Tensor:
    """Take exp of each reply's mean, with the gradient that each token's own ratio would have."""
    mean = log_ratio.detach().sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    own = (log_ratio - log_ratio.detach()).exp()  # 1, and has the gradient of log p
    return token_ratio(mean) * own
