"""Log-probabilities of a batch's replies under a model, by the fastest way that is right for it.

Three forwards, one meaning:

- ``full``: the model's own logits. Right for every causal model, and the yardstick.
- ``padded``: the model's hidden states and its head in chunks; no logits are kept.
- ``shared``: as ``padded``, and each prompt is computed once for all its replies.

Models differ in ways that no list can hold (logit caps and scales, sliding windows, state that
is no attention), so :func:`choose_forward` compares each with the yardstick before a run.

Shapes: P prompts, G replies to each, B = P * G, S prompt tokens, T reply tokens, L = S + T.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .batch import Batch, Row, longest_row, require_positions
from .logprob import chosen_logprobs
from .precision import computed_dtype, computing
from .prefix import shared_hidden
from .recompute import checkpointed
from .wrapped import causal_lm

Forward = Callable[[Any, Batch, float], tuple[Tensor, Tensor]]
"""``(model, batch, temperature)`` to log-probabilities and entropies [P, G, T], 0 off the mask."""

_log = logging.getLogger(__name__)


def full_forward(model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
    """Through the model's own logits, [B, L, V] of them."""
    _require_positions(model, batch)
    ids, rows, columns, chosen = _joined(batch)
    with checkpointed(model):
        logits = causal_lm(model)(input_ids=ids, use_cache=False).logits[rows, columns]
    logprobs = (logits.to(_wide(logits)) / temperature).log_softmax(-1)
    entropy = torch.special.entr(logprobs.exp()).sum(-1)
    return _scatter(batch, logprobs.gather(1, chosen[:, None])[:, 0], entropy)


def padded_forward(model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
    """Through the hidden states that predict a chosen token, and only those."""
    return _head(model, batch, padded_hidden(model, batch), batch.replies[batch.mask], temperature)


def padded_hidden(model: Any, batch: Batch) -> Tensor:
    """Hidden states that predict the policy's tokens, in the order of the batch's mask. [N, D]."""
    _require_positions(model, batch)
    ids, rows, columns, _ = _joined(batch)
    body = causal_lm(model).base_model
    with checkpointed(model), computing(model):
        hidden: Tensor = body(input_ids=ids, use_cache=False).last_hidden_state
    return hidden[rows, columns]


def shared_forward(model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
    """As :func:`padded_forward`, with each prompt computed once for its group."""
    _require_positions(model, batch)
    hidden = shared_hidden(model, batch)  # [N, D]
    return _head(model, batch, hidden, batch.replies[batch.mask], temperature)


FORWARDS: dict[str, Forward] = {
    "shared": shared_forward,
    "padded": padded_forward,
    "full": full_forward,
}


@torch.no_grad()
def choose_forward(
    model: Any, *, among: Sequence[str] = ("shared", "padded"), tolerance: float | None = None
) -> tuple[str, Forward]:
    """The fastest forward that agrees with the model's own logits on a small made-up batch.

    Args:
        model: a causal LM, in the dtype and on the device it is trained in.
        among: names of those to try, best first, before ``full``.
        tolerance: largest difference of a log-probability, in nats. By default 1e-3, and 0.1
            for models in half precision.

    Returns:
        Its name, a key of ``FORWARDS``, and the function.
    """
    if tolerance is None:
        tolerance = 1e-3 if _wide_enough(model) else 0.1
    if _caps_logits(model):  # too little to show at first, and more as the logits grow
        return "full", full_forward
    batch = _probe(model)
    wanted, _ = full_forward(model, batch, 1.0)
    for name in among:
        forward = FORWARDS[name]
        try:
            found, _ = forward(model, batch, 1.0)
        except Exception as error:  # whatever a model's modules raise, the yardstick still works
            _log.info("forward %r does not fit %s: %s", name, type(model).__name__, error)
            continue
        difference = float((found - wanted).abs().max())
        if difference <= tolerance:
            return name, forward
        _log.info("forward %r is off by %.2g on %s", name, difference, type(model).__name__)
    return "full", full_forward


def _caps_logits(model: Any) -> bool:
    """Whether the model bends its logits after the head, as Gemma 2 does."""
    settings = model.config.get_text_config().to_dict()
    return any("logit" in k and "cap" in k and "attn" not in k and v for k, v in settings.items())


def _probe(model: Any) -> Batch:
    """Two groups that differ in prompt length, reply lengths and number of replies."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = int(model.config.get_text_config().vocab_size)

    def ids(n: int) -> tuple[int, ...]:
        return tuple(torch.randint(vocabulary, (n,), generator=generator).tolist())

    def rows(prompt: tuple[int, ...], *lengths: int) -> list[Row]:
        return [Row(prompt, ids(n), (True,) * n, (0.0,) * n, (0.0,) * n) for n in lengths]

    groups = [rows(ids(7), 5, 3, 6), rows(ids(4), 6, 1)]
    groups += [rows(ids(length - 2), 6, 1) for length in _boundaries(model)]
    return Batch.of(groups, device=model.device)


def _boundaries(model: Any) -> list[int]:
    """Lengths at which the config says that attention changes: windows and chunks."""
    settings = model.config.get_text_config().to_dict()
    named = {v for k, v in settings.items() if "window" in k or "chunk" in k}
    most = longest_row(model) or 2**14
    return sorted(v for v in named if type(v) is int and 2 < v < most - 4)


def _require_positions(model: Any, batch: Batch) -> None:
    lengths = batch.prompt_lengths[:, None] + batch.reply_lengths
    longest = int(lengths.argmax())
    prompt = int(batch.prompt_lengths[longest // lengths.shape[1]])
    require_positions(causal_lm(model), prompt, int(lengths.max()) - prompt)


def _joined(batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Prompt and reply of each row in one line, padding on the right.

    Under causal attention padding on the right is never looked at, so no mask is needed.

    Returns:
        ids [B', L - 1] of the B' rows that exist, without the last token, which predicts
        nothing; for each of the N chosen tokens its row and the
        column that predicts it; and the chosen tokens [N].
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
    empty = logprobs.new_zeros(batch.mask.shape)
    return (
        empty.masked_scatter(batch.mask, logprobs),
        empty.masked_scatter(batch.mask, entropy),
    )


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _wide_enough(model: Any) -> bool:
    return computed_dtype(model) in (torch.float32, torch.float64)
