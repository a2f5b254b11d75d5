"""Rows of tokens through a model, within a budget of padded tokens.

Shapes: B rows, T reply tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from assay.grpo import Batch, Row, choose_forward
from assay.grpo.batch import group_by_prompt, micro_batches
from assay.grpo.logprobs import Forward


def forward_for(model: Any, rows: Sequence[Row]) -> Forward:
    """Return the forward that fits: a prefix can be shared only if prompts repeat."""
    repeated = len({row.prompt for row in rows}) < len(rows)
    return choose_forward(model, among=("shared", "padded") if repeated else ("padded",))[1]


def likelihood_gradient(
    model: Any,
    forward: Forward,
    rows: Sequence[Row],
    *,
    denominator: float,
    budget: int,
    temperature: float = 1.0,
) -> float:
    """Add the gradient of ``-sum_it A_it log p_it / denominator`` to the model's.

    With A of 1 that is supervised training. DeepSeekMath (arXiv 2402.03300, section 5.2) puts
    all of SFT, RFT, DPO, PPO and GRPO this way: they differ in the coefficient A of the gradient
    of log p.

    The rows' ``advantages`` are the coefficients; the denominator is of the whole optimizer step,
    so that it does not matter how rows are cut.

    Returns:
        The loss.
    """
    total = 0.0
    for part in micro_batches(group_by_prompt(rows), budget=budget):
        batch = Batch.of(part, device=model.device)
        logprobs, _ = forward(model, batch, temperature)
        loss = -(logprobs * batch.advantages).masked_fill(~batch.mask, 0.0).sum() / denominator
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        total += float(loss.detach())
    return total


def table(values: Sequence[Sequence[float]]) -> Tensor:
    """Return rows of values as [B, T] of float64, 0 past their end."""
    width = max((len(v) for v in values), default=0)
    return torch.tensor([[*v, *[0.0] * (width - len(v))] for v in values], dtype=torch.float64)


def cut(values: Tensor, rows: Sequence[Row]) -> list[tuple[float, ...]]:
    """Return what :func:`table` was made of: each row's own values of [B, T]."""
    return [tuple(v[: len(row.reply)]) for v, row in zip(values.tolist(), rows, strict=True)]
