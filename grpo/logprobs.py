"""Log-probabilities of a batch's replies under a model, by the fastest way that is right for it.

Three forwards compute the same:

- ``full``: the model's own logits. Right for every causal model, and the yardstick.
- ``padded``: the model's hidden states and its head in chunks; no logits are kept.
- ``shared``: as ``padded``, and each prompt is computed once for all its replies.

Models differ in ways that no list can hold (logit caps and scales, sliding windows, state that
is no attention), so :func:`choose_forward` compares each with the yardstick before a run.

Shapes: P prompts, G replies to each, B = P * G, S prompt tokens, T reply tokens, L = S + T; N
chosen tokens, D hidden size, V vocabulary.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from .batch import Batch, Row, group_by_prompt, longest_row, micro_batches, require_positions
from .model import (
    autocast_context,
    causal_lm,
    computed_dtype,
    first_that_agrees,
    gradient_checkpointing,
)
from .prefix import shared_hidden

_log = logging.getLogger(__name__)
CHUNK_ELEMENTS = 1 << 22
"""Logits that exist at a time on a CPU: 16 MiB of float32, which its caches serve."""
CHUNK_TOKENS = 1024
"""Tokens whose logits exist at a time on an accelerator: 0.6 GiB at Qwen's 151,936 tokens."""


