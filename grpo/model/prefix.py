"""A forward pass in which replies share their prompt's computation, and nothing is padding.

A group's G replies repeat their prompt. Here the tokens of all prompts and then of all replies
lie end to end in a single row, each once. Only attention looks at other tokens, so only
attention has to know of the layout: it is given to transformers as one more attention
implementation, and the model's modules stay as they are.

Shapes: P prompts, G replies to each, S prompt tokens, T reply tokens, N tokens in the row, H
heads, K key-value heads, E head size, D hidden size.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from .batch import Batch
from .llama import hidden_states, trains_by_weights
from .precision import computing
from .prefix_attention import Layout, Table, attend
from .recompute import attention, checkpointed
from .wrapped import causal_lm

NAME = "assay_shared_prefix"


def shared_hidden(model: Any, batch: Batch) -> Tensor:
    """Hidden states that predict the policy's tokens, in the order of the batch's mask. [M, D].

    Raises:
        ValueError: the model's attention has something that this one does not (a sliding
            window, a cap, sinks, dropout), or never asked for the layout.
    """
    p, g, t = batch.replies.shape
    device = batch.prompts.device
    fed = (batch.reply_lengths - 1).clamp(min=0)  # a reply's last token predicts nothing
    steps = torch.arange(max(1, t - 1), device=device)
    in_prompt = torch.arange(batch.prompts.shape[1], device=device) < batch.prompt_lengths[:, None]
    in_reply = steps < fed[..., None]  # [P, G, T - 1]
    replies = batch.replies[..., : len(steps)]
    ids = torch.cat([batch.prompts[in_prompt], replies[in_reply]])
    before = batch.prompt_lengths[:, None, None]
    positions = torch.cat(
        [
            torch.arange(in_prompt.shape[1], device=device).expand_as(in_prompt)[in_prompt],
            (before + steps).expand_as(in_reply)[in_reply],
        ]
    )
    layout = Layout(Table.of(in_prompt), Table.of(in_reply.flatten(0, 1)), replies=g)
    hidden = _run(model, ids, positions, layout)  # [P + fed tokens of replies, D]
    if not layout.asked:
        raise ValueError("the model's attention never asked for the layout: it has one of its own")
    # The prompt's last token predicts a reply's first one, and each token of it the next.
    starts = p + fed.flatten().cumsum(0).view(p, g) - fed
    sources = starts[..., None] + torch.arange(-1, t - 1, device=device)  # [P, G, T]
    sources[..., 0] = torch.arange(p, device=device)[:, None]
    return hidden.index_select(0, sources[batch.mask])


def _run(model: Any, ids: Tensor, positions: Tensor, layout: Layout) -> Tensor:
    """The model's last hidden states of the tokens of :meth:`Layout.predicting`."""
    if trains_by_weights(model):
        return hidden_states(model, ids, positions, layout)
    plain = causal_lm(model)
    with attention(plain.config.get_text_config(), NAME), checkpointed(model), computing(model):
        output = plain.base_model(
            input_ids=ids[None],
            position_ids=positions[None],
            use_cache=False,
            shared_prefix=layout,
        )
    hidden: Tensor = output.last_hidden_state[0, layout.predicting()]
    return hidden


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    shared_prefix: Layout | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Prompt tokens look at the prompt; a reply's tokens at the prompt and their own reply.

    Args:
        module: unused; transformers passes it.
        query: [1, H, N, E].
        key: [1, K, N, E].
        value: as ``key``.
        attention_mask: unused; the layout says who sees whom.
        scaling: of the products, E ** -0.5 by default.
        dropout: must be 0.
        shared_prefix: passed through the model by :func:`shared_hidden`.
        others: anything set among them is something that this attention lacks.

    Returns:
        [1, N, H, E], and no weights.
    """
    unknown = [k for k in ("sliding_window", "softcap", "s_aux") if others.get(k) is not None]
    if shared_prefix is None or dropout or unknown:
        raise ValueError(f"attention cannot share a prefix: {unknown or 'dropout, or no layout'}")
    shared_prefix.asked.append(True)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:  # grouped-query attention
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    if torch.is_autocast_enabled(query.device.type):
        dtype = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    rows = (x[0].transpose(0, 1) for x in (query, key, value))  # [N, H, E]
    return attend(*rows, layout=shared_prefix, scale=scaling)[None], None


AttentionInterface.register(NAME, _attend)
