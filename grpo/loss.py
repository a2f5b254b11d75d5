"""The loss of the GRPO family: ratio, surrogate, KL penalty and entropy bonus under one average.

Shapes: B replies, T tokens; tensors are [B, T] if nothing else is said. p is the probability of a
token under the policy in training, p_old when it was sampled, q under the reference; r = p / p_old,
A the advantages, sg[x] is x without gradient.

Every surrogate is ``c A`` with a factor c > 0 that depends on A by its sign alone (CISPO's is
``c A log p``), so weights of tokens can be multiplied into the advantages beforehand. Every average
is a sum over a denominator that is counted over the whole optimizer step, so the losses of
micro-batches, and of processes, add up to the loss of the step.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import get_args

import torch
from torch import Tensor

from .config import Average, Correction, Estimator, Objective

BOUNDS = ("low", "high", "dual", "off_policy")
"""What may cut off a token's gradient."""
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
    """``-mean_it[ gain(r_it, A_it) - beta KL_it + entropy_bonus H_it ]``, to be minimised.

    DeepSeekMath (arXiv 2402.03300) eq. 3 and its successors. With ``kl_correction`` KL is
    multiplied by r, which has a gradient too: DeepSeek-V3.2 (arXiv 2512.02556) section 3.1;
    on-policy that makes k3's gradient the one of KL(p || q).

    Args:
        logprobs: under the policy being trained; has a gradient.
        old_logprobs: under the policy that sampled the replies.
        advantages: zero or finite on the mask.
        mask: of bool, True on the tokens the policy wrote. What lies off it may be anything, in
            any of the tensors.
        objective: what is maximised.
        denominator: of the whole optimizer step, from :func:`loss_denominator`.
        reference_logprobs: under the reference; needed if ``beta`` is not 0 and ``kl_in="loss"``.
        entropy: of the policy being trained, in nats, with a gradient; needed if
            ``entropy_bonus`` is not 0.
        kl: KL(p || q) with a gradient, if a policy knows it in closed form (a Gaussian does); then
            ``reference_logprobs`` and ``objective.kl`` are not read.

    Raises:
        ValueError: a tensor that the objective needs is missing or has another shape.
    """
    given = {"old_logprobs": old_logprobs, "advantages": advantages, "mask": mask, "kl": kl}
    for name, x in {**given, "reference_logprobs": reference_logprobs, "entropy": entropy}.items():
        if x is not None and x.shape != logprobs.shape:
            raise ValueError(
                f"{name} must be [B, T] = {list(logprobs.shape)}, as logprobs, got {list(x.shape)}"
            )
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be of bool, got {mask.dtype}: use mask.bool()")
    ungraded = entropy is not None and logprobs.requires_grad and not entropy.requires_grad
    if objective.entropy_bonus and (entropy is None or ungraded):
        found = "None" if entropy is None else "entropies without a gradient"
        raise ValueError(
            f"entropy_bonus={objective.entropy_bonus} needs entropy with a gradient, got {found}"
        )
    log_ratio = (logprobs - old_logprobs).masked_fill(~mask, 0.0)
    own, advantages = logprobs.masked_fill(~mask, 0.0), advantages.masked_fill(~mask, 0.0)
    gain = gains(own, log_ratio, advantages, mask, objective)
    if (most := objective.off_policy_mask_threshold) is not None:
        gain = gain.masked_fill(strayed(log_ratio, advantages, mask, most), 0.0)
    if objective.penalised:
        if kl is None and reference_logprobs is not None:
            kl = kl_estimate(own, reference_logprobs.masked_fill(~mask, 0.0), objective.kl)
        if kl is None:
            raise ValueError(f"beta={objective.beta} needs reference_logprobs, got None")
        kl = kl.masked_fill(~mask, 0.0)
        if objective.kl_correction:
            kl = kl * token_ratio(log_ratio)
        gain = gain - objective.beta * kl
    if objective.entropy_bonus and entropy is not None:
        gain = gain + objective.entropy_bonus * entropy.masked_fill(~mask, 0.0)
    return -average_tokens(gain, mask, denominator=denominator, average=objective.loss)


