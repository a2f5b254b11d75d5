"""One optimizer step: the gradient of the loss over some rows, within a token budget.

Shapes: B rows, P prompts, G replies to each, T reply tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .arithmetic.loss import count, grpo_loss, token_sums
from .config import GRPOConfig
from .model.batch import Batch, Row, by_prompt, micro_batches
from .model.forward import Forward
from .sampling.random_numbers import derive_seed


def minibatches(rows: Sequence[Row], config: GRPOConfig, step: int) -> list[list[Row]]:
    """The rows of each optimizer step: mu passes, each cut into minibatches of whole groups."""
    groups = by_prompt(rows)
    parts: list[list[Row]] = []
    for iteration in range(config.num_iterations):
        seed = derive_seed(config.seed, step, iteration)
        order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
        for chosen in order.chunk(config.minibatches):
            parts.append([row for i in sorted(chosen.tolist()) for row in groups[i]])
    return parts


def teaches(rows: Sequence[Row], config: GRPOConfig) -> bool:
    """Whether anything in the loss of these rows has a gradient."""
    return bool(config.beta) or any(row.teaches for row in rows)


def accumulate_gradient(
    model: Any, forward: Forward, rows: Sequence[Row], config: GRPOConfig
) -> dict[str, float]:
    """Add the gradient of the loss over ``rows`` to the model's.

    Rows of advantage 0 are left out where ``beta`` is 0: their gradient is exactly zero, and
    the denominator counts them all the same.

    Args:
        model: whose parameters' ``grad`` is added to.
        forward: see :mod:`assay.grpo.model.forward`.
        rows: all rows of the optimizer step; where ``beta`` is not 0, with their reference.
        config: its loss, clip, beta, temperature and token budget.

    Returns:
        Sums for the log: ``loss`` (already a mean), and of each token that was computed
        ``tokens``, ``ratio``, ``clipped``, ``entropy`` and, with a reference, ``kl``.
    """
    lengths = torch.tensor([row.length for row in rows])
    denominator = count(lengths, average=config.loss, max_tokens=config.max_new_tokens)
    sums: dict[str, float] = {}
    useful = [row for row in rows if row.teaches or config.beta]
    for groups in micro_batches(by_prompt(useful), budget=config.tokens_per_batch):
        batch = Batch.of(groups, device=model.device)
        logprobs, entropy = forward(model, batch, config.temperature)
        reference = None if batch.reference is None else _flat(batch.reference)
        flat = _flat(logprobs), _flat(batch.old_logprobs), _flat(batch.advantages)
        mask = _flat(batch.mask)
        loss = grpo_loss(
            *flat,
            mask,
            denominator=denominator,
            average=config.loss,
            reference_logprobs=reference,
            beta=config.beta,
            clip=config.clip,
            clip_high=config.clip_high,
        )
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        of_tokens = token_sums(
            *flat, mask, clip=config.clip, clip_high=config.clip_high, reference_logprobs=reference
        )
        add(
            sums,
            {"loss": float(loss.detach()), "entropy": float(entropy.detach().sum()), **of_tokens},
        )
    return sums


def add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    """Add numbers to those of the same name."""
    for name, value in more.items():
        sums[name] = sums.get(name, 0.0) + value


def update_metrics(sums: dict[str, float], norms: list[float], rate: float) -> dict[str, float]:
    """Means over tokens and optimizer steps; NaN where no step was taken."""
    tokens = sums.get("tokens", 0.0)
    updates = len(norms)
    nan = float("nan")
    row = {"lr": rate, "updates": updates, "tokens/trained": tokens}
    row["loss"] = sums["loss"] / updates if updates else nan
    row["grad_norm"] = sum(norms) / updates if updates else nan
    for name, key in (("ratio", "ratio"), ("clipped", "clip_fraction"), ("entropy", "entropy")):
        row[key] = sums[name] / tokens if tokens else nan
    if "kl" in sums:
        row["kl"] = sums["kl"] / max(1, tokens)
    return row


def _flat(x: Tensor) -> Tensor:
    """[P, G, T] to [B, T]."""
    return x.flatten(0, 1)
