"""Advantages: how much better each reply is than the others to its prompt.

Shapes: P prompts, G replies to each, K named rewards or steps, T tokens. A missing reward is NaN:
it is in no statistic, and its advantage is zero. Groups with nothing to learn from have advantages
of exactly zero, whatever ``eps``: the learner skips them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

import torch
from torch import Tensor

from .objective import Objective, Spread


def group_advantages(
    rewards: Tensor,
    mask: Tensor | None = None,
    *,
    std: Spread = "population",
    eps: float = 1e-6,
) -> Tensor:
    """Score each reply against the others to its prompt.

    ``A = (r - mean(r)) / (std(r) + eps)``: DeepSeekMath (arXiv 2402.03300), section 4.1.2,
    outcome supervision. ``std="none"`` gives ``A = r - mean(r)``: Dr. GRPO (arXiv 2503.20783),
    which leaves out the division because it weights easy and hard prompts up.

    Args:
        rewards: [P, G], floating point. NaN where there is no reward.
        mask: [P, G] of bool, False where there is no reward; NaN counts as False either way.
        std: divide by the group's standard deviation as a population (1/n) or a sample
            (1/(n-1)), by that of all rewards of the batch (1/(n-1); "Tricks or Traps", arXiv
            2508.08221), or by nothing. DeepSeekMath does not say which; trainers in use take
            the sample's.
        eps: added to the standard deviation, in the unit of a reward.

    Returns:
        [P, G], mean zero over the rewards that are there. Exactly zero where there is no
        reward, where fewer than two replies of the group have one, and where all are equal.

    Raises:
        ValueError: the shapes differ, or ``std`` is none of the four words.
    """
    if std not in ("population", "sample", "batch", "none"):
        raise ValueError(f"std must be 'population', 'sample', 'batch' or 'none', got {std!r}")
    rewards, scored = _scored(rewards, mask)
    centred = _centred(rewards, scored)
    if std == "none":
        return centred
    count = scored.sum(dim=1, keepdim=True)  # [P, 1]
    squares = centred.square().sum(dim=1, keepdim=True)
    if std == "batch":
        count = scored.sum()
        mean = rewards.sum() / count.clamp(min=1)
        squares = (rewards - mean).masked_fill(~scored, 0.0).square().sum()
    degrees = count - int(std != "population")
    deviation = (squares / degrees.clamp(min=1)).sqrt()
    return torch.where(centred == 0, centred, centred / (deviation + eps))  # not 0 / 0 at eps 0


def leave_one_out(rewards: Tensor, mask: Tensor | None = None) -> Tensor:
    """Score each reply against the mean of the others: ``A_i = r_i - mean_{j != i} r_j``.

    RLOO: Kool et al., "Buy 4 REINFORCE Samples, Get a Baseline for Free!" (2019); Ahmadian et
    al. (arXiv 2402.14740). Equal to ``(r_i - mean(r)) n / (n - 1)``.

    Args and returns: as :func:`group_advantages`.
    """
    rewards, scored = _scored(rewards, mask)
    count = scored.sum(dim=1, keepdim=True)
    return _centred(rewards, scored) * count / (count - 1).clamp(min=1)


def opo(rewards: Tensor, lengths: Tensor, mask: Tensor | None = None) -> Tensor:
    """Score each reply against the mean that weighs replies by length: ``r_i - sum l r / sum l``.

    OPO (arXiv 2505.23585): the baseline of least variance, if a reply's squared gradient grows
    with its length. The mean of a group's advantages is not zero, that over its tokens is.

    Args:
        rewards: [P, G]; NaN where there is no reward.
        lengths: [P, G], tokens that the policy wrote.
        mask: as for :func:`group_advantages`.

    Returns:
        [P, G], zero as :func:`group_advantages`.

    Raises:
        ValueError: the shapes differ.
    """
    rewards, scored = _scored(rewards, mask)
    if lengths.shape != rewards.shape:
        raise ValueError(
            f"lengths must be [P, G] = {list(rewards.shape)}, as rewards, got {list(lengths.shape)}"
        )
    weights = lengths.to(rewards.dtype).masked_fill(~scored, 0.0)
    total = weights.sum(dim=1, keepdim=True).clamp(min=1)
    centred = rewards - (weights * rewards).sum(dim=1, keepdim=True) / total
    return centred.masked_fill(~scored | ~has_variance(rewards, scored)[:, None], 0.0)


def has_variance(rewards: Tensor, mask: Tensor) -> Tensor:
    """Say which groups hold two different rewards, and so anything to learn from.

    Compared as they are, not through a mean: rounding would turn eight times 0.1 into noise.

    Args:
        rewards: [P, G].
        mask: [P, G] of bool, False where there is no reward.

    Returns:
        [P] of bool.
    """
    highest = rewards.masked_fill(~mask, -torch.inf).amax(dim=1)
    lowest = rewards.masked_fill(~mask, torch.inf).amin(dim=1)
    return highest > lowest


def _scored(rewards: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Zero where there is no reward, and where there is one; both [P, G]."""
    if rewards.dim() != 2 or (mask is not None and mask.shape != rewards.shape):
        shape = None if mask is None else tuple(mask.shape)
        raise ValueError(
            f"rewards and mask must both be [P, G], got {tuple(rewards.shape)} and {shape}"
        )
    scored = ~rewards.isnan() if mask is None else mask.bool() & ~rewards.isnan()
    return rewards.masked_fill(~scored, 0.0), scored