def gains(
    logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor, objective: Objective
) -> Tensor:
    """Compute each token's gain by ``objective.surrogate``; inputs are zero off the mask."""
    o, a = objective, advantages
    if o.surrogate == "gmpo":
        # A s_i, log s_i = mean_t min(log r, high) where A > 0, mean_t max(log r, -clip) where
        # A < 0: GMPO (arXiv 2507.20673). The bounds are of the logarithm. Tokens of A = 0, which
        # an entropy mask makes, stay in the mean.
        low, high = log_ratio.clamp(min=-o.clip), log_ratio.clamp(max=o.upper_clip)
        return sequence_ratio(torch.where(a < 0, low, high), mask) * a
    ratio = _ratio(log_ratio, mask, o)
    if o.surrogate == "cispo":
        # sg[clip(r, floor, cap)] A log p: CISPO (arXiv 2506.13585) eq. 4. No token loses its
        # gradient. The cap bounds r itself, as TRL's epsilon_high; the paper and verl: 1 + epsilon.
        return ratio.detach().clamp(o.cispo_floor, o.cispo_cap) * a * logprobs
    if o.surrogate == "sapo":
        # 4 / tau sigmoid(tau (r - 1)) A, tau by A's sign: SAPO (arXiv 2511.20347). Its slope at
        # r = 1 is A, as the clipped gain's.
        taus = ratio.new_tensor([o.sapo_temperature_negative, o.sapo_temperature])
        tau = taus[(a > 0).long()]
        return torch.sigmoid(tau * (ratio - 1)) * 4 / tau * a
    return clipped(ratio, a, clip=o.clip, high=o.upper_clip, dual=o.dual_clip)


def strayed(log_ratio: Tensor, advantages: Tensor, mask: Tensor, most: float) -> Tensor:
    """Say which tokens of A < 0 are in replies with ``mean_t log(p_old / p) > most``.

    Their gain is 0: off-policy sequence masking, DeepSeek-V3.2 (arXiv 2512.02556) eq. 9.
    """
    count = mask.sum(dim=1, keepdim=True).clamp(min=1)
    return (advantages < 0) & (-log_ratio.detach().sum(dim=1, keepdim=True) / count > most)


def clipped(
    ratio: Tensor, advantages: Tensor, *, clip: float, high: float, dual: float | None = None
) -> Tensor:
    """``min(r A, clip(r, 1 - clip, 1 + high) A)``: PPO (arXiv 1707.06347) eq. 7.

    Two clips: "clip-higher", DAPO (arXiv 2503.14476) section 3.1. With ``dual`` the gain is at
    least ``dual A`` where A < 0: dual-clip PPO (arXiv 1912.09729); TRL's ``delta``
    (INTELLECT-2, arXiv 2505.07291), ``min(r, delta)`` for r, is the same if delta is above
    1 + high.
    """
    limited = ratio.clamp(1 - clip, 1 + high)
    if dual is not None:
        ratio = ratio.clamp(max=dual)
    return torch.minimum(ratio * advantages, limited * advantages)


def token_ratio(log_ratio: Tensor) -> Tensor:
    """``r = exp(log p - log p_old)``, the logarithm cut at +-20, as verl does.

    Beyond, a token has no gradient. TRL cuts nothing, and gets infinity from 89 on.
    """
    return log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def sequence_ratio(log_ratio: Tensor, mask: Tensor) -> Tensor:
    """``s_it = sg[s_i] p / sg[p]`` with ``s_i = exp(mean_t log r_it)``.

    GSPO (arXiv 2507.18071) eq. 7 (s_i) and section 4.3 (s_it, GSPO-token). The value is s_i for
    every token. If a reply's advantages are all equal the sum's gradient is s_i's too; if they
    differ, each token gets its own.
    """
    mean = log_ratio.detach().sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    own = (log_ratio - log_ratio.detach()).exp()  # 1, and has the gradient of log p
    return token_ratio(mean) * own


def _ratio(log_ratio: Tensor, mask: Tensor, objective: Objective) -> Tensor:
    whole = objective.ratio == "sequence"
    return sequence_ratio(log_ratio, mask) if whole else token_ratio(log_ratio)


