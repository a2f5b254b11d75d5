"""Mixed precision: weights in float32, matrix products in half precision, by torch's autocast.

A model whose weights themselves are bfloat16 cannot learn at the rates that are usual here: a
bfloat16 has 8 bits, so that an update of less than 1/512 of a weight is lost. With autocast the
weights, their gradients and the optimizer's state stay float32.

The sampler and the trainer must round alike, or the ratio of the first update is not 1. Both
therefore take the same context from the model, the head included.
"""

from __future__ import annotations

import copy
import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from .wrapped import causal_lm

_MARK = "_assay_autocast"


def set_autocast(model: Any, dtype: torch.dtype | None) -> None:
    """Compute in ``dtype`` from now on, whoever calls the model; None ends it.

    Raises:
        ValueError: ``dtype`` is not bfloat16. (float16 needs a loss scale, which is not here.)
    """
    if dtype not in (None, torch.bfloat16):
        raise ValueError(f"autocast must be torch.bfloat16 or None, got {dtype}")
    plain = causal_lm(model)
    plain.__dict__.pop("forward", None)
    setattr(plain, _MARK, dtype)
    if dtype is None:
        return
    forward = plain.forward

    @functools.wraps(forward)
    def with_autocast(*arguments: Any, **options: Any) -> Any:
        with computing(plain):
            return forward(*arguments, **options)

    plain.forward = with_autocast


def computing(model: Any) -> AbstractContextManager[Any]:
    """The context in which a model's modules are called when not through the model itself."""
    plain = causal_lm(model)
    dtype = getattr(plain, _MARK, None)
    if dtype is None:
        return nullcontext()
    return torch.autocast(plain.device.type, dtype)


def computed_dtype(model: Any) -> torch.dtype:
    """What matrix products are computed in."""
    plain = causal_lm(model)
    found: torch.dtype = getattr(plain, _MARK, None) or next(plain.parameters()).dtype
    return found


def copy_model(model: Any) -> Any:
    """A copy that computes as the model does, and shares nothing with it."""
    dtype = getattr(causal_lm(model), _MARK, None)
    set_autocast(model, None)  # what wraps the call is bound to the one model
    copied = copy.deepcopy(model)
    for one in (model, copied):
        set_autocast(one, dtype)
    return copied
