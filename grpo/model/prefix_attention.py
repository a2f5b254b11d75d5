"""Attention of replies to a shared prompt.

With o and l the outputs and the log-sum-exps of attention to two sets of keys, attention to
both is ``o = o_1 exp(l_1 - l) + o_2 exp(l_2 - l)`` with ``l = logaddexp(l_1, l_2)`` (online
softmax: Milakov and Gimelshein, arXiv 1805.02867). A group's replies can so look at their
prompt's one copy of keys together, and at their own tokens apart. Backward, each set's part is
that of the usual formula with the common o and l: with p = exp(s - l),
ds = p (do v - do o), as in FlashAttention (arXiv 2205.14135, appendix B.4).

What comes after the last layer is of use only where a reply's token is predicted: that is at the
replies' tokens, and of each prompt at its last. There, no other token asks.

Shapes: P prompts, G replies to each, R = P * G, S prompt tokens, T reply tokens, N tokens that
are there, M that ask (N, or those of the replies and P), H heads, E head size.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

_log = logging.getLogger(__name__)
_KERNEL = "_scaled_dot_product_flash_attention_for_cpu"
_forward: Any = getattr(torch.ops.aten, _KERNEL, None)
_backward: Any = getattr(torch.ops.aten, _KERNEL + "_backward", None)


@dataclass(frozen=True, slots=True)
class Table:
    """Sequences that lie end to end, as rows of a padded table and back.

    Attributes:
        there: [B, L] of bool, False on padding, which is on the right.
        tokens: how many are there.
        taken: [B * L], the token in each place, and any where there is padding.
        places: [tokens], the place of each token.
        full: there is no padding.
    """

    there: Tensor
    tokens: int
    taken: Tensor
    places: Tensor
    full: bool

    @classmethod
    def of(cls, there: Tensor) -> Table:
        """The table of a mask."""
        places = there.flatten().nonzero()[:, 0]
        taken = (there.flatten().cumsum(0) - 1).clamp(min=0)
        return cls(there, len(places), taken, places, len(places) == there.numel())

    def pad(self, x: Tensor) -> Tensor:
        """[tokens, H, E] to [B, H, L, E]."""
        x = x if self.full else x.index_select(0, self.taken)
        return x.reshape(*self.there.shape, *x.shape[1:]).transpose(1, 2)

    def pack(self, x: Tensor) -> Tensor:
        """[B, H, L, E] to [tokens, H, E]."""
        x = x.transpose(1, 2).flatten(0, 1)
        return x if self.full else x.index_select(0, self.places)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a row of tokens: prompts, and then replies.

    Attributes:
        prompt: of [P, S].
        reply: of [R, T].
        replies: G.
        asked: grows when attention asks for the layout.
        kept: where each layer puts its keys and values [N, K, E], where somebody wants them.
    """

    prompt: Table
    reply: Table
    replies: int
    asked: list[bool] = field(default_factory=list)
    kept: list[tuple[Tensor, Tensor]] | None = None

    @property
    def regular(self) -> bool:
        """Whether prompts are of one length and replies are: then batches have few sizes."""
        return self.prompt.full and self.reply.full

    def predicting(self) -> Tensor:
        """The prompts' last tokens, and the replies' tokens: [P + reply tokens] of the row."""
        device = self.prompt.there.device
        lasts = self.prompt.there.sum(1).cumsum(0) - 1
        rest = torch.arange(self.reply.tokens, device=device) + self.prompt.tokens
        return torch.cat([lasts, rest])

    def asking(self, query: Tensor) -> Table:
        """The prompts' tokens that ask, given all queries: all of them, or the last of each."""
        if len(query) == self.prompt.tokens + self.reply.tokens:
            return self.prompt
        return Table.of(torch.ones_like(self.prompt.there[:, :1]))

    def together(self, x: Tensor) -> Tensor:
        """[R, H, T, ...] to [P, H, G * T, ...]: a group's replies as one sequence."""
        return x.reshape(-1, self.replies, *x.shape[1:]).transpose(1, 2).flatten(2, 3)

    def apart(self, x: Tensor) -> Tensor:
        """[P, H, G * T, ...] to [R, H, T, ...]."""
        x = x.reshape(*x.shape[:2], self.replies, -1, *x.shape[3:])
        return x.transpose(1, 2).flatten(0, 1)


