"""The loss of the GRPO family: ratio, surrogate, KL penalty and entropy bonus under one average.

Shapes: B replies, T tokens. ``r = p / p_old`` is [B, T], A the advantages [B, T].

Every surrogate is ``c A`` with a factor c > 0 that depends on A by its sign alone (CISPO's is
``c A log p``), so weights of tokens can be multiplied into the advantages beforehand. Every average
is a sum over a denominator that is counted over the whole optimizer step, so the losses of
micro-batches, and of processes, add up to the loss of the step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from .objective import Average, Correction, Estimator, Objective

MAX_LOG_RATIO = 20.0
"""Where exp stops: e^20 = 4.9e8, in float32 still far from infinity, whose gradient is NaN."""


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
    :mod:`surrogate`, KL of :func:`kl_estimate`, the mean of
    :func:`average_tokens`. All three terms have the same mean, so the losses of
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
        denominator: of the whole optimizer step, from :func:`count`.
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
    if objective.penalised:
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


@torch.no_grad()
def mismatch_weights(
    trainer_logprobs: Tensor,
    sampler_logprobs: Tensor,
    mask: Tensor,
    how: Correction,
    cap: float = 3.0,
    *,
    floor: float = 0.0,
) -> Tensor:
    """Importance weights p_trainer / p_sampler, to be multiplied into the tokens' advantages.

    The same weights in another engine or precision give other probabilities, so what was
    sampled is not what is trained on. ``token``: of each token; ``sequence``: the product over
    the reply, for all of its tokens. ``truncate``: cut to [floor, cap] (truncated importance
    sampling: Yao et al., "Your Efficient RL Framework Secretly Brings You Off-Policy RL
    Training", 2025); ``mask``: zero outside of it (with a floor and single tokens: IcePop, Ling
    team, 2025).

    Args:
        trainer_logprobs: [B, T], by the trainer's forward, with the weights that sampled.
        sampler_logprobs: [B, T], by the sampler; NaN where unknown: the token's weight is 1.
        mask: [B, T] of bool, True on the tokens the policy wrote.
        how: one of the combinations, or ``none``: weights of 1.
        cap: at least 1. A sequence's product strays further than a token's weight.
        floor: at most 1.

    Returns:
        [B, T], no gradient; zero off the mask. Logarithms are cut at +-20.
    """
    if how == "none":
        return mask.to(trainer_logprobs.dtype)
    difference = (trainer_logprobs - sampler_logprobs).masked_fill(~mask, 0.0)
    difference = difference.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    if how.startswith("sequence"):
        difference = difference.sum(dim=1, keepdim=True).expand_as(mask)
    weights = difference.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    if how.endswith("truncate"):
        weights = weights.clamp(floor, cap)
    else:
        weights = weights.masked_fill((weights < floor) | (weights > cap), 0.0)
    return weights.masked_fill(~mask, 0.0)


def top_entropy_mask(entropies: Tensor, mask: Tensor, share: float) -> Tensor:
    """Say which tokens are among the ``share`` of highest entropy.

    "Beyond the 80/20 Rule" (arXiv 2506.01939): training on the fifth of tokens where
    the policy was undecided is enough. Off this mask advantages become zero; denominators,
    KL penalty and entropy bonus stay over all tokens.

    Args:
        entropies: of any shape, in nats: of all tokens of an optimizer step. Of a micro-batch's
            alone the threshold would depend on how the step is cut.
        mask: of the same shape, of bool, True on the tokens the policy wrote.
        share: in (0, 1].

    Returns:
        Of the same shape, of bool; within ``mask``. Tokens tied at the threshold are all in.

    Raises:
        ValueError: ``share`` is out of its range.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share!r}: 0.2 is the paper's")
    held = entropies[mask]
    if share == 1 or not held.numel():
        return mask.clone()
    # The (1 - share) quantile, where it falls between two tokens the upper one.
    below = math.ceil((held.numel() - 1) * (1 - share) - 1e-9)
    threshold = torch.kthvalue(held, below + 1).values
    return mask & (entropies >= threshold)


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
