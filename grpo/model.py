"""How a model computes: inside peft's wrapper, in half precision, with layers computed again.

Mixed precision is torch's autocast: weights, their gradients and the optimizer's state stay
float32, as a bfloat16 weight loses every update of less than 1/512 of it. The sampler and the
trainer must round alike, or the ratio of the first update is not 1: both take the same context
from the model, the head included.

Gradient checkpointing (Chen et al., arXiv 1604.06174) keeps each layer's input alone. transformers
does it in training mode only, which would also switch dropout on; here the model stays in eval
mode, and each layer is switched for the moment of its call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer


def is_adapted(model: Any) -> bool:
    """Return whether a model is peft's wrapper; the model inside has a ``peft_config`` too."""
    return hasattr(model, "peft_config") and hasattr(model, "get_base_model")


def causal_lm(model: Any) -> Any:
    """Return the transformers model itself; its layers hold the adapters, if it has any."""
    return model.get_base_model() if is_adapted(model) else model


_MARK = "_assay_autocast"
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def set_autocast(model: Any, dtype: torch.dtype | None) -> None:
    """Compute sampling and log-probabilities in ``dtype`` from now on; None ends it.

    It must be bfloat16: float16 needs a loss scale, which is not here.
    """
    if dtype not in (None, torch.bfloat16):
        raise ValueError(f"autocast must be torch.bfloat16 or None, got {dtype}")
    setattr(causal_lm(model), _MARK, dtype)


def autocast_context(model: Any) -> AbstractContextManager[Any]:
    """Return the context in which to call a model or a part of it."""
    plain = causal_lm(model)
    dtype = getattr(plain, _MARK, None)
    return nullcontext() if dtype is None else torch.autocast(plain.device.type, dtype)


def computed_dtype(model: Any) -> torch.dtype:
    """Return the dtype of matrix products."""
    plain = causal_lm(model)
    found: torch.dtype = getattr(plain, _MARK, None) or next(plain.parameters()).dtype
    return found


@torch.no_grad()
def first_that_agrees(
    model: Any,
    candidates: Mapping[str, _T],
    probe: Callable[[_T], Sequence[Tensor]],
    yardstick: _T,
) -> str | None:
    """Return the name of the first candidate that agrees with the yardstick on a probe.

    Log-probabilities agree to 1e-3 nats, in half precision to 0.1; tokens that are impossible on
    both sides do not differ. None if no candidate agrees.
    """
    tolerance = 1e-3 if computed_dtype(model).itemsize > 2 else 0.1
    wanted = probe(yardstick)
    for name, candidate in candidates.items():
        try:
            pairs = zip(probe(candidate), wanted, strict=True)
            off = torch.stack([(a - b).masked_fill(a == b, 0.0).abs().max() for a, b in pairs])
        except Exception as error:  # whatever a model's modules raise, the yardstick still works
            _log.info("%r does not fit %s: %s", name, type(model).__name__, error)
            continue
        if float(off.max()) <= tolerance:  # not if it is NaN
            return name
        _log.info("%r is off by %.2g on %s", name, off.max(), type(model).__name__)
    return None


def set_checkpointing(model: Any, enabled: bool) -> None:
    """Switch :func:`gradient_checkpointing` on or off for all layers."""
    layers = _layers(model)
    if enabled and not layers:
        raise ValueError(
            f"{type(causal_lm(model)).__name__} has no layers for gradient checkpointing: "
            "load it without"
        )
    for layer in layers:
        layer.gradient_checkpointing = enabled


@contextmanager
def eval_mode(model: Any) -> Iterator[None]:
    """Put all modules into eval mode in the block: no dropout, and caches are used."""
    before = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in before.items():
            module.training = training


@contextmanager
def gradient_checkpointing(model: Any) -> Iterator[None]:
    """Keep only the inputs of layers that are switched on, in forward passes of the block."""
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
def attention_implementation(config: Any, name: str) -> Iterator[None]:
    """Use another attention implementation in the block."""
    before, config._attn_implementation = config._attn_implementation, name
    try:
        yield
    finally:
        config._attn_implementation = before


def _checkpointer(layer: Any, config: Any) -> Callable[..., Any]:
    def run(call: Callable[..., Any], *given: Any) -> Any:
        layer.training = False  # a layer may ask for dropout by itself
        # Backward comes when the model is back to its own attention.
        contexts = nullcontext(), attention_implementation(config, config._attn_implementation)
        return checkpoint(call, *given, use_reentrant=False, context_fn=lambda: contexts)

    return run


def _layers(model: Any) -> list[Any]:
    return [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
