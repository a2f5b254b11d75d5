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
    compute: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """``log softmax((hidden @ weight.T + bias) / temperature)`` at the targets, and its entropy.

    Args:
        hidden: [N, D]; gets a gradient.
        weight: [V, D], the output embedding; gets a gradient.
        targets: [N] of int64, in [0, V).
        bias: [V], where the head has one; gets a gradient.
        temperature: above 0.
        chunk_elements: how many logits may exist at a time.
        compute: dtype of the matrix products, where it is not that of ``weight``.

    Returns:
        Log-probabilities [N] and entropies [N] in nats, both float32 (float64 for float64
        inputs). Both carry a gradient; that of the entropies is computed only where it is used.
    """
    rows = max(1, chunk_elements // weight.shape[0])
    found: tuple[Tensor, Tensor] = _ChosenLogprobs.apply(  # type: ignore[no-untyped-call]  # torch
        hidden.to(compute or weight.dtype), weight, bias, targets, temperature, rows
    )
    return found


class _ChosenLogprobs(torch.autograd.Function):
    """The chunks' logits are computed once forward and once again backward, and never kept.

    With p = softmax(z) and H = -sum p log p: d log p[y] / dz = onehot(y) - p, and
    dH / dz = -p (log p + H).
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
        # Where products are computed in less than the weights are kept in.
        cast, cast_bias = weight.to(hidden.dtype), None if bias is None else bias.to(hidden.dtype)
        wide = torch.promote_types(hidden.dtype, torch.float32)
        count = hidden.shape[0]
        logprobs, entropy, normalizer = (hidden.new_empty(count, dtype=wide) for _ in range(3))
        for start in range(0, count, rows):
            part = slice(start, start + rows)
            z = _logits(hidden[part], cast, cast_bias, temperature, wide)
            normalizer[part] = z.logsumexp(-1)
            logprobs[part] = z.gather(1, targets[part, None])[:, 0] - normalizer[part]
            z -= normalizer[part, None]
            entropy[part] = -(z.exp() * _finite(z)).sum(-1)
        ctx.save_for_backward(hidden, weight, bias, targets, normalizer, entropy)
        ctx.temperature, ctx.rows = temperature, rows
        ctx.set_materialize_grads(False)  # None tells that nobody uses the entropies
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, normalizer, entropy = ctx.saved_tensors
        of_logprobs, of_entropy = gradients
        cast, cast_bias = weight.to(hidden.dtype), None if bias is None else bias.to(hidden.dtype)
        wide = normalizer.dtype
        wanted = dict(zip(("hidden", "weight", "bias"), ctx.needs_input_grad, strict=False))
        d_hidden = torch.zeros_like(hidden) if wanted["hidden"] else None
        d_weight = torch.zeros_like(weight, dtype=wide) if wanted["weight"] else None
        d_bias = torch.zeros_like(bias, dtype=wide) if wanted["bias"] else None
        for start in range(0, hidden.shape[0], ctx.rows):
            part = slice(start, start + ctx.rows)
            z = _logits(hidden[part], cast, cast_bias, ctx.temperature, wide)
            z -= normalizer[part, None]  # log p
            upward: Tensor | float = 0.0  # what of the gradient is p times something
            if of_entropy is not None:
                upward = (_finite(z) + entropy[part, None]).mul_(-of_entropy[part, None])
            d_z = z.exp_()
            if of_logprobs is not None:
                upward = upward - of_logprobs[part, None]
            d_z *= upward
            if of_logprobs is not None:
                d_z.scatter_add_(1, targets[part, None], of_logprobs[part, None])
            if ctx.temperature != 1.0:
                d_z /= ctx.temperature
            if d_bias is not None:
                d_bias += d_z.sum(0)
            if d_hidden is not None:
                d_hidden[part] = d_z.to(hidden.dtype) @ cast
            if d_weight is not None:
                d_weight.addmm_(d_z.t(), hidden[part].to(wide))
        d_bias = None if d_bias is None else d_bias.to(bias.dtype)
        d_weight = None if d_weight is None else d_weight.to(weight.dtype)
        return d_hidden, d_weight, d_bias, None, None, None


def _finite(log_p: Tensor) -> Tensor:
    """A logit of minus infinity has p = 0, and p log p must not be 0 times infinity."""
    return log_p.clamp(min=torch.finfo(log_p.dtype).min)


def _logits(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, temperature: float, dtype: torch.dtype
) -> Tensor:
    z = torch.nn.functional.linear(hidden, weight, bias).to(dtype)
    return z if temperature == 1.0 else z / temperature
