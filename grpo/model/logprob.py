"""Log-probabilities of chosen tokens from hidden states, without keeping any logits.

Shapes: N tokens, D hidden size, V vocabulary. The logits of N tokens would take N x V x 4
bytes, and their softmax and its gradient as much again; here a chunk of them exists at a time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_ELEMENTS = 1 << 22
"""Logits that exist at a time: 16 MiB of float32."""


def chosen_logprobs(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    *,
    bias: Tensor | None = None,
    temperature: float = 1.0,
    chunk_elements: int = CHUNK_ELEMENTS,
) -> tuple[Tensor, Tensor]:
    """``log softmax((hidden @ weight.T + bias) / temperature)`` at the targets, and its entropy.

    Args:
        hidden: [N, D]; gets a gradient.
        weight: [V, D], the output embedding; gets a gradient.
        targets: [N] of int64, in [0, V).
        bias: [V], where the head has one; gets a gradient.
        temperature: above 0.
        chunk_elements: how many logits may exist at a time.

    Returns:
        Log-probabilities [N] and entropies [N] in nats, both float32 (float64 for float64
        inputs). The entropies carry no gradient.
    """
    rows = max(1, chunk_elements // weight.shape[0])
    found: tuple[Tensor, Tensor] = _ChosenLogprobs.apply(  # type: ignore[no-untyped-call]  # torch
        hidden, weight, bias, targets, temperature, rows
    )
    return found


class _ChosenLogprobs(torch.autograd.Function):
    """The chunks' logits are computed once forward and once again backward, and never kept.

    With p = softmax(z): d log p[y] / dz = onehot(y) - p.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(hidden.dtype, torch.float32)
        count = hidden.shape[0]
        logprobs, entropy, normalizer = (hidden.new_empty(count, dtype=wide) for _ in range(3))
        for start in range(0, count, rows):
            part = slice(start, start + rows)
            z = _logits(hidden[part], weight, bias, temperature, wide)
            normalizer[part] = z.logsumexp(-1)
            logprobs[part] = z.gather(1, targets[part, None])[:, 0] - normalizer[part]
            z -= normalizer[part, None]
            entropy[part] = -(z.exp() * z.clamp(min=torch.finfo(wide).min)).sum(-1)
        ctx.save_for_backward(hidden, weight, bias, targets, normalizer)
        ctx.temperature, ctx.rows = temperature, rows
        ctx.mark_non_differentiable(entropy)
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, normalizer = ctx.saved_tensors
        wide = normalizer.dtype
        d_hidden = torch.empty_like(hidden)
        d_weight = torch.zeros_like(weight, dtype=wide)
        d_bias = None if bias is None else torch.zeros_like(bias, dtype=wide)
        for start in range(0, hidden.shape[0], ctx.rows):
            part = slice(start, start + ctx.rows)
            scale = gradients[0][part, None] / ctx.temperature
            z = _logits(hidden[part], weight, bias, ctx.temperature, wide)
            d_z = (z - normalizer[part, None]).exp_().mul_(-scale)
            d_z.scatter_add_(1, targets[part, None], scale)
            if d_bias is not None:
                d_bias += d_z.sum(0)
            d_hidden[part] = d_z.to(weight.dtype) @ weight
            d_weight.addmm_(d_z.t(), hidden[part].to(wide))
        d_bias = None if d_bias is None else d_bias.to(bias.dtype)
        return d_hidden, d_weight.to(weight.dtype), d_bias, None, None, None


def _logits(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, temperature: float, dtype: torch.dtype
) -> Tensor:
    z = torch.nn.functional.linear(hidden, weight, bias).to(dtype)
    return z if temperature == 1.0 else z / temperature
