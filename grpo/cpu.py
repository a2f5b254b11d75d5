"""Decode Llama-like models by their weights, without the modules around the matrix products.

A token of a small model takes some fifty calls of torch a layer when transformers' modules make
them, and on a CPU most of its time goes into the calls. Here is the same arithmetic in half of
them: what a reader of the papers expects to see (RMS norm, arXiv 1910.07467; rotary positions,
arXiv 2104.09864; gated MLP, arXiv 2002.05202). Whether it is the model's own is not taken on
trust: :func:`~assay.grpo.decoder.choose_decoder` compares the two on a probe.

Shapes: B rows, D hidden size, K key-value heads, R query heads to each, E head size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.linalg import vector_norm
from torch.nn.functional import linear, rms_norm

from .decoder import SharedDecoder
from .model import computing

_Call = Callable[[Tensor], Tensor]

_SMALL = 1 << 24
"""Numbers in the layers of a model of which all weights are copied: 64 MiB of float32."""


class LlamaDecoder(SharedDecoder):
    """As :class:`SharedDecoder`, for Llama, Mistral, Qwen 2 and Qwen 3.

    Linear layers that are more than a weight and a bias (adapters, quantised ones, hooks) are
    called as they are, and so is the output layer.
    """

    def __init__(
        self, model: Any, prompts: Sequence[Sequence[int]], copies: Sequence[int], room: int
    ) -> None:
        if (wrong := misfit(model)) is not None:
            raise ValueError(wrong)
        body = model.model
        super().__init__(model, prompts, copies, room)
        self._embed, self._norm, self._head = body.embed_tokens, _norm(body.norm), model.lm_head
        copied = sum(x.numel() for x in body.layers.parameters()) <= _SMALL
        self._layers = [_Layer(layer, copied=copied) for layer in body.layers]
        longest = int(self._positions.max()) + max(1, room)
        places = torch.arange(longest, device=model.device)[None]
        cos, sin = (_wide(x[0]).chunk(2, -1)[0] for x in body.rotary_emb(body.norm.weight, places))
        self._angles = torch.complex(cos, sin)[:, None]  # [longest, 1, E / 2]
        self._plain = all(layer.plain for layer in self._layers)
        scales = {layer.scales for layer in self._layers}
        if len(scales) > 1:
            raise ValueError("the layers' heads differ in number or scale")
        self._scales = torch.tensor(scales.pop(), device=model.device)[:, None]  # [K * R + K, 1]

    def _products_want(self, keys: Tensor) -> Tensor:
        """As there, and numbers that turn together side by side, as in the queries."""
        pairs = torch.unflatten(keys, -1, (2, -1)).permute(1, 0, 4, 3, 2)  # [K, Q, E / 2, 2, S]
        return pairs.flatten(2, 3).contiguous()

    def _bare(self, x: Tensor) -> AbstractContextManager[Any]:
        """Where only torch's own functions are called: inference mode, in less time a call.

        A module of somebody else's, or autocast, could keep a tensor of it, which no later
        training may use.
        """
        if not self._plain or torch.is_autocast_enabled(x.device.type):
            return nullcontext()
        return torch.inference_mode()

    def _step(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The model's logits [B, V] after one more token [B] at these positions [B]."""
        with computing(self._model):
            x = self._embed(tokens)  # [B, D]
            turn = self._angles[positions] * self._scales  # [B, K * R + K, E / 2]
            with self._bare(x):
                for i, layer in enumerate(self._layers):
                    query, new = layer.heads(x, turn)
                    seen = self.attend(i, query, new)  # [B, K, R, E]
                    x = layer.rest(x, seen.view(len(x), -1))
            logits: Tensor = self._head(self._norm(x))
        return logits


