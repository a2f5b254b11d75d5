"""Advantages: how much better each reply is than the others to its prompt.

Shapes: P prompts, G replies to each, K named rewards or steps, T tokens. Rewards are [P, G] of
floating point, NaN if missing: such a reward is in no statistic, and its advantage is zero. A group
in which fewer than two rewards differ has advantages of exactly zero, whatever ``eps``: the learner
skips it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import assert_never

import torch
from torch import Tensor

from .config import Objective, Spread


def group_advantages(rewards: Tensor, *, std: Spread = "population", eps: float = 1e-6) -> Tensor:
    """``A = (r - mean r) / (std r + eps)``: DeepSeekMath (arXiv 2402.03300), section 4.1.2.

    Args:
        rewards: [P, G].
        std: ``population`` (1/n) or ``sample`` (1/(n-1)) deviation of the group; ``batch``, that of
            all rewards ("Tricks or Traps", arXiv 2508.08221); ``none``: Dr. GRPO (arXiv
            2503.20783), as the division weights easy and hard prompts up. DeepSeekMath does not
            say which; trainers in use take the sample's.
        eps: added to the standard deviation, in the unit of a reward.

    Returns:
        [P, G], mean zero over the rewards of a group.

    Raises:
        ValueError: the shape is another, or ``std`` is none of the four words.
    """
    if std not in ("population", "sample", "batch", "none"):
        raise ValueError(f"std must be 'population', 'sample', 'batch' or 'none', got {std!r}")
    rewards, scored = _scored(rewards)
    centred = _centred(rewards, scored)
    if std == "none":
        return centred
    if std == "batch":
        count = scored.sum()
        mean = rewards.sum() / count.clamp(min=1)
        squares = (rewards - mean).masked_fill(~scored, 0.0).square().sum()
    else:
        count = scored.sum(dim=1, keepdim=True)  # [P, 1]
        squares = centred.square().sum(dim=1, keepdim=True)
    degrees = count - int(std != "population")
    deviation = (squares / degrees.clamp(min=1)).sqrt()
    return torch.where(centred == 0, centred, centred / (deviation + eps))  # not 0 / 0 at eps 0


def leave_one_out(rewards: Tensor) -> Tensor:
    """``A_i = r_i - mean_{j != i} r_j = (r_i - mean r) n / (n - 1)``: RLOO.

    Kool et al., "Buy 4 REINFORCE Samples, Get a Baseline for Free!" (2019); Ahmadian et al. (arXiv
    2402.14740).
    """
    rewards, scored = _scored(rewards)
    count = scored.sum(dim=1, keepdim=True)
    return _centred(rewards, scored) * count / (count - 1).clamp(min=1)


def maxrl(rewards: Tensor) -> Tensor:
    """``A_i = (r_i - mean r) / mean r``: MaxRL (arXiv 2602.02710).

    With rewards of 1 and 0 its expectation is, up to order G, the gradient of log p(right): rare
    right replies weigh 1 / p, where dividing by the standard deviation gives about 1 / sqrt(p).

    Raises:
        ValueError: a reward is negative.
    """
    rewards, scored = _scored(rewards)
    if bool((rewards < 0).any()):
        least = float(rewards.min())
        raise ValueError(
            f"advantage='maxrl' divides by the group's mean reward, so rewards must be at least 0, "
            f"got {least:g}: pay 1 and 0, or set advantage='group'"
        )
    mean = rewards.sum(1, keepdim=True) / scored.sum(dim=1, keepdim=True).clamp(min=1)
    centred = _centred(rewards, scored)
    return torch.where(centred == 0, centred, centred / mean)  # not 0 / 0 if all are wrong


def opo(rewards: Tensor, lengths: Tensor) -> Tensor:
    """``A_i = r_i - sum_j l_j r_j / sum_j l_j``: OPO (arXiv 2505.23585).

    The baseline of least variance if a reply's squared gradient grows with its length l, here
    [P, G] tokens. The mean of a group's advantages is not zero, that over its tokens is.
    """
    rewards, scored = _scored(rewards, lengths)
    weights = lengths.to(rewards.dtype).masked_fill(~scored, 0.0)
    baseline = (weights * rewards).sum(1, keepdim=True) / weights.sum(1, keepdim=True).clamp(min=1)
    return (rewards - baseline).masked_fill(~_differing(rewards, scored), 0.0)


def whiten(values: Tensor, mask: Tensor, *, eps: float = 1e-6) -> Tensor:
    """Bring values to mean 0 and deviation 1: ``(x - mean) / (std + eps)``, std of a sample.

    Over the values on the mask, of the same shape; the others become zero, and all do if no two
    values differ.
    """
    held = values[mask]
    if held.numel() < 2 or held.min() == held.max():
        return torch.zeros_like(values)
    variance = (held - held.mean()).square().sum() / (held.numel() - 1)
    return ((values - held.mean()) / (variance.sqrt() + eps)).masked_fill(~mask, 0.0)


def reinforce_pp(rewards: Tensor, *, baseline: bool, eps: float = 1e-6) -> Tensor:
    """``A = whiten(r)`` over the batch: REINFORCE++ (arXiv 2501.03262).

    With ``baseline``, ``A = whiten(r - mean of the group)``: REINFORCE++-baseline. Without it a
    group of equal rewards has advantages unless the whole batch is equal.
    """
    masked, scored = _scored(rewards)
    if not baseline:
        return whiten(masked, scored, eps=eps)
    return _whiten_groups(_centred(masked, scored), scored, eps=eps)


def mo_grpo(
    rewards: Tensor,
    weights: Tensor | None = None,
    *,
    std: Spread = "population",
    eps: float = 1e-6,
) -> Tensor:
    """``A = sum_k w_k (r_k - mean r_k) / (std r_k + eps)`` over each group.

    MO-GRPO (arXiv 2509.22047), which has no weights [K]; here they are 1 by default. A change of a
    reward's scale or origin changes nothing. Of rewards [K, P, G] a missing one's term is left out.
    """
    if rewards.dim() != 3 or (weights is not None and weights.shape != rewards.shape[:1]):
        shape = None if weights is None else tuple(weights.shape)
        raise ValueError(
            f"rewards must be [K, P, G] and weights [K], got {tuple(rewards.shape)} and {shape}"
        )
    each = group_advantages(rewards.flatten(0, 1), std=std, eps=eps).view_as(rewards)
    weights = torch.ones(len(each)) if weights is None else weights
    return (each * weights.to(each)[:, None, None]).sum(dim=0)


def gdpo(
    rewards: Tensor,
    weights: Tensor | None = None,
    *,
    std: Spread = "population",
    eps: float = 1e-6,
) -> Tensor:
    """:func:`mo_grpo`, then whitened over the batch: GDPO (arXiv 2601.05242).

    A reply without any reward is not in the batch's statistics; ``eps`` is added to the batch's
    deviation too.
    """
    summed = mo_grpo(rewards, weights, std=std, eps=eps)
    return _whiten_groups(summed, ~rewards.isnan().all(dim=0), eps=eps)


def process_advantages(
    step_rewards: Tensor,
    step_ends: Tensor,
    tokens: int,
    *,
    std: Spread = "population",
    eps: float = 1e-6,
) -> Tensor:
    """Give each token the normalised rewards of the steps that end at it or later.

    ``A_t = sum_{k: end_k >= t} (r_k - mean R) / (std R + eps)`` with R all step rewards of all
    replies to the prompt: DeepSeekMath (arXiv 2402.03300), section 4.1.3.

    Args:
        step_rewards: [P, G, K]; NaN if a reply has no such step, or the step no reward.
        step_ends: [P, G, K] of int64: each step's last token. Read only beside a reward; -1 for a
            step before the first token, whose reward is in the statistics alone.
        tokens: T.
        std: as for :func:`group_advantages`, of R.
        eps: the same.

    Returns:
        [P, G, T]. Zero past a reply's last step.

    Raises:
        ValueError: the shapes differ, or a step with a reward ends outside [-1, T).
    """
    if step_rewards.dim() != 3 or step_ends.shape != step_rewards.shape:
        raise ValueError(
            "step_rewards and step_ends must both be [P, G, K], got "
            f"{tuple(step_rewards.shape)} and {tuple(step_ends.shape)}"
        )
    ends = step_ends.masked_fill(step_rewards.isnan(), -1)
    if wrong := ends[(ends < -1) | (ends >= tokens)].tolist():
        raise ValueError(
            f"step_ends must be in [-1, {tokens}), the tokens of a reply, got {wrong[0]}: "
            "a step's end is the index of its last token"
        )
    normalised = group_advantages(step_rewards.flatten(1), std=std, eps=eps)  # [P, G * K]
    at_ends = step_rewards.new_zeros(*step_rewards.shape[:2], 1 + tokens)  # the first for -1
    at_ends.scatter_add_(2, 1 + ends, normalised.view_as(step_rewards))
    return at_ends[..., 1:].flip(-1).cumsum(-1).flip(-1)


def difficulty_weights(
    advantages: Tensor,
    correct: Tensor,
    *,
    easy: float = 0.4,
    hard: float = 1.5,
    middle: float = 0.75,
    slope: float = 10.0,
) -> Tensor:
    """Weigh advantages by difficulty: GRPO-LEAD (arXiv 2504.09696), with its code's defaults.

    ``w(s) = easy + (hard - easy) / (1 + exp(slope (s - middle)))``, where s is the share of the
    group's replies that are right: ``w(s)`` for positive advantages, ``w(1 - s)`` for the others.
    A rare right reply counts for more than one of many, and so does a rare wrong one. ``correct``
    [P, G] is 1 if a reply is right, 0 if it is wrong, NaN if it was not judged: such a one is not
    in the share.

    Example:
        >>> half = difficulty_weights(torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, 0.0]]))
        >>> [round(w, 3) for w in half[0].tolist()]
        [1.417, 1.417]
    """
    if advantages.dim() != 2 or correct.shape != advantages.shape:
        raise ValueError(
            f"advantages and correct must be [P, G], got {list(advantages.shape)} and "
            f"{list(correct.shape)}"
        )
    share = correct.nanmean(dim=1, keepdim=True).nan_to_num(0.0)  # [P, 1]
    share = torch.where(advantages > 0, share, 1 - share).to(advantages.dtype)
    return easy + (hard - easy) * torch.sigmoid(slope * (middle - share))


def outcome_advantages(
    rewards: Tensor,
    objective: Objective,
    *,
    lengths: Tensor | None = None,
    named: Mapping[str, Tensor] | None = None,
    correct: Tensor | None = None,
) -> Tensor:
    """Compare replies as ``objective.advantage`` says, and weigh them by their prompt's difficulty.

    Args:
        rewards: [P, G], the total reward of each reply.
        objective: its ``advantage`` and what belongs to it.
        lengths: [P, G], tokens that the policy wrote; read by ``opo``.
        named: rewards by name, each [P, G]; read by ``mo_grpo`` and ``gdpo``. A reply without
            a total reward has none of these either.
        correct: as for :func:`difficulty_weights`; read if ``hard_weight`` is not ``easy_weight``.

    Raises:
        ValueError: what the objective reads is missing, or a weight is of no reward.
    """
    o, how, eps = objective, objective.advantage, objective.advantage_eps
    match how:
        case "group":
            found = group_advantages(rewards, std=o.advantage_std, eps=eps)
        case "leave_one_out":
            found = leave_one_out(rewards)
        case "maxrl":
            found = maxrl(rewards)
        case "reinforce_pp" | "reinforce_pp_baseline":
            found = reinforce_pp(rewards, baseline=how == "reinforce_pp_baseline", eps=eps)
        case "opo":
            if lengths is None:
                raise ValueError("advantage='opo' needs the replies' lengths, got None")
            found = opo(rewards, lengths)
        case "reward":
            found = rewards.nan_to_num(0.0)
        case "process":
            raise ValueError("advantage='process' compares steps: use process_advantages")
        case "mo_grpo" | "gdpo":
            several = mo_grpo if how == "mo_grpo" else gdpo
            found = several(*_stack(rewards, named, o), std=o.advantage_std, eps=eps)
        case _:
            assert_never(how)
    if not o.weighs_difficulty:
        return found
    if correct is None:
        raise ValueError(f"hard_weight={o.hard_weight} needs to know which replies are right")
    middle, slope = o.difficulty_middle, o.difficulty_slope
    return found * difficulty_weights(
        found, correct, easy=o.easy_weight, hard=o.hard_weight, middle=middle, slope=slope
    )


def _stack(
    rewards: Tensor, named: Mapping[str, Tensor] | None, objective: Objective
) -> tuple[Tensor, Tensor]:
    """Stack named rewards [K, P, G] and their weights [K], in the order of their names."""
    if not named:
        raise ValueError(
            f"advantage={objective.advantage!r} needs rewards by name, got {named!r}: "
            "an environment with named parts gives them"
        )
    require_rewards(objective, named)
    given, names = objective.reward_weights or {}, sorted(named)
    stacked = torch.stack([named[name].masked_fill(rewards.isnan(), torch.nan) for name in names])
    return stacked, stacked.new_tensor([given.get(name, 1.0) for name in names])


def require_rewards(objective: Objective, names: Collection[str]) -> None:
    """Refuse weights of rewards that are not among the environment's.

    Raises:
        ValueError: it names them, and those there are.
    """
    if unknown := sorted(set(objective.reward_weights or {}) - set(names)):
        raise ValueError(
            f"reward_weights names {unknown}, which the environment does not give: "
            f"it gives {sorted(names)}"
        )


def _scored(rewards: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return rewards with zero for missing ones, and the mask of the others; both [P, G]."""
    if rewards.dim() != 2:
        raise ValueError(f"rewards must be [P, G], got {tuple(rewards.shape)}")
    if lengths is not None and lengths.shape != rewards.shape:
        raise ValueError(
            f"lengths must be [P, G] = {list(rewards.shape)}, as rewards, got {list(lengths.shape)}"
        )
    scored = ~rewards.isnan()
    return rewards.masked_fill(~scored, 0.0), scored


def _differing(rewards: Tensor, scored: Tensor) -> Tensor:
    """Mark the rewards [P, G] of groups that hold two different ones.

    Compared as they are, not through a mean: rounding would turn eight times 0.1 into noise.
    """
    highest = rewards.masked_fill(~scored, -torch.inf).amax(dim=1, keepdim=True)
    lowest = rewards.masked_fill(~scored, torch.inf).amin(dim=1, keepdim=True)
    return scored & (highest > lowest)


def _centred(rewards: Tensor, scored: Tensor) -> Tensor:
    """``r - mean r`` over each group; exactly zero if no two rewards differ."""
    count = scored.sum(dim=1, keepdim=True)  # [P, 1]
    centred = rewards - rewards.sum(dim=1, keepdim=True) / count.clamp(min=1)
    return centred.masked_fill(~_differing(rewards, scored), 0.0)


def _whiten_groups(values: Tensor, scored: Tensor, *, eps: float) -> Tensor:
    """Whiten over the batch; a group of zeros stays zero, but is in the statistics."""
    informative = (values != 0).any(dim=1, keepdim=True) & scored
    return whiten(values, scored, eps=eps).masked_fill(~informative, 0.0)
