"""Decode with each prompt's keys and values held once, for all the replies to it.

A reply's token looks at its prompt and at the reply so far. The first are the same for a whole
group, so their products are one matrix product per prompt, and nothing is copied to the group's
replies; the second grow in place, in buffers that wider ones replace when they are full. The
model's modules stay as they are: this is one more attention implementation given to transformers.

For prompts, heads come before rows: rows in the order of their prompts are then a prompt's block
by themselves, and nothing is moved for the products. For replies rows come first: those that have
left then lie behind the others, and the buffers need not be copied without them.

Shapes: Q prompts, B rows, S prompt tokens, T tokens of the replies so far, K key-value heads,
R query heads to each, E head size, L layers, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface

from .prefill import Prefill

NAME = "assay_shared_prompts"
_FIRST_ROOM = 64  # tokens of reply that there is room for at first, where rooms double
_SPARE = 4  # and where they do not: how many at a time
_FEW = 400  # multiplications of a product that torch does one by one, in four times the time


class SharedDecoder:
    """The state after what each row has so far: prompts, replies, and the next logits.

    Args:
        model: a causal LM whose attention is transformers' own, without a window or a cap.
        prompts: each distinct prompt's tokens.
        copies: how many rows each has.
        room: tokens that are fed to each row at most.

    Raises:
        ValueError: the cache is not one of plain keys and values; or at the first :meth:`feed`,
            the attention has something that this one does not, or never asks for this state.
    """

    patience = 0.0  # of rows that are done: one that leaves costs the move of one other
    tight = 128
    """Tokens of reply below which buffers are copied every few tokens rather than doubled.

    A processor that reads rows which lie end to end looks ahead into the next; with unwritten
    places between short rows it waits at each, and the products take three times as long.
    """

    def __init__(
        self, model: Any, prompts: Sequence[Sequence[int]], copies: Sequence[int], room: int
    ) -> None:
        self._model, self._room = model, max(1, room)
        start = Prefill(model, prompts)
        self._prompts = [
            (self._products_want(keys), values.transpose(0, 1).contiguous())
            for keys, values in start.keys_values()
        ]  # L of [K, Q, E, S] and [K, Q, S, E]
        there = start.mask  # [Q, S]
        dtype, device = self._prompts[0][0].dtype, model.device
        self._bias: Tensor | None = None  # [Q, 1, S], -inf on padding
        if not bool(there.all()):
            self._bias = torch.zeros(there.shape, dtype=dtype, device=device)[:, None]
            self._bias = self._bias.masked_fill(there[:, None] == 0, -torch.inf)
        self._prompt_of = np.repeat(np.arange(len(prompts)), copies)  # [B]
        every = torch.from_numpy(self._prompt_of).to(device)
        self.logits = start.logits[every]  # [B, V]
        self._positions = there.sum(1)[every]  # [B]
        self._replies: list[Tensor] = []  # L of [2, at least B, K, room now, E]
        self._length = 0
        self._layers_asked = 0
        self._seat()

    def _products_want(self, keys: Tensor) -> Tensor:
        """A prompt's keys [Q, K, S, E] as [K, Q, E, S]."""
        return keys.permute(1, 0, 3, 2).contiguous()

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; none is named twice.

        Rows that stay where they are cost nothing.
        """
        n = len(rows)
        self._prompt_of = self._prompt_of[rows.cpu().numpy()]
        self.logits, self._positions = self.logits[rows], self._positions[rows]
        moved = (rows != torch.arange(n, device=rows.device)).nonzero()[:, 0]
        if moved.numel():
            for layer in self._replies:
                written = layer[:, :, :, : self._length]
                written[:, moved] = written[:, rows[moved]]
        self._drop_prompts()
        self._seat()

    def feed(self, tokens: Tensor) -> None:
        """Append one token [B] to each row."""
        self._make_room()
        self.logits = self._step(tokens, self._positions)
        self._positions = self._positions + 1
        self._length += 1

    def _step(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The model's logits [B, V] after one more token [B] at these positions [B]."""
        self._layers_asked = 0
        config = self._model.config.get_text_config()
        before = config._attn_implementation
        config._attn_implementation = NAME
        try:
            output = self._model(
                input_ids=tokens[:, None],
                position_ids=positions[:, None],
                use_cache=False,
                shared_prompts=self,
            )
        finally:
            config._attn_implementation = before
        if self._layers_asked != len(self._prompts):
            raise ValueError("the model's attention has a way of its own: it never asked for ours")
        logits: Tensor = output.logits[:, -1]
        return logits

    def attend(self, layer: int, query: Tensor, new: Tensor) -> Tensor:
        """What each row's newest token takes from its prompt and its reply.

        Args:
            layer: number of the layer.
            query: [B, K, R, E], scaled.
            new: [2, B, K, E], key and value of the newest token, which are kept.

        Returns:
            As ``query``.
        """
        self._layers_asked += 1
        b, k, r, e = query.shape
        (keys, values), hidden = self._write(layer, new)  # [B * K, T, E]
        prompt_keys, prompt_values = (x.flatten(0, 1) for x in self._prompts[layer])
        s = prompt_keys.shape[2]
        to_reply = torch.bmm(query.reshape(b * k, r, e), keys.mT)
        if hidden is not None:
            to_reply = to_reply + hidden
        to_prompt = torch.bmm(self._to_prompts(query.transpose(0, 1)), prompt_keys)
        if self._bias is not None:
            to_prompt.view(k, len(self._bias), -1, s).add_(self._bias)
        own = to_reply.view(b, k, r, -1).transpose(0, 1)
        scores = torch.cat([self._to_rows(to_prompt, k), own], dim=-1)
        weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        weights = weights.to(values.dtype)  # [K, B, R, S + T]
        far = torch.bmm(self._to_prompts(weights[..., :s]), prompt_values)
        near = _mixed(weights[..., s:].transpose(0, 1).reshape(b * k, r, -1), values)
        return near.view(b, k, r, e).add_(self._to_rows(far, k).transpose(0, 1))

    def _write(self, layer: int, new: Tensor) -> tuple[Tensor, Tensor | None]:
        """Put the newest token's key and value [2, B, K, E] into their column.

        Returns:
            Replies' keys and values [2, B * K, T, E], and what is added to the products with
            each column, where there is any.
        """
        replies = self._replies[layer][:, : new.shape[1]]
        replies[:, :, :, self._length] = new
        return replies[:, :, :, : self._length + 1].flatten(1, 2), None

    def _to_prompts(self, x: Tensor) -> Tensor:
        """[K, B, R, *] in the order of the rows to [K * Q, G * R, *], prompt by prompt."""
        k, _, r, n = x.shape
        q, g = self._seats
        if self._row_in is not None:
            x = x.index_select(1, self._row_in)
        return x.reshape(k * q, g * r, n)

    def _to_rows(self, x: Tensor, k: int) -> Tensor:
        """[K * Q, G * R, *], prompt by prompt, to [K, B, R, *] in the order of the rows."""
        q, g = self._seats
        x = x.view(k, q * g, -1, x.shape[-1])
        return x if self._seat_of is None else x.index_select(1, self._seat_of)

    def _seat(self) -> None:
        """Give each row a seat at its prompt; where that is the rows' own order, none is needed.

        In a seat that is empty any row may sit: nobody looks at what it gets.
        """
        counts = np.bincount(self._prompt_of, minlength=self._prompts[0][0].shape[1])
        order = np.argsort(self._prompt_of, kind="stable")
        firsts = np.cumsum(counts) - counts
        number = np.empty_like(order)
        number[order] = np.arange(len(order)) - np.repeat(firsts, counts)
        self._seats = (len(counts), int(counts.max()))
        seats = self._prompt_of * self._seats[1] + number
        self._seat_of = self._row_in = None
        if len(seats) < counts.size * counts.max() or bool((np.diff(seats) != 1).any()):
            row_in = np.zeros(counts.size * counts.max(), dtype=np.int64)
            row_in[seats] = np.arange(len(seats))
            self._seat_of = torch.from_numpy(seats).to(self.logits.device)
            self._row_in = torch.from_numpy(row_in).to(self.logits.device)

    def _drop_prompts(self) -> None:
        """Forget prompts that no row needs, once they are a quarter of them."""
        used, renamed = np.unique(self._prompt_of, return_inverse=True)
        if 4 * len(used) > 3 * self._prompts[0][0].shape[1]:
            return
        kept = torch.from_numpy(used).to(self.logits.device)
        for i, (keys, values) in enumerate(self._prompts):
            self._prompts[i] = keys[:, kept], values[:, kept]
        self._prompt_of = renamed
        if self._bias is not None:
            self._bias = self._bias[kept]

    def _make_room(self) -> bool:
        """See to it that another token fits, for the rows there are now; whether it did not."""
        if self._replies and self._length < self._replies[0].shape[3]:
            return False
        tight = self._length < self.tight
        room = self._length + _SPARE if tight else max(_FIRST_ROOM, 2 * self._length)
        room = min(room, self._room)
        b = len(self._positions)
        for i, (keys, _) in enumerate(self._prompts):  # layer by layer: one old buffer at a time
            k, _, e, _ = keys.shape
            wider = keys.new_empty(2, b, k, room, e)
            if self._length:
                wider[:, :, :, : self._length] = self._replies[i][:, :b, :, : self._length]
                self._replies[i] = wider
            else:
                self._replies.append(wider)
        return True