class _Layer:
    """One layer's arithmetic on its own weights.

    Rotary positions turn pairs of numbers, which the model keeps half a head apart. Here they are
    side by side in queries and keys, so that a pair is a complex number and its turn one product.

    Args:
        layer: one of transformers'.
        copied: take a copy of all weights, not of those to queries, keys and values alone.

    Attributes:
        scales: what the products of each query head are scaled by, and 1.0 for each key head.
        plain: no layer in it is more than a weight and a bias.
    """

    def __init__(self, layer: Any, *, copied: bool) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self._size = attention.head_dim
        self._before, self._between = map(
            _norm, (layer.input_layernorm, layer.post_attention_layernorm)
        )
        self._project = _joined(attention)
        norms = (getattr(attention, name, None) for name in ("q_norm", "k_norm"))
        self._head_norms = [_norm(norm, size=self._size) for norm in norms if norm is not None]
        others = attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj
        self._out, self._gate, self._up, self._down = (_linear(x, copied=copied) for x in others)
        self.plain = all(map(is_plain, (*_projections(attention), *others)))
        self._act = mlp.act_fn
        config = attention.config
        queries, self._key_values = config.num_attention_heads, config.num_key_value_heads
        self.scales = (attention.scaling,) * queries + (1.0,) * self._key_values

    def heads(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
        """What the newest token asks, and what it answers from now on.

        Args:
            x: [B, D].
            turn: [B, K * R + K, E / 2] of complex numbers: of queries, which they scale, and keys.

        Returns:
            Query [B, K, R, E], scaled; key and value [2, B, K, E].
        """
        k, turned = self._key_values, turn.shape[1]
        heads = torch.unflatten(self._project(self._before(x)), -1, (-1, self._size))
        if self._head_norms:
            q_norm, k_norm = self._head_norms
            query, key, value = torch.split(heads, [turned - k, k, k], dim=1)
            heads = torch.cat([q_norm(query), k_norm(key), value], dim=1)
        rotary = _wide(heads[:, :turned])  # in float32 and float64 the same memory
        torch.view_as_complex(torch.unflatten(rotary, -1, (-1, 2))).mul_(turn)
        if rotary.dtype != heads.dtype:
            heads[:, :turned] = rotary
        query, new = heads[:, : turned - k], heads[:, turned - k :]
        new = torch.unflatten(new, 1, (2, k)).transpose(0, 1)
        return torch.unflatten(query, 1, (k, -1)), new

    def rest(self, x: Tensor, seen: Tensor) -> Tensor:
        """[B, D] after the layer, from that before it and what attention saw."""
        x = x + self._out(seen)
        y = self._between(x)
        return x + self._down(self._act(self._gate(y)).mul_(self._up(y)))


def _norm(module: Any, size: int | None = None) -> _Call:
    """RMS norm, x / sqrt(mean(x^2) + eps) times the weight: in four calls in float32.

    With a ``size``, of heads of that size in pairs.
    """
    weight, eps = module.weight, module.variance_epsilon
    if size is not None:
        weight = _in_pairs(weight, size)
    if weight.dtype != torch.float32:
        return lambda x: rms_norm(x, weight.shape, weight, eps)
    n = weight.numel()  # sqrt(mean(x^2) + eps) = hypot(|x|, sqrt(n eps)) / sqrt(n)
    least, scaled = weight.new_tensor((n * eps) ** 0.5), weight * n**0.5
    return lambda x: (x / vector_norm(x, dim=-1, keepdim=True).hypot_(least)).mul_(scaled)


def _linear(module: Any, *, copied: bool = False) -> _Call:
    if not is_plain(module):
        return lambda x: module(x)
    weight, bias = module.weight, module.bias
    return _product(weight.t().contiguous(), bias) if copied else lambda x: linear(x, weight, bias)


def _product(weight: Tensor, bias: Tensor | None) -> _Call:
    """By weights [I, O]: read from memory, not from a cache, they take a third less time so."""
    if bias is None:
        return lambda x: x @ weight
    return lambda x: torch.addmm(bias, x, weight)


def _joined(attention: Any) -> _Call:
    """Queries, keys and values end to end, the first two with their heads in pairs.

    As one matrix product where the layers are plain, of a copy of their weights, which lives as
    long as the decoder: less than a sixth of the model's.
    """
    modules, size = _projections(attention), attention.head_dim

    def joined(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return torch.cat([_in_pairs(query, size), _in_pairs(key, size), value], dim=-1)

    if not all(map(is_plain, modules)) or len({module.bias is None for module in modules}) > 1:
        calls = [_linear(module) for module in modules]
        return lambda x: joined(*(call(x) for call in calls))
    weight = joined(*(module.weight.t() for module in modules))
    bias = None if modules[0].bias is None else joined(*(module.bias for module in modules))
    return _product(weight, bias)


def _projections(attention: Any) -> tuple[Any, Any, Any]:
    return attention.q_proj, attention.k_proj, attention.v_proj


def _in_pairs(x: Tensor, size: int) -> Tensor:
    """[*, heads of a size], with numbers that are half a head apart side by side."""
    return torch.unflatten(x, -1, (-1, 2, size // 2)).transpose(-1, -2).flatten(-3)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


_MODELS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_FIXED_ROTATIONS = ("default", "linear", "llama3", "yarn")  # others change with the length


def misfit(model: Any) -> str | None:
    """Why a model's layers cannot be computed by their weights; ``None`` if they can."""
    kind = type(model)
    if kind.__name__ not in _MODELS or not kind.__module__.startswith("transformers."):
        return f"no hand-written layer fits {kind.__name__}"
    if model.training:
        return "hand-written layers drop nothing out: call model.eval()"
    body = model.model
    for part in (part for layer in body.layers for part in (layer.self_attn, layer.mlp)):
        if not type(part).__module__.startswith("transformers."):
            return f"hand-written layers would pass {type(part).__name__} by"
    # All that is not called: linear layers are, if they are more than a product and a sum.
    passed_by = [body, body.norm]
    for layer in body.layers:
        passed_by += [layer, layer.input_layernorm, layer.post_attention_layernorm, layer.mlp]
        inside = layer.self_attn.named_children()
        passed_by += [layer.self_attn, *(m for n, m in inside if not n.endswith("_proj"))]
    if any(map(changes, passed_by)):
        return "hand-written layers would pass hooks by"
    if body.rotary_emb.rope_type not in _FIXED_ROTATIONS:
        return f"{body.rotary_emb.rope_type!r} rotations change with the length"
    return None


def changes(module: Any) -> int:
    """Number of forward hooks and overrides on a module."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(module, kind)) for kind in kinds) + ("forward" in vars(module))


def is_plain(module: Any) -> bool:
    """Whether calling a linear layer is nothing but a product and a sum."""
    return type(module) is torch.nn.Linear and not changes(module)
