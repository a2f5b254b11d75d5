"""Models that come inside another: peft's wrapper puts adapters into a transformers model."""

from __future__ import annotations

from typing import Any


def is_adapted(model: Any) -> bool:
    """Whether a model is peft's wrapper of one; the model inside has a ``peft_config`` too."""
    return hasattr(model, "peft_config") and hasattr(model, "get_base_model")


def causal_lm(model: Any) -> Any:
    """The transformers model itself; its layers hold the adapters, where there are any."""
    return model.get_base_model() if is_adapted(model) else model