def attend(
    query: Tensor, key: Tensor, value: Tensor, *, layout: Layout, scale: float | None
) -> Tensor:
    """Prompt tokens look at the prompt; a reply's tokens at the prompt and their own reply.

    Args:
        query: [M, H, E], of all tokens or of :meth:`Layout.predicting`; this, key and value get a
            gradient.
        key: [N, H, E].
        value: [N, H, E].
        layout: where prompts and replies are.
        scale: of the products, E ** -0.5 by default.

    Returns:
        [M, H, E].
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if query.device.type == "cpu" and kernels_agree():
        found: Tensor = _Attend.apply(query, key, value, layout, scale)  # type: ignore[no-untyped-call]  # torch
        return found
    return attend_by_copies(query, key, value, layout=layout, scale=scale)


@functools.cache
@torch.enable_grad()
def kernels_agree() -> bool:
    """Whether torch's kernels for CPU, which are no public interface, are what we take them for.

    Compared once in a process with the public way, outputs and gradients.
    """
    generator = torch.Generator().manual_seed(0)
    there = torch.tensor([[True, True, True], [True, False, False]])
    replies = torch.tensor([[True, True], [True, False], [True, False], [True, True]])
    layout = Layout(Table.of(there), Table.of(replies), replies=2)
    rows = [torch.randn(10, 2, 4, generator=generator, requires_grad=True) for _ in range(3)]
    given = torch.randn(18, 2, 4, generator=generator)
    found = []
    query, key, value = rows
    some = layout.predicting()
    ways: tuple[Callable[..., Tensor], ...] = (_Attend.apply, _copies)
    for way in ways:
        try:
            out = way(query, key, value, layout, 0.5)
            last = way(query[some], key, value, layout, 0.5)
            both = torch.cat([out, last])
            found.append([both, *torch.autograd.grad(both, rows, given)])
        except (TypeError, RuntimeError, AttributeError) as error:
            _log.info("the shared prefix is copied for attention: %s", error)
            return False
    return all(torch.allclose(a, b, atol=1e-4) for a, b in zip(found[0], found[1], strict=True))


def attend_by_copies(
    query: Tensor, key: Tensor, value: Tensor, *, layout: Layout, scale: float
) -> Tensor:
    """As :func:`attend`, by torch's public attention, with a copy of the prompt for each reply."""
    n, g, table = layout.prompt.tokens, layout.replies, layout.reply
    asking = layout.asking(query)
    k, v = (layout.prompt.pad(x[:n]) for x in (key, value))
    # Padding is on the right, so where all prompt tokens ask, causal order alone hides it.
    whole = asking is layout.prompt
    found = scaled_dot_product_attention(
        asking.pad(query[: asking.tokens]),
        k,
        v,
        attn_mask=None if whole else layout.prompt.there[:, None, None],
        is_causal=whole,
        scale=scale,
    )
    first = asking.pack(found)
    if not table.tokens:
        return first
    r, t = table.there.shape
    steps = torch.arange(t, device=query.device)
    seen = torch.cat(
        [
            layout.prompt.there.repeat_interleave(g, 0)[:, None].expand(r, t, -1),
            (steps <= steps[:, None]).expand(r, t, t),
        ],
        dim=2,
    )
    rest = scaled_dot_product_attention(
        table.pad(query[asking.tokens :]),
        torch.cat([k.repeat_interleave(g, 0), table.pad(key[n:])], dim=2),
        torch.cat([v.repeat_interleave(g, 0), table.pad(value[n:])], dim=2),
        attn_mask=seen[:, None],
        scale=scale,
    )
    return torch.cat([first, table.pack(rest)])


def _copies(query: Tensor, key: Tensor, value: Tensor, layout: Layout, scale: float) -> Tensor:
    return attend_by_copies(query, key, value, layout=layout, scale=scale)


