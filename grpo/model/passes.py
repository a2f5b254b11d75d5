"""What a model makes of rows that are written already, without a gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from .batch import Batch, Row, by_prompt, micro_batches
from .forward import Forward
from .reference import Reference


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model makes of a row's reply tokens: 0.0 on those the policy did not write.

    Attributes:
        logprobs: log-probability of each, in nats.
        entropies: of the distribution each was drawn from, in nats.
    """

    logprobs: tuple[float, ...]
    entropies: tuple[float, ...]


@torch.no_grad()
def read_rows(
    model: Any, forward: Forward, rows: Sequence[Row], *, temperature: float, budget: int
) -> list[Reading]:
    """Read rows under a model.

    Args:
        model: what reads.
        forward: see :mod:`assay.grpo.model.forward`.
        rows: in any order.
        temperature: divides the logits.
        budget: padded tokens of one forward pass.

    Returns:
        One reading for each row, in order.
    """
    found: dict[int, Reading] = {}
    for groups in micro_batches(by_prompt(rows), budget=budget):
        logprobs, entropy = forward(model, Batch.of(groups, device=model.device), temperature)
        tables = zip(groups, logprobs.tolist(), entropy.tolist(), strict=True)
        for group, of_group, entropies in tables:
            for row, values, more in zip(group, of_group, entropies, strict=False):
                n = len(row.reply)
                found[id(row)] = Reading(tuple(values[:n]), tuple(more[:n]))
    return [found[id(row)] for row in rows]


def with_reference(
    rows: Sequence[Row], reference: Any, forward: Forward, *, temperature: float, budget: int
) -> list[Row]:
    """The rows with their log-probabilities under the reference model.

    Read once for all passes over a rollout. The reference is a :class:`Reference` or a model;
    see :func:`read_rows` for the other arguments.
    """
    reading = reference.reading() if isinstance(reference, Reference) else nullcontext(reference)
    with reading as model:
        read = read_rows(model, forward, rows, temperature=temperature, budget=budget)
    return [replace(row, reference=x.logprobs) for row, x in zip(rows, read, strict=True)]


def reading_drift(rows: Sequence[Row], reading: Sequence[Reading]) -> float:
    """How far what read is from what sampled, in nats a token: see :func:`..run.guards.drift`."""
    far = [
        read - sampled
        for row, x in zip(rows, reading, strict=True)
        for read, sampled, mine in zip(x.logprobs, row.logprobs, row.written, strict=True)
        if mine
    ]
    # Past e^700 a float ends, and expm1 raises.
    return math.fsum(math.expm1(min(d, 700)) - d for d in far) / len(far) if far else math.nan
