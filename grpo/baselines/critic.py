"""The critic of PPO: what reward is to be expected before each token.

Shapes: P prompts, G replies to each, T reply tokens, D hidden size, N tokens of the policy.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..arithmetic.gae import value_loss
from ..model.batch import Batch, Row, by_prompt, micro_batches
from ..model.forward import padded_hidden
from ..model.precision import computed_dtype, set_autocast
from ..model.prefix import shared_hidden
from ..model.wrapped import causal_lm


class Critic(nn.Module):
    """A copy of a causal LM's body with one output in place of its vocabulary.

    The output begins at 0 for every token, so that the first advantages are the rewards.

    Args:
        model: what is copied; it stays as it is.

    Attributes:
        shared: compute each prompt once for all its replies. For models whose
            :func:`~assay.grpo.choose_forward` is ``shared``.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        plain = causal_lm(model)
        self.body = copy.deepcopy(plain.base_model).eval().requires_grad_(True)
        size = plain.config.get_text_config().hidden_size
        weight = next(self.body.parameters())
        if computed_dtype(model) != weight.dtype:
            set_autocast(self.body, computed_dtype(model))
        self.head = nn.Linear(size, 1, device=weight.device, dtype=weight.dtype)
        for parameter in self.head.parameters():
            nn.init.zeros_(parameter)
        self.shared = False

    @property
    def device(self) -> torch.device:
        """Where it is."""
        found: torch.device = self.head.weight.device
        return found

    def forward(self, batch: Batch) -> Tensor:
        """Values [P, G, T] before each token that the policy wrote, in float32; 0 elsewhere."""
        hidden = (shared_hidden if self.shared else padded_hidden)(self.body, batch)  # [N, D]
        values = self.head(hidden.to(self.head.weight.dtype))[:, 0].float()
        placed: Tensor = values.new_zeros(batch.mask.shape).masked_scatter(batch.mask, values)
        return placed


@torch.no_grad()
def read_values(critic: Critic, rows: Sequence[Row], *, budget: int) -> list[tuple[float, ...]]:
    """Values before each reply token of rows, in their order; 0.0 where the policy wrote none.

    Args:
        critic: what reads.
        rows: in any order.
        budget: padded tokens of one forward pass.
    """
    found: dict[int, tuple[float, ...]] = {}
    for groups in micro_batches(by_prompt(rows), budget=budget):
        values = critic(Batch.of(groups, device=critic.device)).tolist()
        for group, of_group in zip(groups, values, strict=True):
            for row, of_row in zip(group, of_group, strict=False):
                found[id(row)] = tuple(of_row[: len(row.reply)])
    return [found[id(row)] for row in rows]


def value_gradient(
    critic: Critic, rows: Sequence[Row], *, clip: float | None, budget: int
) -> float:
    """Add the gradient of :func:`~assay.grpo.arithmetic.gae.value_loss` over rows to the critic's.

    Args:
        critic: whose parameters' ``grad`` is added to.
        rows: all rows of the optimizer step, with their values and returns.
        clip: see the loss.
        budget: padded tokens of one forward and backward pass; it does not change the gradient.

    Returns:
        The loss, a mean over tokens.
    """
    denominator = float(max(1, sum(row.length for row in rows)))
    total = 0.0
    for groups in micro_batches(by_prompt(rows), budget=budget):
        batch = Batch.of(groups, device=critic.device)
        values = critic(batch).flatten(0, 1)
        old, returns = (_table(groups, name, batch.mask) for name in ("values", "returns"))
        loss = value_loss(
            values, old, returns, batch.mask.flatten(0, 1), denominator=denominator, clip=clip
        )
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        total += float(loss.detach())
    return total


def _table(groups: Sequence[Sequence[Row]], name: str, like: Tensor) -> Tensor:
    """A field of rows where the batch has them: [P * G, T] of float32."""
    table = torch.zeros(like.shape)
    for p, group in enumerate(groups):
        for g, row in enumerate(group):
            table[p, g, : len(row.reply)] = torch.tensor(getattr(row, name))
    return table.flatten(0, 1).to(like.device)
