"""One optimizer step: the gradient of the GRPO loss over some rows, within a token budget.

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


def accumulate_gradient(
    model: Any,
    forward: Forward,
    rows: Sequence[Row],
    config: GRPOConfig,
    *,
    reference: Any | None = None,
) -> dict[str, float]:
    """Add the gradient of the loss over ``rows`` to the model's.

    Rows of advantage 0 are left out where ``beta`` is 0: their gradient is exactly zero, and
    the denominator counts them all the same.

    Args:
        model: whose parameters' ``grad`` is added to.
        forward: see :mod:`assay.grpo.model.forward`.
        rows: all rows of the optimizer step.
        config: its loss, clip, beta, temperature and token budget.
        reference: the model to stay close to; needed where ``beta`` is not 0.

    Returns:
        Sums for the log: ``loss`` (already a mean), and of each token that was computed
        ``tokens``, ``ratio``, ``clipped``, ``entropy`` and, with a reference, ``kl``.
    """
    lengths = torch.tensor([row.length for row in rows])
    denominator = count(lengths, average=config.loss, max_tokens=config.max_new_tokens)
    sums: dict[str, float] = {}
    useful = [row for row in rows if row.advantage != 0.0 or config.beta]
    for groups in micro_batches(by_prompt(useful), budget=config.tokens_per_batch):
        batch = Batch.of(groups, device=model.device)
        logprobs, entropy = forward(model, batch, config.temperature)
        there = _reference_logprobs(reference, forward, batch, config)
        flat = _flat(logprobs), _flat(batch.old_logprobs), batch.advantages.flatten()
        mask = _flat(batch.mask)
        loss = grpo_loss(
            *flat,
            mask,
            denominator=denominator,
            average=config.loss,
            reference_logprobs=there,
            beta=config.beta,
            clip=config.clip,
            clip_high=config.clip_high,
        )
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        of_tokens = token_sums(
            *flat, mask, clip=config.clip, clip_high=config.clip_high, reference_logprobs=there
        )
        add(sums, {"loss": float(loss.detach()), "entropy": float(entropy.sum()), **of_tokens})
    return sums


def add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    """Add numbers to those of the same name."""
    for name, value in more.items():
        sums[name] = sums.get(name, 0.0) + value


def _reference_logprobs(
    reference: Any | None, forward: Forward, batch: Batch, config: GRPOConfig
) -> Tensor | None:
    if reference is None:
        return None
    with torch.no_grad():
        logprobs, _ = forward(reference, batch, config.temperature)
    return _flat(logprobs)


def _flat(x: Tensor) -> Tensor:
    """[P, G, T] to [B, T]."""
    return x.flatten(0, 1)
