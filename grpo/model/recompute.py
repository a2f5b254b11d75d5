"""Gradient checkpointing: keep each layer's input alone, and compute the layer again backward.

(Chen et al., arXiv 1604.06174.) A third more computation, for a fraction of the memory.
transformers does it in training mode only, which would also switch dropout on; here the model
stays in eval mode, and each layer is told for the moment of its call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from .wrapped import causal_lm


def set_checkpointing(model: Any, enabled: bool) -> None:
    """Switch it on or off for all layers; :func:`checkpointed` then applies it.

    Raises:
        ValueError: the model has no layers that it can be applied to.
    """
    layers = _layers(model)
    if enabled and not layers:
        raise ValueError(
            f"{type(causal_lm(model)).__name__} has no layers for gradient checkpointing: "
            "load it without"
        )
    for layer in layers:
        layer.gradient_checkpointing = enabled


@contextmanager
def checkpointed(model: Any) -> Iterator[None]:
    """Within it, a forward pass keeps the inputs of those layers that are switched on, alone."""
    layers = [layer for layer in _layers(model) if layer.gradient_checkpointing]
    if not layers or not torch.is_grad_enabled():
        yield
        return
    before = [layer.training for layer in layers]
    config = causal_lm(model).config.get_text_config()
    for layer in layers:
        layer.training = True  # asks transformers for it; the modules inside stay in eval mode
        layer._gradient_checkpointing_func = _checkpointer(layer, config)
    try:
        yield
    finally:
        for layer, training in zip(layers, before, strict=True):
            layer.training = training


@contextmanager
def attention(config: Any, name: str) -> Iterator[None]:
    """Have a model use another attention implementation for a while."""
    before, config._attn_implementation = config._attn_implementation, name
    try:
        yield
    finally:
        config._attn_implementation = before


def _checkpointer(layer: Any, config: Any) -> Callable[..., Any]:
    def run(call: Callable[..., Any], *given: Any) -> Any:
        layer.training = False  # a layer may ask for dropout by itself
        return checkpoint(call, *given, use_reentrant=False, context_fn=contexts)

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        # Backward comes when the model is back to its own attention.
        return nullcontext(), attention(config, config._attn_implementation)

    return run


def _layers(model: Any) -> list[Any]:
    return [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