def kl_estimate(logprobs: Tensor, reference_logprobs: Tensor, estimator: Estimator) -> Tensor:
    """KL of each token in nats, by an estimator of Schulman's "Approximating KL divergence".

    With d = log p - log q:

    ====  =============  =========  ==============================  ==========================
    name  value          gradient   value for tokens drawn from p   gradient, as part of a loss
    ====  =============  =========  ==============================  ==========================
    k1    d              1          unbiased; may be negative       mean zero: no penalty
    k2    d^2 / 2        d          biased                          that of KL(p || q)
    k3    e^-d - 1 + d   1 - e^-d   unbiased, never negative        that of KL(q || p)
    ====  =============  =========  ==============================  ==========================

    "gradient" is d / d log p. As part of the reward only k1 gives the gradient of KL(p || q).
    k3 is DeepSeekMath's (arXiv 2402.03300) eq. 4; it stops at d = -20, and its gradient is 0
    beyond. (verl cuts d at +-20, and k3 at 10, where its gradient is lost below d = -2.6 and above
    11: the very tokens that need the penalty.)
    """
    d = logprobs - reference_logprobs
    if estimator == "k1":
        return d
    if estimator == "k2":
        return d.square() / 2
    d = d.clamp(min=-MAX_LOG_RATIO)
    return torch.expm1(-d) + d  # exp(-d) - 1 loses all digits of a small d


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
    """Take the KL penalty off the rewards [B]: ``R_i - beta sum_t KL_it``; NaN stays NaN.

    DeepSeekMath (arXiv 2402.03300) eq. 2, summed over the reply, as an outcome reward needs it.
    ``logprobs`` are those of the policy that sampled.
    """
    kl = kl_estimate(logprobs, reference_logprobs, estimator).masked_fill(~mask, 0.0)
    return rewards - beta * kl.sum(dim=1).to(rewards.dtype)


def average_tokens(values: Tensor, mask: Tensor, *, denominator: float, average: Average) -> Tensor:
    """Average a value of each token over the tokens of the mask; off it values may be anything.

    ============  ====================================  ===========================================
    average       sum                                   denominator, from :func:`loss_denominator`
    ============  ====================================  ===========================================
    dapo, bnpo    over all tokens                       tokens of the step (DAPO, arXiv 2503.14476,
                                                        eq. 8)
    grpo          over replies, of each reply's mean    replies of the step (DeepSeekMath, arXiv
                                                        2402.03300, eq. 3)
    dr_grpo       over all tokens                       replies x longest allowed reply (Dr. GRPO,
                                                        arXiv 2503.20783, section 3.2)
    ============  ====================================  ===========================================

    ``bnpo`` is TRL's name for the mean over the tokens of a micro-batch, and then over
    micro-batches: tokens beside long replies count for less, by how the batch was cut. Here
    the batch is the optimizer step, which makes it ``dapo``.
    """
    values = values.masked_fill(~mask, 0.0)
    if average == "grpo":
        values = values / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return values.sum() / denominator