def chosen_logprobs(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    *,
    bias: Tensor | None = None,
    temperature: float = 1.0,
    chunk_elements: int | None = None,
    compute: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """``log softmax((hidden @ weight.T + bias) / temperature)`` at the targets, and its entropy.

    Args:
        hidden: [N, D]; gets a gradient.
        weight: [V, D], the output embedding; gets a gradient.
        targets: [N] of int64, in [0, V).
        bias: [V], where the head has one; gets a gradient.
        temperature: above 0.
        chunk_elements: how many logits may exist at a time; by default ``CHUNK_ELEMENTS`` on a
            CPU, and those of ``CHUNK_TOKENS`` tokens elsewhere.
        compute: dtype of the matrix products, where it is not that of ``weight``.

    Returns:
        Log-probabilities [N] and entropies [N] in nats, both float32 (float64 for float64
        inputs). Both carry a gradient; that of the entropies is computed only where it is used.
    """
    if chunk_elements is None:
        on_cpu = hidden.device.type == "cpu"
        chunk_elements = CHUNK_ELEMENTS if on_cpu else CHUNK_TOKENS * weight.shape[0]
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
        read = _fused(_read_logits, hidden.device.type)
        for start in range(0, count, rows):
            part = slice(start, start + rows)
            z = linear(hidden[part], cast, cast_bias)
            found = read(z, targets[part], temperature)
            logprobs[part], entropy[part], normalizer[part] = found
        ctx.save_for_backward(hidden, weight, bias, targets, normalizer, entropy)
        ctx.temperature, ctx.rows = temperature, rows
        ctx.set_materialize_grads(False)  # an unused entropy then has the gradient None
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, normalizer, entropy = ctx.saved_tensors
        cast, cast_bias = weight.to(hidden.dtype), None if bias is None else bias.to(hidden.dtype)
        wide = normalizer.dtype
        dtype = hidden.dtype if hidden.is_cuda else wide  # of the logits' gradient
        wanted = dict(zip(("hidden", "weight", "bias"), ctx.needs_input_grad, strict=False))
        d_hidden = torch.zeros_like(hidden) if wanted["hidden"] else None
        d_weight = torch.zeros_like(weight, dtype=wide) if wanted["weight"] else None
        d_bias = torch.zeros_like(bias, dtype=wide) if wanted["bias"] else None
        slope = _fused(_slope_of_logits, hidden.device.type)
        for start in range(0, hidden.shape[0], ctx.rows):
            part = slice(start, start + ctx.rows)
            z = linear(hidden[part], cast, cast_bias)
            known = targets[part], normalizer[part], entropy[part]
            of_logprobs, of_entropy = (None if x is None else x[part] for x in gradients)
            d_z = slope(z, *known, of_logprobs, of_entropy, ctx.temperature, dtype)
            if d_bias is not None:
                d_bias += d_z.sum(0, dtype=wide)
            if d_hidden is not None:
                d_hidden[part] = d_z.to(hidden.dtype) @ cast
            if d_weight is not None and d_z.dtype == wide:
                d_weight.addmm_(d_z.t(), hidden[part].to(wide))
            elif d_weight is not None:  # summed in float32, at the speed of bfloat16
                torch.addmm(d_weight, d_z.t(), hidden[part], out_dtype=wide, out=d_weight)
        d_bias = None if d_bias is None else d_bias.to(bias.dtype)
        d_weight = None if d_weight is None else d_weight.to(weight.dtype)
        return d_hidden, d_weight, d_bias, None, None, None


def _read_logits(z: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Read log-probabilities of the targets, entropies and normalizers [n] off logits [n, V].

    It writes into the logits, as new memory costs a CPU as much as the sums.
    """
    log_p = _scaled(z, temperature)
    normalizer = log_p.logsumexp(-1)
    log_p -= normalizer[:, None]
    entropy = -(log_p.exp() * _finite(log_p)).sum(-1)
    return log_p.gather(1, targets[:, None])[:, 0], entropy, normalizer


def _slope_of_logits(
    z: Tensor,
    targets: Tensor,
    normalizer: Tensor,
    entropy: Tensor,
    of_logprobs: Tensor | None,
    of_entropy: Tensor | None,
    temperature: float,
    dtype: torch.dtype,
) -> Tensor:
    """Turn logits into their gradient [n, V], given those of what was read [n]."""
    log_p = _scaled(z, temperature)
    log_p -= normalizer[:, None]
    upward: Tensor | float = 0.0  # what of the gradient is p times something
    if of_entropy is not None:
        upward = (_finite(log_p) + entropy[:, None]).mul_(-of_entropy[:, None])
    d_z = log_p.exp_()
    if of_logprobs is None:
        d_z *= upward
    else:
        d_z *= upward - of_logprobs[:, None]
        if z.is_cuda:  # in one kernel with the rest
            chosen = torch.arange(z.shape[1], device=z.device) == targets[:, None]
            d_z = torch.where(chosen, d_z + of_logprobs[:, None], d_z)
        else:
            d_z.scatter_add_(1, targets[:, None], of_logprobs[:, None])
    if temperature != 1.0:
        d_z /= temperature
    return d_z.to(dtype)


@functools.cache
def _fused(call: Callable[..., Any], device: str) -> Callable[..., Any]:
    """Compile what memory bounds on a GPU into one kernel, if torch finds what it compiles with."""
    if device == "cpu":
        return call
    try:
        torch.compile(torch.sin)(torch.zeros(2, device=device))
    except Exception as error:  # Triton or a C compiler is missing
        why = str(error).partition("\n")[0]
        _log.warning("torch cannot compile for %s, so updates are slower: %s", device, why)
        return call
    return torch.compile(call)


def _finite(log_p: Tensor) -> Tensor:
    """Bound log p from below: p log p must not be 0 times infinity."""
    return log_p.clamp(min=-1e9)  # p is 0 far above it, and a gradient times it is finite


def _scaled(z: Tensor, temperature: float) -> Tensor:
    z = z.to(torch.promote_types(z.dtype, torch.float32))
    return z if temperature == 1.0 else z / temperature


Forward = Callable[[Any, Batch, float], tuple[Tensor, Tensor]]
"""``(model, batch, temperature)`` to log-probabilities and entropies [P, G, T], 0 off the mask."""


def full_forward(model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
    """Through the model's own logits, [B, L, V] of them."""
    _require_positions(model, batch)
    ids, rows, columns, chosen = _joined(batch)
    with gradient_checkpointing(model), autocast_context(model):
        logits = causal_lm(model)(input_ids=ids, use_cache=False).logits[rows, columns]
    wide = torch.promote_types(logits.dtype, torch.float32)
    logprobs = (logits.to(wide) / temperature).log_softmax(-1)
    entropy = -(logprobs.exp() * _finite(logprobs)).sum(-1)
    return _scatter(batch, logprobs.gather(1, chosen[:, None])[:, 0], entropy)


def padded_forward(model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
    """Through the hidden states that predict a chosen token, and only those."""
    _require_positions(model, batch)
    ids, rows, columns, chosen = _joined(batch)
    with gradient_checkpointing(model), autocast_context(model):
        hidden = causal_lm(model).base_model(input_ids=ids, use_cache=False).last_hidden_state
    return _head(model, batch, hidden[rows, columns], chosen, temperature)


def shared_forward(model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
    """Compute as :func:`padded_forward`, with each prompt once for its group."""
    _require_positions(model, batch)
    hidden = shared_hidden(model, batch)  # [N, D]
    return _head(model, batch, hidden, batch.replies[batch.mask], temperature)


FORWARDS = {"shared": shared_forward, "padded": padded_forward, "full": full_forward}


@torch.no_grad()
def choose_forward(
    model: Any, *, among: Sequence[str] = ("shared", "padded")
) -> tuple[str, Forward]:
    """Return the name and function of the fastest forward that agrees with the model's own logits.

    They are compared on a small made-up batch; the model must be in the dtype and on the device
    that it is trained in. ``among`` are the names of those to try, best first, before ``full``.
    """
    # A cap of the logits, as Gemma 2's, is too little to show at first, and more as they grow.
    settings = model.config.get_text_config().to_dict()
    if any("logit" in k and "cap" in k and "attn" not in k and v for k, v in settings.items()):
        return "full", full_forward
    batch = _probe(model)
    tried = {name: FORWARDS[name] for name in among}
    found = first_that_agrees(model, tried, lambda f: [f(model, batch, 1.0)[0]], full_forward)
    return found or "full", FORWARDS[found or "full"]


def _probe(model: Any) -> Batch:
    """Make two groups that differ in prompt length, reply lengths and number of replies."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = int(model.config.get_text_config().vocab_size)

    def ids(n: int) -> tuple[int, ...]:
        return tuple(torch.randint(vocabulary, (n,), generator=generator).tolist())

    def rows(prompt: tuple[int, ...], *lengths: int) -> list[Row]:
        return [Row(prompt, ids(n), (True,) * n, (0.0,) * n, (0.0,) * n) for n in lengths]

    groups = [rows(ids(7), 5, 3, 6), rows(ids(4), 6, 1)]
    # Lengths at which the config says that attention changes: windows and chunks.
    settings, most = model.config.get_text_config().to_dict(), longest_row(model) or 2**14
    named = {v for k, v in settings.items() if "window" in k or "chunk" in k}
    lengths = sorted(v for v in named if type(v) is int and 2 < v < most - 4)
    groups += [rows(ids(length - 2), 6, 1) for length in lengths]
    return Batch.of(groups, device=model.device)


def _require_positions(model: Any, batch: Batch) -> None:
    lengths = batch.prompt_lengths[:, None] + batch.reply_lengths
    longest = int(lengths.argmax())
    prompt = int(batch.prompt_lengths[longest // lengths.shape[1]])
    require_positions(causal_lm(model), prompt, int(lengths.max()) - prompt)


def _joined(batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Lay prompt and reply of each row in one line, padded on the right, where nothing looks.

    Returns:
        ids [B', L - 1] of the B' rows that exist, without the last token, which predicts nothing;
        for each of the N chosen tokens its row and the column that predicts it; and the chosen
        tokens [N].
    """
    p, g, t = batch.replies.shape
    s = batch.prompts.shape[1]
    device = batch.prompts.device
    there = batch.reply_lengths > 0  # [P, G]
    lengths = batch.prompt_lengths[:, None].expand(p, g)[there]  # [B']
    width = int((lengths + batch.reply_lengths[there]).max())
    ids = torch.zeros(lengths.numel(), s + t, dtype=torch.long, device=device)
    ids[:, :s] = batch.prompts[:, None].expand(p, g, s)[there]
    columns = lengths[:, None] + torch.arange(t, device=device)  # [B', T]
    ids.scatter_(1, columns, batch.replies[there])
    mask = batch.mask[there]
    rows = torch.arange(lengths.numel(), device=device)[:, None].expand_as(mask)
    return ids[:, : width - 1], rows[mask], columns[mask] - 1, batch.replies[there][mask]


def _head(
    model: Any, batch: Batch, hidden: Tensor, chosen: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    head = causal_lm(model).get_output_embeddings()
    logprobs, entropy = chosen_logprobs(
        hidden,
        head.weight,
        chosen,
        bias=getattr(head, "bias", None),
        temperature=temperature,
        compute=computed_dtype(model),
    )
    return _scatter(batch, logprobs, entropy)


def _scatter(batch: Batch, logprobs: Tensor, entropy: Tensor) -> tuple[Tensor, Tensor]:
    """Put [N] values back in their places of [P, G, T]; the mask is read in the same order."""
    empty, mask = logprobs.new_zeros(batch.mask.shape), batch.mask
    return empty.masked_scatter(mask, logprobs), empty.masked_scatter(mask, entropy)


@dataclass(frozen=True, slots=True)
class TokenScores:
    """A model's log-probability and entropy at each of a row's reply tokens, in nats.

    0.0 on those that the policy did not write.
    """

    logprobs: tuple[float, ...]
    entropies: tuple[float, ...]


@torch.no_grad()
def read_rows(
    model: Any, forward: Forward, rows: Sequence[Row], *, temperature: float, budget: int
) -> list[TokenScores]:
    """Read rows under a model, in forward passes of at most ``budget`` padded tokens."""
    found: dict[int, TokenScores] = {}
    for groups in micro_batches(group_by_prompt(rows), budget=budget):
        logprobs, entropy = forward(model, Batch.of(groups, device=model.device), temperature)
        tables = zip(groups, logprobs.tolist(), entropy.tolist(), strict=True)
        for group, of_group, entropies in tables:
            for row, values, more in zip(group, of_group, entropies, strict=False):
                n = len(row.reply)
                found[id(row)] = TokenScores(tuple(values[:n]), tuple(more[:n]))
    return [found[id(row)] for row in rows]
