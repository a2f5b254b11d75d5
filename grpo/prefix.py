"""A forward pass in which replies share their prompt's computation, and nothing is padding.

A group's G replies repeat their prompt. Here the tokens of all prompts and then of all replies
lie in one packed row, each once. Only attention looks at other tokens, so only attention knows the
layout: it is registered with transformers as one more implementation, and the model's modules stay
as they are.

Shapes: P prompts, G replies to each, S prompt tokens, T reply tokens, N tokens of the row, M
predicted tokens, H heads, K key-value heads, E head size, D hidden size.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from .batch import Batch
from .model import attention_implementation, autocast_context, causal_lm, gradient_checkpointing

NAME = "assay_shared_prefix"


def shared_hidden(model: Any, batch: Batch) -> Tensor:
    """Compute the hidden states [M, D] that predict the tokens of the batch's mask, in its order.

    Raises:
        ValueError: the model's attention has an option that this one lacks (sinks, dropout, a
            cap on a CPU), or does not go through transformers' attention interface.
    """
    layout, sources = Layout.of(batch)
    plain = causal_lm(model)
    with (
        attention_implementation(plain.config.get_text_config(), NAME),
        gradient_checkpointing(model),
        autocast_context(model),
    ):
        output = plain.base_model(
            input_ids=layout.ids[None],
            position_ids=layout.positions[None],
            use_cache=False,
            shared_prefix=layout,
        )
    if not layout.asked:
        raise ValueError("the model's attention does not go through transformers' interface")
    hidden: Tensor = output.last_hidden_state[0, sources]
    return hidden


@dataclass(frozen=True, slots=True)
class PackedTable:
    """Sequences that lie end to end, as rows of a padded table and back.

    Attributes:
        there: [B, L] of bool, False on padding, which is on the right.
        places: the place in it of each token.
    """

    there: Tensor
    places: Tensor

    @classmethod
    def of(cls, there: Tensor) -> PackedTable:
        """Make the table of a mask."""
        return cls(there, there.flatten().nonzero()[:, 0])

    def pad(self, x: Tensor) -> Tensor:
        """Pad [tokens, H, E] to [B, H, L, E]."""
        if len(self.places) < self.there.numel():
            empty = x.new_zeros(self.there.numel(), *x.shape[1:])
            x = empty.index_copy(0, self.places, x)
        return x.reshape(*self.there.shape, *x.shape[1:]).transpose(1, 2)

    def pack(self, x: Tensor) -> Tensor:
        """Pack [B, H, L, E] to [tokens, H, E]."""
        x = x.transpose(1, 2).flatten(0, 1)
        return x if len(self.places) == len(x) else x.index_select(0, self.places)


@dataclass(frozen=True, slots=True)
class Layout:
    """A packed row: the tokens of all prompts, and then of all replies.

    Attributes:
        ids: [N].
        positions: [N], of each token in its own sequence.
        prompt: the prompts, of [P, S].
        reply: the replies, of [P * G, T - 1]: a reply's last token predicts nothing.
        replies: G.
        asked: grows when attention asks for the layout.
        masks: what attention may see, by window, once it is known.
    """

    ids: Tensor
    positions: Tensor
    prompt: PackedTable
    reply: PackedTable
    replies: int
    asked: list[bool] = field(default_factory=list)
    masks: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: Batch) -> tuple[Layout, Tensor]:
        """Return the layout, and the places [M] that predict the tokens of the batch's mask."""
        p, g, t = batch.replies.shape
        device = batch.prompts.device
        fed = (batch.reply_lengths - 1).clamp(min=0)
        steps = torch.arange(max(1, t - 1), device=device)
        columns = torch.arange(batch.prompts.shape[1], device=device)
        in_prompt = columns < batch.prompt_lengths[:, None]
        in_reply = steps < fed[..., None]  # [P, G, T - 1]
        after = batch.prompt_lengths[:, None, None] + steps
        ids = [batch.prompts[in_prompt], batch.replies[..., : len(steps)][in_reply]]
        positions = [columns.expand_as(in_prompt)[in_prompt], after.expand_as(in_reply)[in_reply]]
        prompt, reply = PackedTable.of(in_prompt), PackedTable.of(in_reply.flatten(0, 1))
        # A prompt's last token predicts a reply's first one, and each token of it the next.
        firsts = len(prompt.places) + fed.flatten().cumsum(0).view(p, g) - fed
        sources = firsts[..., None] + torch.arange(-1, t - 1, device=device)  # [P, G, T]
        sources[..., 0] = (batch.prompt_lengths.cumsum(0) - 1)[:, None]
        layout = cls(torch.cat(ids), torch.cat(positions), prompt, reply, g)
        return layout, sources[batch.mask]


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    shared_prefix: Layout | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Let prompt tokens see the prompt; a reply's tokens the prompt and their own reply.

    Called by transformers with ``query`` [1, H, N, E], ``key`` and ``value`` [1, K, N, E], the
    scale, window and cap of the model, and the layout that :func:`shared_hidden` passes through it.
    A window counts the token itself. Returns [1, N, H, E], and no weights.
    """
    on_cpu = query.device.type == "cpu"
    unknown = [k for k in ("s_aux", "position_bias") if others.get(k) is not None]
    unknown += ["softcap"] if softcap and on_cpu else []
    if shared_prefix is None or dropout or unknown:
        raise ValueError(f"attention cannot share a prefix: {unknown or 'dropout, or no layout'}")
    layout = shared_prefix
    layout.asked.append(True)
    if torch.is_autocast_enabled(query.device.type):
        dtype = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if not on_cpu:
        return attend_by_blocks(query, key, value, layout, scale, sliding_window, softcap), None
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))  # [N, H, E]
    return attend_by_copies(q, k, v, layout, scale, sliding_window)[None], None


AttentionInterface.register(NAME, _attend)


def attend_by_copies(
    query: Tensor, key: Tensor, value: Tensor, layout: Layout, scale: float, window: int | None
) -> Tensor:
    """Attend by :func:`scaled_dot_product_attention`, each reply with a copy of its prompt's keys.

    ``query`` is [N, H, E], ``key`` and ``value`` are [N, K, E], the result is [N, H, E].
    """
    n, g, table = len(layout.prompt.places), layout.replies, layout.reply
    of_prompt, of_reply = _masks(layout, window)
    q, k, v = (layout.prompt.pad(x[:n]) for x in (query, key, value))
    gqa = query.shape[1] != key.shape[1]
    # Padding is on the right, so causal order alone hides it.
    found = scaled_dot_product_attention(
        q, k, v, attn_mask=of_prompt, is_causal=of_prompt is None, scale=scale, enable_gqa=gqa
    )
    first = layout.prompt.pack(found)
    if not len(table.places):
        return first
    rest = scaled_dot_product_attention(
        table.pad(query[n:]),
        torch.cat([k.repeat_interleave(g, 0), table.pad(key[n:])], dim=2),
        torch.cat([v.repeat_interleave(g, 0), table.pad(value[n:])], dim=2),
        attn_mask=of_reply,
        scale=scale,
        enable_gqa=gqa,
    )
    return torch.cat([first, table.pack(rest)])


def _masks(layout: Layout, window: int | None) -> tuple[Tensor | None, Tensor]:
    """Return masks of prompts [1, 1, S, S] and of replies [P * G, 1, T, S + T]."""
    if window not in layout.masks:
        there, (r, t) = layout.prompt.there, layout.reply.there.shape
        s, device = there.shape[1], there.device
        columns, steps = torch.arange(s, device=device), torch.arange(t, device=device)
        before = there.sum(1).repeat_interleave(layout.replies)[:, None, None]  # [R, 1, 1]
        # How far each key lies behind each query; below 0 it is ahead.
        apart = steps[:, None] + before - columns  # [R, T, S]
        own = (steps[:, None] - steps).expand(r, t, t)
        distance = torch.cat([apart, own], dim=2)
        seen = distance >= 0
        seen[:, :, :s] &= there.repeat_interleave(layout.replies, 0)[:, None]
        of_prompt = None
        if window is not None:
            seen &= distance < window
            between = columns[:, None] - columns
            of_prompt = ((between >= 0) & (between < window))[None, None]
        layout.masks[window] = of_prompt, seen[:, None]
    found: tuple[Tensor | None, Tensor] = layout.masks[window]
    return found


def attend_by_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: Layout,
    scale: float,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """Attend by flex attention over the packed row; blocks that nothing sees are skipped.

    As :func:`attend_by_copies`, of [1, H, N, E] to [1, N, H, E]; ``softcap`` bounds the scores:
    ``softcap * tanh(score / softcap)``.
    """
    if ("blocks", window) not in layout.masks:
        prompt, reply, device = layout.prompt, layout.reply, query.device
        groups = torch.arange(len(prompt.there), device=device)[:, None].expand_as(prompt.there)
        numbers = torch.arange(len(reply.there), device=device)[:, None].expand_as(reply.there)
        numbers = numbers[reply.there]
        group = torch.cat([groups[prompt.there], numbers // layout.replies])
        own = torch.cat([numbers.new_full((len(prompt.places),), -1), numbers])
        place, n = layout.positions, len(layout.positions)
        # A tensor: a number would be compiled into the code, one for each window.
        reach = torch.tensor(n if window is None else window, device=device)

        def seen(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            found = (group[q] == group[k]) & ((own[k] == -1) | (own[k] == own[q]))
            return found & (place[k] <= place[q]) & (place[q] - place[k] < reach)

        make = create_block_mask if device.type == "cpu" else _compiled(create_block_mask)
        with torch.no_grad():
            layout.masks["blocks", window] = make(seen, None, None, n, n, device=device)

    def capped(score: Tensor, *_: Any) -> Tensor:
        return score if not softcap else softcap * torch.tanh(score / softcap)

    attend = flex_attention if query.device.type == "cpu" else _compiled(flex_attention)
    found: Tensor = attend(
        query,
        key,
        value,
        score_mod=capped if softcap else None,
        block_mask=layout.masks["blocks", window],
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return found.transpose(1, 2)


@functools.cache
def _compiled(call: Any) -> Any:
    """Compile a function of flex attention, which as it is holds a number for each pair."""
    return torch.compile(call, dynamic=True)