def loss_denominator(lengths: Tensor, *, average: Average, max_tokens: int) -> float:
    """Return the denominator of :func:`average_tokens` for a whole optimizer step, at least 1.

    ``lengths`` [B] are the tokens on the mask in each scored reply of the step; 0 for a reply that
    is masked for having been cut off, which still counts as a reply.
    """
    if average in ("dapo", "bnpo"):
        return float(max(1, int(lengths.sum())))
    return float(max(1, lengths.numel() * (max_tokens if average == "dr_grpo" else 1)))


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
    team, 2025); ``none``: 1. A sequence's product strays further than a token's weight.

    ``trainer_logprobs`` are taken with the weights that sampled; a token whose sampler's is NaN
    (unknown) has weight 1. Weights are zero off the mask; logarithms are cut at +-20.
    """
    if how == "none":
        return mask.to(trainer_logprobs.dtype)
    difference = (trainer_logprobs - sampler_logprobs).masked_fill(~mask, 0.0)
    difference = difference.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    if how.startswith("sequence"):
        difference = difference.sum(dim=1, keepdim=True).expand_as(mask)
    weights = token_ratio(difference)
    if how.endswith("truncate"):
        weights = weights.clamp(floor, cap)
    else:
        weights = weights.masked_fill((weights < floor) | (weights > cap), 0.0)
    return weights.masked_fill(~mask, 0.0)


def top_entropy_mask(entropies: Tensor, mask: Tensor, share: float) -> Tensor:
    """Say which tokens of the mask are among the ``share``, in (0, 1], of highest entropy.

    "Beyond the 80/20 Rule" (arXiv 2506.01939): training on the fifth of tokens about which
    the policy was undecided is enough. Off this mask advantages become zero; denominators,
    KL penalty and entropy bonus stay over all tokens. Tokens tied at the threshold are all in.

    Give it all tokens of an optimizer step: of a micro-batch's alone the threshold would depend on
    how the step is cut.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share!r}: 0.2 is the paper's")
    held = entropies[mask]
    if share == 1 or not held.numel():
        return mask.clone()
    # The (1 - share) quantile; if it falls between two tokens, the upper one.
    below = math.ceil((held.numel() - 1) * (1 - share) - 1e-9)
    return mask & (entropies >= torch.kthvalue(held, below + 1).values)


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
    """Sum over tokens, to be divided by ``tokens``; take extremes, to be merged as such.

    Returns:
        ``tokens``; ``ratio``, ``min_ratio`` and ``max_ratio`` of r, not cut, so that infinity
        shows; ``log_ratio`` and ``max_log_ratio``, the largest of any, sign aside; ``advantage``;
        ``clipped_low``, ``clipped_high``, ``clipped_dual`` and ``clipped_off_policy``, tokens whose
        gradient (of CISPO: weight) a bound cut off; with a reference ``kl_k1``, ``kl_k2``,
        ``kl_k3``. Without any token all are 0, the ratios' extremes infinite.
    """
    log_ratio = (logprobs - old_logprobs).masked_fill(~mask, 0.0)
    ratio, exact = log_ratio[mask].exp(), log_ratio[mask].double()
    sums = {
        "tokens": float(mask.sum()),
        "ratio": float(ratio.sum()),
        "min_ratio": float(ratio.min()) if ratio.numel() else float("inf"),
        "max_ratio": float(ratio.max()) if ratio.numel() else float("-inf"),
        "log_ratio": float(exact.sum()),
        "max_log_ratio": float(exact.abs().max()) if exact.numel() else 0.0,
        "advantage": float(advantages[mask].sum()),
    }
    cut = _cut_off(log_ratio, advantages, mask, objective)
    if (most := objective.off_policy_mask_threshold) is not None:
        far = strayed(log_ratio, advantages, mask, most)
        cut = {bound: found & ~far for bound, found in cut.items()} | {"off_policy": far}
    for bound in BOUNDS:
        sums[f"clipped_{bound}"] = float(cut[bound][mask].sum()) if bound in cut else 0.0
    if reference_logprobs is not None:
        pair, estimators = (logprobs[mask], reference_logprobs[mask]), get_args(Estimator)
        sums |= {f"kl_{name}": float(kl_estimate(*pair, name).sum()) for name in estimators}
    return sums


def merge_sums(sums: dict[str, float], more: Mapping[str, float]) -> None:
    """Merge another micro-batch's into ``sums``: adds, but takes ``min_`` and ``max_`` as such."""
    for name, value in more.items():
        merge = {"min_": min, "max_": max}.get(name[:4], operator.add)
        sums[name] = merge(sums[name], value) if name in sums else value


def _cut_off(
    log_ratio: Tensor, advantages: Tensor, mask: Tensor, objective: Objective
) -> dict[str, Tensor]:
    """Which tokens each bound of the surrogate cuts off."""
    o, up, down = objective, advantages > 0, advantages < 0
    if o.surrogate == "sapo":
        return {}
    if o.surrogate == "gmpo":
        return {"low": (log_ratio < -o.clip) & down, "high": (log_ratio > o.upper_clip) & up}
    ratio = _ratio(log_ratio, mask, o)
    if o.surrogate == "cispo":
        graded = up | down
        return {"low": (ratio < o.cispo_floor) & graded, "high": (ratio > o.cispo_cap) & graded}
    found = {"low": (ratio < 1 - o.clip) & down, "high": (ratio > 1 + o.upper_clip) & up}
    return found if o.dual_clip is None else found | {"dual": (ratio > o.dual_clip) & down}
