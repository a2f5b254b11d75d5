"""Llama-like models by their weights, with a fraction of the passes over memory that modules take.

On a CPU the matrix products of a small model take half of a training step, and most of the rest
goes into norms and rotations: written as their formulas, and differentiated operation by
operation, they read and write all hidden states some twenty times a layer. Here each is one
function with its own derivative (RMS norm, arXiv 1910.07467; rotary positions, arXiv 2104.09864).
Whether the whole is the model's own is not taken on trust: see
:func:`~assay.grpo.model.forward.choose_forward` and
:func:`~assay.grpo.sampling.decoder.choose_decoder`.

Shapes: N tokens, D hidden size, H heads, K key-value heads, E head size.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.linalg import vector_norm
from torch.utils.checkpoint import checkpoint

from .precision import computed_dtype
from .prefix_attention import Layout, attend
from .product import product
from .wrapped import causal_lm

_MODELS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_FIXED_ROTATIONS = ("default", "linear", "llama3", "yarn")  # others change with the length


def misfit(model: Any) -> str | None:
    """Why a model's layers cannot be computed by their weights; ``None`` where they can.

    Linear layers that are more than a weight and a bias (adapters, quantised ones, hooks) are no
    hindrance: they are called as they are.
    """
    kind = type(model)
    if kind.__name__ not in _MODELS or not kind.__module__.startswith("transformers."):
        return f"no hand-written layer fits {kind.__name__}"
    if model.training:
        return "hand-written layers drop nothing out: call model.eval()"
    for part in (part for layer in model.model.layers for part in (layer.self_attn, layer.mlp)):
        if not type(part).__module__.startswith("transformers."):
            return f"hand-written layers would pass {type(part).__name__} by"
    if any(map(changes, (model.model, *_norms(model.model), *_attentions(model.model)))):
        return "hand-written layers would pass hooks by"
    if model.model.rotary_emb.rope_type not in _FIXED_ROTATIONS:
        return f"{model.model.rotary_emb.rope_type!r} rotations change with the length"
    return None


def changes(module: Any) -> int:
    """How often a module was told to do something else than its class does: hooks and the like."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(module, kind)) for kind in kinds) + ("forward" in vars(module))


def is_plain(module: Any) -> bool:
    """Whether calling a linear layer is nothing but a product and a sum."""
    return type(module) is torch.nn.Linear and not changes(module)


def trains_by_weights(model: Any) -> bool:
    """Whether :func:`hidden_states` is for this model as it is now."""
    plain = causal_lm(model)
    if misfit(plain) is not None:
        return False
    # In less than float32 the model's own norms round in between.
    wide = {computed_dtype(plain), plain.model.norm.weight.dtype} <= {torch.float32, torch.float64}
    layers = plain.model.layers
    windows = any(_window(layer.self_attn) is not None for layer in layers)
    return wide and not windows and not any("forward" in vars(layer) for layer in layers)


def _window(attention: Any) -> int | None:
    """How far back a layer looks; Mistral's layers ask the config, Qwen's know it themselves."""
    found: int | None = getattr(
        attention, "sliding_window", getattr(attention.config, "sliding_window", None)
    )
    return found


def hidden_states(model: Any, ids: Tensor, positions: Tensor, layout: Layout) -> Tensor:
    """Hidden states after the last norm, with their gradient, of tokens that predict a reply's.

    The last layer computes no more of a prompt's other tokens than their keys and values: one
    part in L of a prompt's computation, of L layers, nearly falls away.

    Args:
        model: one that :func:`trains_by_weights`.
        ids: [N], prompts and then replies.
        positions: [N].
        layout: which token may look at which.

    Returns:
        [M, D], in the order of :meth:`~assay.grpo.model.prefix_attention.Layout.predicting`.
    """
    body = causal_lm(model).model
    x: Tensor = body.embed_tokens(ids)
    cos, sin = (table[0, :, None] for table in body.rotary_emb(x, positions[None]))  # [N, 1, E]
    half = sin.shape[-1] // 2
    sin = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)
    # [N, H, E]: products of tensors of one shape take half as long.
    cos, sin = (table.repeat(1, body.config.num_attention_heads, 1) for table in (cos, sin))
    last = body.layers[-1]
    for layer in body.layers:
        asking = layout.predicting() if layer is last else None
        run = partial(_through, layer, cos=cos, sin=sin, layout=layout, asking=asking)
        again = layer.gradient_checkpointing and torch.is_grad_enabled()
        x = checkpoint(run, x, use_reentrant=False) if again else run(x)
    layout.asked.append(True)
    return _norm(body.norm, x)


