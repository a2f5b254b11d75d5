"""Groups of episodes made of units that have a log-probability each.

A unit is one choice of the policy: a denoising step of a flow, or an action in an environment (for
language models it is a token, and :class:`~assay.grpo.Learner` trains those). Credit and loss are
the same functions of :mod:`assay.grpo` for all of them.

Shapes: P prompts, G episodes of each, B = P * G episodes, U units of the longest episode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from assay.grpo import Objective
from assay.grpo.advantage import outcome_advantages


@dataclass(frozen=True, slots=True)
class Units:
    """Sampled episodes, prompt by prompt.

    Attributes:
        prompts: [P, ...], what the policy was asked.
        group_size: G.
        outputs: [B, ...], what a scorer judges.
        trace: tensors [B, ...] from which the policy reads the same units again.
        logprobs: [B, U] under the policy that sampled.
        mask: [B, U] of bool, True on the policy's own units: what the environment did, and what
            lies past an episode's end, is False and never trained on.
    """

    prompts: Tensor
    group_size: int
    outputs: Tensor
    trace: Mapping[str, Tensor]
    logprobs: Tensor
    mask: Tensor

    def __post_init__(self) -> None:
        rows = len(self.prompts) * self.group_size
        own = {"outputs": self.outputs, "logprobs": self.logprobs, "mask": self.mask}
        for name, tensor in {**own, **self.trace}.items():
            if len(tensor) != rows:
                raise ValueError(
                    f"{name} must have a row for each of {len(self.prompts)} prompts x "
                    f"{self.group_size} episodes, got {len(tensor)}"
                )
        if self.mask.dtype != torch.bool or self.mask.shape != self.logprobs.shape:
            raise ValueError(
                f"mask must be [B, U] = {list(self.logprobs.shape)} of bool, got "
                f"{list(self.mask.shape)} of {self.mask.dtype}"
            )

    def of_prompts(self, chosen: Tensor) -> Units:
        """Return the whole groups of some prompts, whose indices are given."""
        rows = self.rows_of(chosen)
        return Units(
            self.prompts[chosen],
            self.group_size,
            self.outputs[rows],
            {name: tensor[rows] for name, tensor in self.trace.items()},
            self.logprobs[rows],
            self.mask[rows],
        )

    def rows_of(self, chosen: Tensor) -> Tensor:
        """Return the indices of the episodes of some prompts."""
        return (chosen[:, None] * self.group_size + torch.arange(self.group_size)).flatten()


class UnitPolicy(Protocol):
    """What can be trained on units: a ``torch.nn.Module`` with these methods.

    A policy whose KL divergence from another has a closed form also has ``read_with_kl(units,
    reference)``: :meth:`read`, and KL(self || reference) at each unit with a gradient, [B, U]
    each, for the same pass through a network gives both.
    """

    def sample(self, prompts: Tensor, group_size: int, generator: torch.Generator) -> Units:
        """Sample a group for each prompt, without gradients; the generator decides everything."""
        ...

    def read(self, units: Units) -> Tensor:
        """Log-probabilities of the units under the policy as it is now: [B, U], with a gradient."""
        ...

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Return the trained parameters."""
        ...


Scorer = Callable[[Units], Mapping[str, Tensor]]
"""Named rewards of each episode, [P, G]; NaN if it has none through no fault of its own."""

Credit = Callable[[Units, Mapping[str, Tensor], Objective], Tensor]
"""From named rewards to an advantage of each unit, [B, U]."""


def outcome_credit(units: Units, named: Mapping[str, Tensor], objective: Objective) -> Tensor:
    """Give every unit of an episode the episode's advantage over its group.

    Args:
        units: what was sampled.
        named: rewards by name, [P, G]; their sum is compared, or each by itself if
            ``objective.advantage`` says so.
        objective: how.

    Returns:
        [B, U]; 0 for an episode without a reward.
    """
    table = {name: rewards.double() for name, rewards in named.items()}
    total = torch.stack(list(table.values())).sum(dim=0)
    lengths = units.mask.sum(dim=1).double().view_as(total)
    advantages = outcome_advantages(total, objective, lengths=lengths, named=table)
    spread: Tensor = advantages.nan_to_num(0.0).flatten()[:, None].expand(units.mask.shape)
    return spread


def clamped(limit: float, credit: Credit = outcome_credit) -> Credit:
    """Bound the advantages that another credit gives: Flow-GRPO's and DanceGRPO's codes by 5.

    Raises:
        ValueError: ``limit``, the largest absolute value, is not above 0.
    """
    if not limit > 0:
        raise ValueError(f"limit must be above 0, got {limit!r}")
    return lambda units, named, objective: credit(units, named, objective).clamp(-limit, limit)
