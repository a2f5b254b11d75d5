"""Credit: from judged episodes to rows of tokens, each with its advantage.

Here the named rewards of :mod:`assay.envs` meet the pure functions of
:mod:`assay.grpo.arithmetic.advantage`.

Shapes: P groups, G episodes in the largest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..envs import EpisodeGroup
from .arithmetic.advantage import group_advantages
from .config import GRPOConfig
from .model.batch import Row, row_of


def rows_of(groups: Sequence[EpisodeGroup]) -> list[Row]:
    """Rows of all episodes that have a reward, group by group, with no advantage yet."""
    return [row_of(e) for group in groups for e in group.episodes if e.reward is not None]


def credit(groups: Sequence[EpisodeGroup], rows: Sequence[Row], config: GRPOConfig) -> list[Row]:
    """Give each row the advantage of its tokens.

    Args:
        groups: what was rolled out.
        rows: theirs, from :func:`rows_of`.
        config: how rewards are compared.
    """
    rewards = reward_table(groups)
    advantages = group_advantages(rewards, std=config.advantage_std)
    scored = advantages[~rewards.isnan()].tolist()
    return [
        replace(row, advantages=(advantage,) * len(row.reply))
        for row, advantage in zip(rows, scored, strict=True)
    ]


def reward_table(groups: Sequence[EpisodeGroup]) -> Tensor:
    """Rewards of groups as [P, G] of float64; NaN where there is none."""
    width = max(len(group.episodes) for group in groups)
    nan = float("nan")
    rows = [[nan if r is None else r for r in group.rewards] for group in groups]
    return torch.tensor([row + [nan] * (width - len(row)) for row in rows], dtype=torch.float64)