def _mixed(weights: Tensor, values: Tensor) -> Tensor:
    """``weights @ values``, [N, R, E]; as sums over T where matrices are small."""
    few = weights.shape[1] == 1 and values.shape[1] * values.shape[2] < _FEW
    return (values * weights.mT).sum(1, keepdim=True) if few else torch.bmm(weights, values)


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    shared_prompts: SharedDecoder | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attention of one new token a row, as transformers calls it.

    Args:
        module: the attention's module; its ``layer_idx`` is used.
        query: [B, K * R, 1, E].
        key: [B, K, 1, E].
        value: as ``key``.
        attention_mask: unused; the decoder knows who sees whom.
        scaling: of the products, E ** -0.5 by default.
        dropout: must be 0.
        shared_prompts: passed through the model by :meth:`SharedDecoder.feed`.
        others: anything set among them is something that this attention lacks.

    Returns:
        [B, 1, K * R, E], and no weights.
    """
    lacks = ("sliding_window", "softcap", "s_aux", "position_bias")
    unknown = [k for k in lacks if others.get(k) is not None]
    if shared_prompts is None or dropout or unknown:
        raise ValueError(f"attention cannot share prompts: {unknown or 'dropout, or no state'}")
    query = query * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    layer: Any = module.layer_idx
    b, k, _, e = key.shape
    new = torch.stack([key, value])[:, :, :, 0]
    seen = shared_prompts.attend(layer, query.reshape(b, k, -1, e), new)
    return seen.view(b, 1, -1, e), None


AttentionInterface.register(NAME, _attend)