def _centred(rewards: Tensor, scored: Tensor) -> Tensor:
    """``r - mean(r)`` over each group; exactly zero where it teaches nothing."""
    count = scored.sum(dim=1, keepdim=True)  # [P, 1]
    centred = rewards - rewards.sum(dim=1, keepdim=True) / count.clamp(min=1)
    return centred.masked_fill(~scored | ~has_variance(rewards, scored)[:, None], 0.0)


def whiten(
    values: Tensor, mask: Tensor, *, weights: Tensor | None = None, eps: float = 1e-6
) -> Tensor:
    """Bring values to mean 0 and standard deviation 1: ``(x - mean) / (std + eps)``.

    Args:
        values: of any shape, floating point; anything off the mask.
        mask: of the same shape, of bool.
        weights: of the same shape: how often each value counts; once by default.
        eps: added to the standard deviation (of a sample: 1/(n-1)).

    Returns:
        Of the same shape; zero off the mask, and everywhere if no two values differ.
    """
    held = values[mask]
    if held.numel() < 2 or held.min() == held.max():
        return torch.zeros_like(values)
    often = torch.ones_like(held) if weights is None else weights[mask].to(held.dtype)
    total = often.sum().clamp(min=1)
    mean = (often * held).sum() / total
    variance = (often * (held - mean).square()).sum() / (total - 1).clamp(min=1)
    return ((values - mean) / (variance.sqrt() + eps)).masked_fill(~mask, 0.0)


