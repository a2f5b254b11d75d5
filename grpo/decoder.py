"""Decode a batch of rows one token at a time.

Shapes: B rows, Q prompts, S tokens of the longest, K key-value heads, R query heads to each, E head
size, V vocabulary.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface, DynamicCache

from .model import attention_implementation, computed_dtype, first_that_agrees

_log = logging.getLogger(__name__)


class CopyDecoder:
    """Decodes by transformers' cache, copied to each row: works for every causal model.

    Arguments and ``logits`` [B, V] of each row's next token are those of :class:`SharedDecoder`.
    ``mask`` [B, S] is 0 on padding, which is on the left: the next token of every row then lies in
    the same column.
    """

    logits: Tensor

    def __init__(
        self, model: Any, prompts: Sequence[Sequence[int]], copies: Sequence[int], room: int
    ) -> None:
        width = max(len(prompt) for prompt in prompts)
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts])  # [Q, S]
        there = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        self._model, self._cache = model, cast(Any, DynamicCache(config=model.config))
        self._takes = inspect.signature(model.forward).parameters
        self.mask = there[:, :0].to(model.device)
        self._append(ids.to(model.device), there.to(model.device))
        if set(copies) != {1}:
            rows = torch.arange(len(prompts)).repeat_interleave(torch.tensor(list(copies)))
            self.keep(rows.to(model.device))

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may be named more than once."""
        self._cache.reorder_cache(rows)
        self.mask, self.logits = self.mask[rows], self.logits[rows]

    def feed(self, tokens: Tensor) -> None:
        """Append one token [B] to each row."""
        self._append(tokens[:, None], torch.ones_like(tokens)[:, None])

    def _append(self, ids: Tensor, there: Tensor) -> None:
        self.mask = torch.cat([self.mask, there], dim=1)
        options: dict[str, Any] = {"logits_to_keep": 1} if "logits_to_keep" in self._takes else {}
        if "position_ids" in self._takes:
            places = (self.mask.cumsum(1) - 1).clamp(min=0)
            options["position_ids"] = places[:, -ids.shape[1] :]
        output = self._model(
            input_ids=ids,
            attention_mask=self.mask,
            past_key_values=self._cache,
            use_cache=True,
            **options,
        )
        self.logits = output.logits[:, -1]

    def keys_values(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield keys and values of each layer, [B, K, S, E], and drop them from the cache.

        Raises:
            ValueError: a layer keeps something else, such as a window or a state.
        """
        s = self.mask.shape[1]
        for layer in self._cache.layers:
            keys: Any = getattr(layer, "keys", None)
            values: Any = getattr(layer, "values", None)
            whole = keys is not None and values is not None and keys.shape == values.shape
            if getattr(layer, "is_sliding", False) or not whole or keys.shape[2] != s:
                raise ValueError(f"the cache is not one of plain keys and values: {layer!r}")
            layer.keys = layer.values = None  # held once
            yield keys, values


NAME = "assay_shared_prompts"
_TIGHT, _SPARE = 128, 4
"""Replies of fewer tokens than the first get room for the second at a time; longer ones double it.

Gaps between short rows defeat CPU prefetching: the products take three times as long.
"""
_FEW = 400


class SharedDecoder:
    """The model's state after what each row has so far, and ``logits`` [B, V] of its next token.

    Args:
        model: a causal LM whose attention is transformers' own, without a window or a cap.
        prompts: each distinct prompt's tokens.
        copies: how many rows each has.
        room: tokens that are fed to each row at most.

    Raises:
        ValueError: the cache is not one of plain keys and values; or at the first :meth:`feed`,
            the attention has something that this one does not, or never asks for this state.
    """

    def __init__(
        self, model: Any, prompts: Sequence[Sequence[int]], copies: Sequence[int], room: int
    ) -> None:
        self._model, self._room = model, max(1, room)
        start = CopyDecoder(model, prompts, [1] * len(prompts), 0)
        self._prompts = [
            (keys.permute(1, 0, 3, 2).contiguous(), values.transpose(0, 1).contiguous())
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

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order, none twice; only those that move are copied."""
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
        self._layers_asked = 0
        with attention_implementation(self._model.config.get_text_config(), NAME):
            output = self._model(
                input_ids=tokens[:, None],
                position_ids=self._positions[:, None],
                use_cache=False,
                shared_prompts=self,
            )
        if self._layers_asked != len(self._prompts):
            raise ValueError("the model's attention does not go through transformers' interface")
        self.logits = output.logits[:, -1]
        self._positions = self._positions + 1
        self._length += 1

    def attend(self, layer: int, query: Tensor, new: Tensor) -> Tensor:
        """Attend from each row's newest token to its prompt and its reply; keep the token.

        ``query`` [B, K, R, E] is scaled; ``new`` [2, B, K, E] are the newest token's key and value.
        """
        self._layers_asked += 1
        b, k, r, e = query.shape
        replies = self._replies[layer][:, :b]
        replies[:, :, :, self._length] = new
        keys, values = replies[:, :, :, : self._length + 1].flatten(1, 2)  # [B * K, T, E]
        prompt_keys, prompt_values = (x.flatten(0, 1) for x in self._prompts[layer])
        s = prompt_keys.shape[2]
        to_reply = torch.bmm(query.reshape(b * k, r, e), keys.mT)
        to_prompt = torch.bmm(self._to_prompts(query.transpose(0, 1)), prompt_keys)
        if self._bias is not None:
            to_prompt.view(k, len(self._bias), -1, s).add_(self._bias)
        own = to_reply.view(b, k, r, -1).transpose(0, 1)
        scores = torch.cat([self._to_rows(to_prompt, k), own], dim=-1)
        weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        weights = weights.to(values.dtype)  # [K, B, R, S + T]
        far = torch.bmm(self._to_prompts(weights[..., :s]), prompt_values)
        near = weights[..., s:].transpose(0, 1).reshape(b * k, r, -1)
        # torch multiplies small matrices one by one, in four times the time of a sum.
        few = r == 1 and values.shape[1] * e < _FEW
        near = (values * near.mT).sum(1, keepdim=True) if few else torch.bmm(near, values)
        return near.view(b, k, r, e).add_(self._to_rows(far, k).transpose(0, 1))

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
        """Give each row a seat at its prompt; if that is the rows' own order, none is needed.

        An empty seat holds any row; its result is not read.
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

    def _make_room(self) -> None:
        """Grow the buffers if another token does not fit."""
        if self._replies and self._length < self._replies[0].shape[3]:
            return
        n = self._length
        room = min(n + _SPARE if n < _TIGHT else 2 * n, self._room)
        b = len(self._positions)
        for i, (keys, _) in enumerate(self._prompts):  # layer by layer: one old buffer at a time
            k, _, e, _ = keys.shape
            wider = keys.new_empty(2, b, k, room, e)
            if self._length:
                wider[:, :, :, : self._length] = self._replies[i][:, :b, :, : self._length]
                self._replies[i] = wider
            else:
                self._replies.append(wider)


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

    ``query`` is [B, K * R, 1, E], ``key`` and ``value`` are [B, K, 1, E], the result is
    [B, 1, K * R, E], without weights. ``shared_prompts``, which :meth:`SharedDecoder.feed` passes
    through the model, knows who sees whom.
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


Decoder = type[SharedDecoder] | type[CopyDecoder]
DECODERS: dict[str, Decoder] = {"shared": SharedDecoder, "copy": CopyDecoder}
_chosen: WeakKeyDictionary[Any, tuple[tuple[Any, ...], str]] = WeakKeyDictionary()


def choose_decoder(model: Any) -> tuple[str, Decoder]:
    """Choose the faster decoder if it agrees with the copied cache on a small made-up batch.

    The batch is tried once for a model, and again if its dtype, device, mode or attention changes.
    """
    parameter = next(model.parameters())
    kind = model.config.get_text_config()._attn_implementation
    state = parameter.dtype, computed_dtype(model), parameter.device, model.training, kind
    known = _chosen.get(model)
    if known is None or known[0] != state:
        faster: dict[str, Decoder] = {"shared": SharedDecoder}
        found = first_that_agrees(model, faster, lambda make: _probe(model, make), CopyDecoder)
        known = _chosen[model] = state, found or "copy"
        _log.info("replies are decoded by the %r decoder", known[1])
    return known[1], DECODERS[known[1]]


def _probe(model: Any, make: Decoder) -> list[Tensor]:
    """Compute log-probabilities along two prompts of different lengths, dropping rows midway."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = int(model.config.get_text_config().vocab_size)

    def ids(n: int) -> Tensor:
        return torch.randint(vocabulary, (n,), generator=generator)

    decoder = make(model, [ids(7).tolist(), ids(4).tolist()], [2, 3], 6)
    found = [decoder.logits.float().log_softmax(-1)]
    for rows in ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 4, 2, 3], [0, 1, 2, 3], [2, 1], [0, 1]):
        if len(rows) < len(decoder.logits):
            decoder.keep(torch.tensor(rows, device=model.device))
        decoder.feed(ids(len(rows)).to(model.device))
        found.append(decoder.logits.float().log_softmax(-1))
    return found
