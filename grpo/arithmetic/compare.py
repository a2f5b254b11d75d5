"""From an objective and rewards to advantages: which function, with which options.

Shapes: P prompts, G replies to each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

import torch
from torch import Tensor

from .advantage import group_advantages, leave_one_out, opo
from .difficulty import difficulty_weights
from .objective import Objective, weighs_difficulty
from .several_rewards import gdpo, mo_grpo
from .whiten import reinforce_pp


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
            :func:`~.process.process_advantages`.
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
    if not weighs_difficulty(objective):
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
