"""A forward pass in which the replies to a prompt share its computation.

A group's G replies repeat their prompt. Laid out as ``[prompt | reply 1 | ... | reply G]`` a
group costs S + G x T tokens in place of G x (S + T). Only attention looks at other tokens, so
only attention has to know of the layout: it is given to transformers as one more attention
implementation, and the model's modules stay as they are.

Shapes: P prompts, G replies to each, S prompt tokens, T reply tokens, H heads, K key-value
heads, E head size, D hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from .batch import Batch
from .precision import computing
from .recompute import attention, checkpointed
from .wrapped import causal_lm

NAME = "assay_shared_prefix"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a laid-out row.

    Attributes:
        prompt: S.
        replies: G.
        reply: T.
        mask: [P * G, 1, T, S + T] of bool, what a reply token may look at: its prompt without
            the padding, and its reply so far.
        asked: grows when attention asks for the layout.
    """

    prompt: int
    replies: int
    reply: int
    mask: Tensor
    asked: list[bool]


def shared_hidden(model: Any, batch: Batch) -> Tensor:
    """Hidden states that predict each reply token.

    Returns:
        [P, G, T, D]: at [p, g, t] the state after the prompt and t tokens of the reply.

    Raises:
        ValueError: the model's attention has something that this one does not (a sliding
            window, a cap, sinks, dropout), or never asked for it.
    """
    p, g, t = batch.replies.shape
    s = batch.prompts.shape[1]
    device = batch.prompts.device
    t = max(1, t - 1)  # the last token of a reply predicts nothing
    ids = torch.cat([batch.prompts, batch.replies[:, :, :t].reshape(p, g * t)], dim=1)
    steps = torch.arange(t, device=device)
    positions = torch.cat(
        [
            torch.arange(s, device=device).expand(p, s),
            (batch.prompt_lengths[:, None] + steps).repeat(1, g),
        ],
        dim=1,
    )
    prompt_there = torch.arange(s, device=device) < batch.prompt_lengths[:, None]  # [P, S]
    seen = torch.cat(
        [
            prompt_there[:, None].expand(p, t, s),
            (steps <= steps[:, None]).expand(p, t, t),
        ],
        dim=2,
    )
    layout = Layout(s, g, t, seen.repeat_interleave(g, dim=0)[:, None], [])
    hidden = _run(model, ids, positions, layout)  # [P, S + G * T, D]
    if not layout.asked:
        raise ValueError("the model's attention never asked for the layout: it has one of its own")
    last = hidden[torch.arange(p, device=device), batch.prompt_lengths - 1]  # [P, D]
    replies = hidden[:, s:].reshape(p, g, t, -1)
    first = last[:, None, None].expand(p, g, 1, -1)
    return torch.cat([first, replies[:, :, : batch.replies.shape[2] - 1]], dim=2)


def _run(model: Any, ids: Tensor, positions: Tensor, layout: Layout) -> Tensor:
    plain = causal_lm(model)
    with attention(plain.config.get_text_config(), NAME), checkpointed(model), computing(model):
        output = plain.base_model(
            input_ids=ids, position_ids=positions, use_cache=False, shared_prefix=layout
        )
    hidden: Tensor = output.last_hidden_state
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
        query: [P, H, S + G * T, E].
        key: [P, K, S + G * T, E].
        value: as ``key``.
        attention_mask: unused; the layout says who sees whom.
        scaling: of the products, E ** -0.5 by default.
        dropout: must be 0.
        shared_prefix: passed through the model by :func:`shared_hidden`.
        others: anything set among them is something that this attention lacks.

    Returns:
        [P, S + G * T, H, E], and no weights.
    """
    unknown = [k for k in ("sliding_window", "softcap", "s_aux") if others.get(k) is not None]
    if shared_prefix is None or dropout or unknown:
        raise ValueError(f"attention cannot share a prefix: {unknown or 'dropout, or no layout'}")
    shared_prefix.asked.append(True)
    p, heads, _, size = query.shape
    s, g, t = shared_prefix.prompt, shared_prefix.replies, shared_prefix.reply
    grouped = heads != key.shape[1]

    def replies(x: Tensor) -> Tensor:  # [P, H, S + G * T, E] -> [P * G, H, T, E]
        return x[:, :, s:].reshape(p, -1, g, t, size).transpose(1, 2).flatten(0, 1)

    def prompts(x: Tensor) -> Tensor:  # [P, H, S + G * T, E] -> [P * G, H, S, E]
        return x[:, None, :, :s].expand(p, g, -1, s, size).flatten(0, 1)

    # Padding is on the right, so among prompt tokens causal order alone hides it.
    first = scaled_dot_product_attention(
        query[:, :, :s],
        key[:, :, :s],
        value[:, :, :s],
        is_causal=True,
        scale=scaling,
        enable_gqa=grouped,
    )
    rest = scaled_dot_product_attention(
        replies(query),
        torch.cat([prompts(key), replies(key)], dim=2),
        torch.cat([prompts(value), replies(value)], dim=2),
        attn_mask=shared_prefix.mask,
        scale=scaling,
        enable_gqa=grouped,
    )
    rest = rest.reshape(p, g, heads, t, size).transpose(1, 2).reshape(p, heads, g * t, size)
    return torch.cat([first, rest], dim=2).transpose(1, 2), None


AttentionInterface.register(NAME, _attend)
