"""Decode Llama-like models by their weights, without the modules around the matrix products.

A token of a small model takes some fifty calls of torch a layer when transformers' modules make
them, and on a CPU most of its time goes into the calls. Here is the same arithmetic in half of
them: what a reader of the papers expects to see (RMS norm, arXiv 1910.07467; rotary positions,
arXiv 2104.09864; gated MLP, arXiv 2002.05202). Whether it is the model's own is not taken on
trust: :func:`~assay.grpo.sampling.decoder.choose_decoder` compares the two on a probe.

Shapes: B rows, D hidden size, K key-value heads, R query heads to each, E head size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.linalg import vector_norm
from torch.nn.functional import linear, rms_norm

from ..model.llama import changes, is_plain, misfit, trains_by_weights
from ..model.precision import computing
from .prefill import PackedPrefill, Prefilled
from .shared import SharedDecoder

_Call = Callable[[Tensor], Tensor]


class LlamaDecoder(SharedDecoder):
    """As :class:`SharedDecoder`, for Llama, Mistral, Qwen 2 and Qwen 3.

    Linear layers that are more than a weight and a bias (adapters, quantised ones, hooks) are
    called as they are, and so is the output layer.

    Raises:
        ValueError: the model is another one, or see :class:`SharedDecoder`.
    """

    def __init__(
        self, model: Any, prompts: Sequence[Sequence[int]], copies: Sequence[int], room: int
    ) -> None:
        wrong = misfit(model)
        if wrong is not None:
            raise ValueError(wrong)
        body = model.model
        if any(changes(module) for layer in body.layers for module in (layer, layer.mlp)):
            raise ValueError("hand-written layers would pass hooks by")
        super().__init__(model, prompts, copies, room)
        self._embed, self._norm, self._head = body.embed_tokens, _norm(body.norm), model.lm_head
        self._layers = [_Layer(layer) for layer in body.layers]
        longest = int(self._positions.max()) + max(1, room)
        places = torch.arange(longest, device=model.device)[None]
        cos, sin = body.rotary_emb(body.norm.weight, places)  # [1, longest, E]
        half = sin.shape[-1] // 2
        sin = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)
        self._cos_sin = torch.stack([cos[0], sin[0]])  # [2, longest, E]

    def _prefill(self, prompts: Sequence[Sequence[int]]) -> Prefilled:
        """The state after the prompts: by the same arithmetic as in training, where it can be."""
        if trains_by_weights(self._model):
            return PackedPrefill(self._model, prompts)
        return super()._prefill(prompts)

    def _step(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The model's logits [B, V] after one more token [B] at these positions [B]."""
        with computing(self._model):
            x = self._embed(tokens)  # [B, D]
            cos, sin = self._cos_sin[:, positions, None]  # [B, 1, E]
            for i, layer in enumerate(self._layers):
                query, new = layer.heads(x, cos, sin)
                seen = self.attend(i, query, new)  # [B, K, R, E]
                x = layer.rest(x, seen.view(len(x), -1))
            logits: Tensor = self._head(self._norm(x))
        return logits


class _Layer:
    """One layer's arithmetic on its own weights."""

    def __init__(self, layer: Any) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self._size, self._scale = attention.head_dim, attention.scaling
        self._key_values = attention.config.num_key_value_heads
        self._before, self._between = map(
            _norm, (layer.input_layernorm, layer.post_attention_layernorm)
        )
        self._project = _joined(attention.q_proj, attention.k_proj, attention.v_proj)
        self._q_norm, self._k_norm = (
            _norm(getattr(attention, name)) if hasattr(attention, name) else None
            for name in ("q_norm", "k_norm")
        )
        self._out, self._gate, self._up, self._down = map(
            _linear, (attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
        )
        self._act = mlp.act_fn

    def heads(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """What the newest token asks, and what it answers from now on.

        Args:
            x: [B, D].
            cos: [B, 1, E].
            sin: [B, 1, E], its first half negative.

        Returns:
            Query [B, K, R, E], scaled; key and value [2, B, K, E].
        """
        b, k = len(x), self._key_values
        heads = self._project(self._before(x)).view(b, -1, self._size)  # [B, K * R + 2 * K, E]
        turned = heads[:, :-k]
        if self._q_norm is not None and self._k_norm is not None:
            turned = torch.cat([self._q_norm(turned[:, :-k]), self._k_norm(turned[:, -k:])], dim=1)
        turned = torch.addcmul(turned * cos, turned.roll(self._size // 2, -1), sin)
        query = (turned[:, :-k] * self._scale).view(b, k, -1, self._size)
        return query, torch.stack([turned[:, -k:], heads[:, -k:]])

    def rest(self, x: Tensor, seen: Tensor) -> Tensor:
        """[B, D] after the layer, from that before it and what attention saw."""
        x = x + self._out(seen)
        y = self._between(x)
        return x + self._down(self._act(self._gate(y)).mul_(self._up(y)))


def _norm(module: Any) -> _Call:
    """RMS norm, x / sqrt(mean(x^2) + eps) times the weight: in four calls in float32."""
    weight, eps = module.weight, module.variance_epsilon
    if weight.dtype != torch.float32:
        return lambda x: rms_norm(x, weight.shape, weight, eps)
    size = weight.numel()  # sqrt(mean(x^2) + eps) = hypot(|x|, sqrt(D eps)) / sqrt(D)
    least, scaled = weight.new_tensor((size * eps) ** 0.5), weight * size**0.5
    return lambda x: (x / vector_norm(x, dim=-1, keepdim=True).hypot_(least)).mul_(scaled)


def _linear(module: Any) -> _Call:
    if not is_plain(module):
        return lambda x: module(x)
    weight, bias = module.weight, module.bias
    return lambda x: linear(x, weight, bias)


def _joined(*modules: Any) -> _Call:
    """Several linear layers of one input, their outputs end to end.

    As one matrix product where they are plain, of a copy of their weights, which lives as long as
    the decoder: less than a sixth of the model's.
    """
    if not all(map(is_plain, modules)) or len({module.bias is None for module in modules}) > 1:
        calls = [_linear(module) for module in modules]
        return lambda x: torch.cat([call(x) for call in calls], dim=-1)
    weight = torch.cat([module.weight for module in modules])
    bias = None if modules[0].bias is None else torch.cat([module.bias for module in modules])
    return lambda x: linear(x, weight, bias)