def reinforce_pp(
    rewards: Tensor,
    mask: Tensor | None = None,
    *,
    baseline: bool,
    lengths: Tensor | None = None,
    eps: float = 1e-6,
) -> Tensor:
    """Score each reply against all replies of the batch: REINFORCE++ (arXiv 2501.03262).

    ``A = whiten(r)`` over the batch; with ``baseline`` ``A = whiten(r - mean of the group)``,
    REINFORCE++-baseline. Without it groups are not looked at: one whose rewards are all equal
    has advantages, unless the whole batch is equal.

    Args:
        rewards: [P, G]; NaN where there is no reward.
        mask: [P, G] of bool, False where there is no reward; NaN counts as False either way.
        baseline: see above.
        lengths: [P, G], tokens that the policy wrote. Given, a reply counts once for each of
            them in mean and deviation, as in verl and OpenRLHF; else once.
        eps: see :func:`whiten`.

    Returns:
        [P, G]; zero where there is no reward. With ``baseline`` exactly zero where fewer than
        two replies of a group have one, or all are equal (they count in the batch's
        deviation; with ``lengths`` verl would shift them off zero).

    Raises:
        ValueError: the shapes differ.
    """
    for name, other in (("mask", mask), ("lengths", lengths)):
        if other is not None and other.shape != rewards.shape:
            raise ValueError(
                f"{name} must be [P, G] = {list(rewards.shape)}, as rewards, "
                f"got {list(other.shape)}"
            )
    scored = ~rewards.isnan() if mask is None else mask.bool() & ~rewards.isnan()
    if not baseline:
        return whiten(rewards, scored, weights=lengths, eps=eps)
    centred = group_advantages(rewards, scored, std="none")
    informative = (centred != 0).any(dim=1, keepdim=True) & scored
    return whiten(centred, scored, weights=lengths, eps=eps).masked_fill(~informative, 0.0)


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
        std: as for :func:`group_advantages`.
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


def process_advantages(
    step_rewards: Tensor,
    step_ends: Tensor,
    tokens: int,
    *,
    std: Literal["population", "sample", "none"] = "population",
    eps: float = 1e-6,
) -> Tensor:
    """Give each token the rewards of the steps that end at it or later, normalised.

    ``A_t = sum_{k: end_k >= t} (r_k - mean R) / (std R + eps)`` with R all step rewards of all
    replies to the prompt: DeepSeekMath (arXiv 2402.03300), section 4.1.3. A step's last token
    has part in its own step's reward. The sum grows with the steps that are still to come.

    Args:
        step_rewards: [P, G, K]; NaN where a reply has no such step, or the step no reward.
        step_ends: [P, G, K] of int64: each step's last token. Read only beside a reward; -1 for a
            step before the first token, whose reward is in the statistics alone.
        tokens: T.
        std: as for :func:`group_advantages`, of R.
        eps: the same.

    Returns:
        [P, G, T]. Exactly zero for groups of fewer than two step rewards or of equal ones,
        and past a reply's last step.

    Raises:
        ValueError: the shapes differ, or a step with a reward ends outside [-1, T).
    """
    if step_rewards.dim() != 3 or step_ends.shape != step_rewards.shape:
        raise ValueError(
            "step_rewards and step_ends must both be [P, G, K], got "
            f"{tuple(step_rewards.shape)} and {tuple(step_ends.shape)}"
        )
    scored = ~step_rewards.isnan()
    ends = step_ends.masked_fill(~scored, -1)
    if ends.numel() and not (int(ends.min()) >= -1 and int(ends.max()) < tokens):
        wrong = next(int(end) for end in ends.flatten() if not -1 <= end < tokens)
        raise ValueError(
            f"step_ends must be in [-1, {tokens}), the tokens of a reply, got {wrong}: "
            "a step's end is the index of its last token"
        )
    normalised = group_advantages(step_rewards.flatten(1), std=std, eps=eps)  # [P, G * K]
    at_ends = step_rewards.new_zeros(*step_rewards.shape[:2], 1 + tokens)  # the first for -1
    at_ends.scatter_add_(2, 1 + ends, normalised.view_as(step_rewards))
    return _from_here_on(at_ends[..., 1:])


def _from_here_on(values: Tensor) -> Tensor:
    """Sum each [..., T] over its own and all later places."""
    return torch.flip(torch.flip(values, (-1,)).cumsum(-1), (-1,))


