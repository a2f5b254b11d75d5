"""One optimizer step: the gradient of the loss over some rows, within a token budget.

Shapes: B rows, P prompts, G replies to each, T reply tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .config import GRPOConfig
from .loss import count, merge_sums, policy_loss, policy_sums
from .model.batch import Batch, Row, by_prompt, micro_batches
from .model.forward import Forward
from .run.guards import drift_sums
from .sampling.random_numbers import derive_seed


def minibatches(rows: Sequence[Row], config: GRPOConfig, step: int) -> list[list[Row]]:
    """The rows of each optimizer step: mu passes, each cut into minibatches of whole groups.

    Their numbers of groups differ by one at most. There are as many as the config says, or as
    there are groups of different prompts.
    """
    groups = by_prompt(rows)
    count = min(config.minibatches, len(groups))
    parts: list[list[Row]] = []
    for iteration in range(config.num_iterations):
        seed = derive_seed(config.seed, step, iteration)
        order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
        for chosen in order.tensor_split(count):
            parts.append([row for i in sorted(chosen.tolist()) for row in groups[i]])
    return parts


def teaching(rows: Sequence[Row], config: GRPOConfig) -> list[Row]:
    """The rows whose loss has a gradient: an advantage, or a term that needs none.

    Leaving the others out is exact: their gradient is zero, whatever the weights.
    """
    always = config.penalised or config.entropy_bonus != 0
    return [row for row in rows if row.teaches or (always and any(row.written))]


def denominator_of(rows: Sequence[Row], config: GRPOConfig) -> float:
    """What the loss over all rows of an optimizer step is divided by."""
    lengths = torch.tensor([row.length for row in rows])
    return count(lengths, average=config.loss, max_tokens=config.max_new_tokens)


def accumulate_gradient(
    model: Any,
    forward: Forward,
    rows: Sequence[Row],
    config: GRPOConfig,
    *,
    denominator: float | None = None,
) -> dict[str, float]:
    """Add the gradient of the loss over ``rows`` to the model's.

    Rows without a gradient are left out (:func:`teaching`); the denominator counts them.

    Args:
        model: whose parameters' ``grad`` is added to.
        forward: see :mod:`assay.grpo.model.forward`.
        rows: all rows of the optimizer step; where ``beta`` is not 0, with their reference.
        config: its objective, temperature and token budget.
        denominator: of the loss, where these are not all rows of the optimizer step.

    Returns:
        ``loss`` (already a mean), ``entropy`` (its sum over the tokens that were computed), and
        what :func:`~assay.grpo.policy_sums` gives.
    """
    if denominator is None:
        denominator = denominator_of(rows, config)
    sums: dict[str, float] = {}
    for groups in micro_batches(by_prompt(teaching(rows, config)), budget=config.tokens_per_batch):
        batch = Batch.of(groups, device=model.device)
        logprobs, entropy = forward(model, batch, config.temperature)
        reference = None if batch.reference is None else _flat(batch.reference)
        flat = _flat(logprobs), _flat(batch.old_logprobs), _flat(batch.advantages)
        mask = _flat(batch.mask)
        loss = policy_loss(
            *flat,
            mask,
            config,
            denominator=denominator,
            reference_logprobs=reference,
            entropy=_flat(entropy),
        )
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        found = policy_sums(*flat, mask, config, reference_logprobs=reference)
        own = {"loss": float(loss.detach()), "entropy": float(entropy.detach().sum())}
        merge_sums(sums, own | found | drift_sums(*flat[:2], mask))
    return sums


def update_metrics(sums: dict[str, float], norms: list[float], rate: float) -> dict[str, float]:
    """Means over tokens and optimizer steps; NaN where no step was taken."""
    tokens = sums.get("tokens", 0.0)
    updates = len(norms)
    nan = float("nan")
    row = {"lr": rate, "updates": updates, "tokens/trained": tokens}
    row["loss"] = sums["loss"] / updates if updates else nan
    row["grad_norm"] = sum(norms) / updates if updates else nan
    for name in ("ratio", "entropy"):
        row[name] = sums[name] / tokens if tokens else nan
    for name in ("min_ratio", "max_ratio"):
        row[name] = sums[name] if tokens else nan
    row["clip_fraction"] = nan
    if tokens:
        bounds = ("low", "high", "dual")
        row |= {f"clip_fraction/{b}": sums[f"clipped_{b}"] / tokens for b in bounds}
        row["clip_fraction"] = sum(sums[f"clipped_{b}"] for b in bounds) / tokens
    if tokens and "kl_k3" in sums:
        row |= {"kl": sums["kl_k3"] / tokens, "kl/k1": sums["kl_k1"] / tokens}
    return row


def _flat(x: Tensor) -> Tensor:
    """[P, G, T] to [B, T]."""
    return x.flatten(0, 1)
