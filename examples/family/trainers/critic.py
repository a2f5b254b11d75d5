"""The critic of PPO: a value before each token, advantages from it, and its own loss.

Shapes: B rows, T reply tokens, L tokens of the longest row.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from assay.grpo import Row
from assay.grpo.batch import micro_batches
from assay.grpo.loss import average_tokens

from .rows import cut, table


def gae(
    rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float = 1.0, lam: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation: arXiv 1506.02438, eq. 16.

    ``A_t = d_t + gamma lam A_t+1`` with ``d_t = r_t + gamma V_t+1 - V_t``, where t + 1 is the
    next token *that the policy wrote*: tokens of the environment between two turns are no
    actions, take no step of gamma or lam, and their values are not read. After the last
    token V is 0: episodes end.

    Args:
        rewards: [B, T]. A reward off the mask counts for the last token before it that is on
            the mask.
        values: [B, T]; anything off the mask.
        mask: [B, T] of bool, True on the tokens the policy wrote.
        gamma: discount for each token, in [0, 1].
        lam: 1 for returns without bootstrapping, in [0, 1]. Outcome rewards of long replies
            need 1: at .95 a reward 100 tokens away is worth .006.

    Returns:
        Advantages and returns (``A + V``, what the values should have been), both [B, T]; zero
        off the mask.
    """
    advantages = torch.zeros_like(values)
    next_value, running, pending = (values.new_zeros(values.shape[0]) for _ in range(3))
    for t in range(values.shape[1] - 1, -1, -1):
        on, value = mask[:, t], values[:, t]
        pending = pending + rewards[:, t]
        delta = pending + gamma * next_value - value
        running = torch.where(on, delta + gamma * lam * running, running)
        next_value = torch.where(on, value, next_value)
        pending = pending.masked_fill(on, 0.0)
        advantages[:, t] = running.masked_fill(~on, 0.0)
    return advantages, (advantages + values).masked_fill(~mask, 0.0)


def value_loss(
    values: Tensor,
    old_values: Tensor,
    returns: Tensor,
    mask: Tensor,
    *,
    denominator: float,
    clip: float | None = 0.2,
) -> Tensor:
    """``mean 1/2 max((V - R)^2, (clip(V, V_old - clip, V_old + clip) - R)^2)``.

    Not in the PPO paper but in its first code (openai/baselines, ppo2): a value that has moved
    further than ``clip`` towards its return has no gradient any more.

    Args:
        values: [B, T], of the critic being trained; has a gradient.
        old_values: [B, T], of the critic that gave the advantages.
        returns: [B, T], from :func:`gae`.
        mask: [B, T] of bool.
        denominator: tokens of the whole optimizer step.
        clip: in the unit of a reward; ``None`` for none.

    Returns:
        A scalar; micro-batches' add up to the step's.
    """
    there = [x.masked_fill(~mask, 0.0) for x in (values, old_values, returns)]
    values, old_values, returns = there
    squares = (values - returns).square()
    if clip is not None:
        near = old_values + (values - old_values).clamp(-clip, clip)
        squares = torch.maximum(squares, (near - returns).square())
    return average_tokens(squares / 2, mask, denominator=denominator, average="dapo")


class Critic(nn.Module):
    """A copy of a causal LM's body with one output in place of its vocabulary.

    The output begins at 0 for every token, so that the first advantages are the rewards. On CUDA
    it computes in bfloat16.

    Args:
        model: what is copied; it stays as it is.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        # Through peft's wrapper: the adapters are in the layers.
        causal = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.body = copy.deepcopy(causal.base_model).eval().requires_grad_(True)
        size = causal.config.get_text_config().hidden_size
        weight = next(self.body.parameters())
        self.head = nn.Linear(size, 1, device=weight.device, dtype=weight.dtype)
        for parameter in self.head.parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Sequence[Row]) -> Tensor:
        """Compute values [B, T] before each token of the policy's, in float32; 0 elsewhere."""
        device = self.head.weight.device
        ids = table([(*row.prompt, *row.reply) for row in rows]).long().to(device)  # [B, L]
        mask = table([row.written for row in rows]).bool().to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            # All padding is on the right, where no causal model looks.
            hidden = self.body(input_ids=ids, use_cache=False).last_hidden_state
            values = self.head(hidden)[:, :, 0].float()  # [B, L]
        first = torch.tensor([len(row.prompt) - 1 for row in rows], device=device)
        places = first[:, None] + torch.arange(mask.shape[1], device=device)
        found: Tensor = values.gather(1, places.clamp(max=values.shape[1] - 1))
        return found.masked_fill(~mask, 0.0)


@torch.no_grad()
def read_values(critic: Critic, rows: Sequence[Row], *, budget: int) -> list[tuple[float, ...]]:
    """Return values before each reply token of rows, ``budget`` padded tokens at a time."""
    found: dict[int, tuple[float, ...]] = {}
    for part in _parts(rows, budget):
        mine = [rows[i] for i in part]
        found |= zip(part, cut(critic(mine), mine), strict=True)
    return [found[i] for i in range(len(rows))]


def value_gradient(
    critic: Critic,
    rows: Sequence[Row],
    values: Sequence[tuple[float, ...]],
    returns: Sequence[tuple[float, ...]],
    *,
    clip: float | None,
    budget: int,
) -> float:
    """Add the gradient of :func:`value_loss` over all rows of an optimizer step to the critic's.

    ``values``, by the critic that gave the advantages, and ``returns`` are of the rows' reply
    tokens; the budget does not change the gradient.

    Returns:
        The loss, a mean over tokens.
    """
    denominator, total = float(max(1, sum(row.length for row in rows))), 0.0
    for part in _parts(rows, budget):
        found = critic([rows[i] for i in part])
        old, wanted = (table([x[i] for i in part]).to(found) for x in (values, returns))
        mask = table([rows[i].written for i in part]).bool().to(found.device)
        loss = value_loss(found, old, wanted, mask, denominator=denominator, clip=clip)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        total += float(loss.detach())
    return total


def _parts(rows: Sequence[Row], budget: int) -> list[list[int]]:
    """Return the numbers of the rows of each pass."""
    number = {id(row): i for i, row in enumerate(rows)}
    cuts = micro_batches([[row] for row in rows], budget=budget)
    return [[number[id(row)] for group in groups for row in group] for groups in cuts]