def difficulty_weights(
    advantages: Tensor,
    correct: Tensor,
    *,
    easy: float = 0.4,
    hard: float = 1.5,
    middle: float = 0.75,
    slope: float = 10.0,
) -> Tensor:
    """What each advantage is multiplied by: GRPO-LEAD (arXiv 2504.09696).

    ``w(s) = easy + (hard - easy) / (1 + exp(slope (s - middle)))``, where s is the share of the
    group's replies that are right: ``w(s)`` for positive advantages, ``w(1 - s)`` for the others. A
    rare right reply counts for more than one of many, and so does a rare wrong one. The defaults
    are those of its authors' code.

    Args:
        advantages: [P, G].
        correct: [P, G], 1 where a reply is right, 0 where it is wrong; NaN where it was not judged,
            which is not in the share.
        easy: weight that is approached where all replies are right.
        hard: weight that is approached where none is.
        middle: share where the weight is halfway.
        slope: how fast it changes there.

    Returns:
        [P, G].

    Raises:
        ValueError: the shapes differ.

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
        rewards: [P, G], the total reward of each reply; NaN where there is none.
        objective: its ``advantage`` and what belongs to it. ``process`` is not for outcomes:
            :func:`process_advantages`.
        lengths: [P, G], tokens that the policy wrote; read by ``opo``.
        named: rewards by name, each [P, G]; read by ``mo_grpo`` and ``gdpo``. A reply without
            a total reward has none of these either.
        correct: [P, G], 1 where a reply is right, 0 where it is wrong, NaN where it was not judged;
            read where ``hard_weight`` is not ``easy_weight``.

    Returns:
        [P, G].

    Raises:
        ValueError: what the objective reads is missing, or a weight is of no reward.
    """
    advantages = _compared(rewards, objective, lengths, named)
    if not objective.weighs_difficulty:
        return advantages
    if correct is None:
        raise ValueError(
            f"hard_weight={objective.hard_weight} needs to know which replies are right, got None"
        )
    return advantages * difficulty_weights(
        advantages,
        correct,
        easy=objective.easy_weight,
        hard=objective.hard_weight,
        middle=objective.difficulty_middle,
        slope=objective.difficulty_slope,
    )


def _compared(
    rewards: Tensor,
    objective: Objective,
    lengths: Tensor | None,
    named: Mapping[str, Tensor] | None,
) -> Tensor:
    how, eps = objective.advantage, objective.advantage_eps
    if how == "group":
        return group_advantages(rewards, std=objective.advantage_std, eps=eps)
    if how == "leave_one_out":
        return leave_one_out(rewards)
    if how == "reinforce_pp" or how == "reinforce_pp_baseline":
        return reinforce_pp(rewards, baseline=how == "reinforce_pp_baseline", eps=eps)
    if how == "opo":
        if lengths is None:
            raise ValueError("advantage='opo' needs the replies' lengths, got None")
        return opo(rewards, lengths)
    if how == "reward":
        return rewards.nan_to_num(0.0)
    if how == "process":
        raise ValueError("advantage='process' compares steps: use process_advantages")
    stacked, weights = _stack(rewards, named, objective)
    several = mo_grpo if how == "mo_grpo" else gdpo
    std = cast(Literal["population", "sample"], objective.advantage_std)
    return several(stacked, weights, std=std, eps=eps)


def _stack(
    rewards: Tensor, named: Mapping[str, Tensor] | None, objective: Objective
) -> tuple[Tensor, Tensor]:
    """Named rewards [K, P, G] and their weights [K], in the order of their names."""
    if not named:
        raise ValueError(
            f"advantage={objective.advantage!r} needs rewards by name, got {named!r}: "
            "an environment with named parts gives them"
        )
    given = objective.reward_weights or {}
    unknown = sorted(set(given) - set(named))
    if unknown:
        raise ValueError(
            f"reward_weights names {unknown}, which the environment does not give: "
            f"it gives {sorted(named)}"
        )
    names = sorted(named)
    stacked = torch.stack([named[name].masked_fill(rewards.isnan(), torch.nan) for name in names])
    return stacked, stacked.new_tensor([given.get(name, 1.0) for name in names])