class _Attend(torch.autograd.Function):
    """By the kernels behind torch's attention on CPU, which give log-sum-exps."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, layout: Layout, scale: float
    ) -> Tensor:
        n, table, asking = layout.prompt.tokens, layout.reply, layout.asking(query)
        m = asking.tokens
        q, k, v = asking.pad(query[:m]), layout.prompt.pad(key[:n]), layout.prompt.pad(value[:n])
        causal, hidden = _rule(layout, asking, query.dtype)
        found, of_prompt = _forward(q, k, v, 0.0, causal, attn_mask=hidden, scale=scale)
        out = torch.empty(query.shape, dtype=query.dtype)
        out[:m] = asking.pack(found)
        of_reply = None
        if table.tokens:
            q, own_k, own_v = (table.pad(x) for x in (query[m:], key[n:], value[n:]))
            hidden = _hidden(layout, q.shape[2] * layout.replies, query.dtype)
            a, l_a = _forward(layout.together(q), k, v, 0.0, False, attn_mask=hidden, scale=scale)
            b, l_b = _forward(q, own_k, own_v, 0.0, True, scale=scale)
            a, l_a = layout.apart(a), layout.apart(l_a)
            of_reply = torch.logaddexp(l_a, l_b)
            a = a * (l_a - of_reply).exp()[..., None].to(a.dtype)
            b = b * (l_b - of_reply).exp()[..., None].to(b.dtype)
            out[m:] = table.pack(a.add_(b))
        ctx.save_for_backward(query, key, value, out, of_prompt, of_reply)
        ctx.layout, ctx.scale = layout, scale
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, out, of_prompt, of_reply = ctx.saved_tensors
        layout, scale = ctx.layout, ctx.scale
        n, table, asking = layout.prompt.tokens, layout.reply, layout.asking(query)
        m = asking.tokens
        askers = (gradients[0], query, out)
        d_out, q, o = (asking.pad(x[:m]) for x in askers)
        k, v = layout.prompt.pad(key[:n]), layout.prompt.pad(value[:n])
        if not asking.full:  # places of padding got another token's gradient
            d_out = d_out * asking.there[:, None, :, None]
        causal, hidden = _rule(layout, asking, query.dtype)
        d_q, d_k, d_v = _backward(
            d_out, q, k, v, o, of_prompt, 0.0, causal, attn_mask=hidden, scale=scale
        )
        found = [torch.empty(x.shape, dtype=x.dtype) for x in (query, key, value)]
        if table.tokens:
            d_out, q, o = (table.pad(x[m:]) for x in askers)
            own_k, own_v = table.pad(key[n:]), table.pad(value[n:])
            if not table.full:
                d_out = d_out * table.there[:, None, :, None]
            together = [layout.together(x) for x in (d_out, q, o, of_reply)]
            hidden = _hidden(layout, q.shape[2] * layout.replies, query.dtype)
            a_q, a_k, a_v = _backward(
                together[0], together[1], k, v, together[2], together[3], 0.0, False,
                attn_mask=hidden, scale=scale,
            )  # fmt: skip
            d_k, d_v = d_k + a_k, d_v + a_v
            b_q, b_k, b_v = _backward(d_out, q, own_k, own_v, o, of_reply, 0.0, True, scale=scale)
            found[0][m:] = table.pack(layout.apart(a_q) + b_q)
            found[1][n:], found[2][n:] = table.pack(b_k), table.pack(b_v)
        found[0][:m] = asking.pack(d_q)
        found[1][:n], found[2][:n] = layout.prompt.pack(d_k), layout.prompt.pack(d_v)
        return *found, None, None


def _rule(layout: Layout, asking: Table, dtype: torch.dtype) -> tuple[bool, Tensor | None]:
    """Which of the prompt its own tokens see: those before, or, from the last one, all."""
    causal = asking is layout.prompt  # padding is on the right, where this hides it
    return causal, None if causal else _hidden(layout, 1, dtype)


def _hidden(layout: Layout, tokens: int, dtype: torch.dtype) -> Tensor | None:
    """Minus infinity at padding of the prompts. [P, 1, tokens, S], of one row's memory."""
    there = layout.prompt.there
    if layout.prompt.full:
        return None
    mask = torch.zeros(there.shape, dtype=dtype).masked_fill_(~there, -torch.inf)
    return mask[:, None, None].expand(-1, 1, tokens, -1)