def _through(layer: Any, x: Tensor, **given: Any) -> Tensor:
    """Call a layer as the module it is, so that its hooks run: shards are made whole by one."""
    layer.forward = partial(_layer, layer, **given)
    try:
        found: Tensor = torch.nn.Module.__call__(layer, x)
    finally:
        del layer.forward
    return found


def _layer(
    layer: Any, x: Tensor, *, cos: Tensor, sin: Tensor, layout: Layout, asking: Tensor | None
) -> Tensor:
    """[M, D] after a layer of the tokens [M] that ask, or all; from [N, D] before it."""
    normed = _norm(layer.input_layernorm, x)
    seen = _look(layer.self_attn, normed, cos, sin, layout, asking)
    x = seen + (x if asking is None else x.index_select(0, asking))
    return x + _gated(layer.mlp, _norm(layer.post_attention_layernorm, x), layout)


def _gated(mlp: Any, x: Tensor, layout: Layout) -> Tensor:
    if changes(mlp):
        found: Tensor = mlp(x)
        return found
    gate = mlp.act_fn(_linear(mlp.gate_proj, x, layout))
    return _linear(mlp.down_proj, gate * _linear(mlp.up_proj, x, layout), layout)


def _linear(module: Any, x: Tensor, layout: Layout) -> Tensor:
    if layout.regular and is_plain(module):
        return product(x, module.weight, module.bias)
    found: Tensor = module(x)
    return found


def _look(
    attention: Any, x: Tensor, cos: Tensor, sin: Tensor, layout: Layout, asking: Tensor | None
) -> Tensor:
    """What the tokens that ask take from those [N, D] that they may look at. [M, D]."""

    def project(by: Any, x: Tensor) -> Tensor:
        return _linear(by, x, layout).view(len(x), -1, attention.head_dim)

    key, value = project(attention.k_proj, x), project(attention.v_proj, x)
    angles = [cos, sin]
    if asking is not None:
        x, cos, sin = (part.index_select(0, asking) for part in (x, cos, sin))
    query = project(attention.q_proj, x)
    if hasattr(attention, "q_norm"):
        query, key = _norm(attention.q_norm, query), _norm(attention.k_norm, key)
    angles = [table[:, : key.shape[1]] for table in angles]
    query, key = _Rotated.apply(query, cos, sin), _Rotated.apply(key, *angles)  # type: ignore[no-untyped-call]  # torch
    if layout.kept is not None:
        layout.kept.append((key, value))
    groups = query.shape[1] // key.shape[1]
    if groups > 1:  # grouped-query attention
        key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
    seen = attend(query, key, value, layout=layout, scale=attention.scaling)
    return _linear(attention.o_proj, seen.flatten(1), layout)


def _norm(module: Any, x: Tensor) -> Tensor:
    found: Tensor = _Normed.apply(x, module.weight, module.variance_epsilon)  # type: ignore[no-untyped-call]  # torch
    return found


class _Normed(torch.autograd.Function):
    """RMS norm: y = w u with u = x r and r = 1 / sqrt(mean(x^2) + eps).

    Backward dx = r (w dy - x r^2 mean(w dy x)), dw = sum(dy x r).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        size = x.shape[-1]
        r = vector_norm(x, dim=-1, keepdim=True).square_().div_(size).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, r)
        normed: Tensor = (x * r).mul_(weight)
        return normed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, r = ctx.saved_tensors
        (d_y,) = gradients
        along = d_y * x
        d_weight = r.flatten() @ along.flatten(0, -2) if ctx.needs_input_grad[1] else None
        mean = (along @ weight)[..., None].mul_(r).mul_(r).div_(x.shape[-1])
        d_x = torch.mul(d_y, weight, out=along)  # whose values are used up
        return d_x.addcmul_(x, mean, value=-1).mul_(r), d_weight, None


class _Rotated(torch.autograd.Function):
    """Rotary positions: each pair of numbers, half a head apart, turned by its token's angle.

    Backward turns the other way. Of ``sin`` the first half is negative: what is rolled after the
    product has the signs of the other way.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return x.roll(x.shape[-1] // 2, -1).mul_(sin).addcmul_(x, cos)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        (d,) = gradients
        return (d * sin).roll(d.shape[-1] // 2, -1).addcmul_(d, cos), None, None


def _norms(body: Any) -> list[Any]:
    layers = [(x.input_layernorm, x.post_attention_layernorm) for x in body.layers]
    return [body.norm, *(norm for pair in layers for norm in pair)]


def _attentions(body: Any) -> list[Any]:
    """Attention modules and what is in them, but for linear layers."""
    of = [layer.self_attn for layer in body.layers]
    inside = [m for a in of for n, m in a.named_children() if not n.endswith("_proj")]
    return [*of, *inside]
