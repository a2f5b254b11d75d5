"""Products with a layer's weights on a CPU, by oneDNN where that takes a tenth less time.

torch multiplies matrices of float32 by MKL, which keeps to shorter vectors on processors that
are not Intel's; oneDNN, which torch brings too, uses AVX-512 on all that have it. For each new
shape it compiles a kernel, in some half a millisecond and most of a MiB which stays: that pays
for large products of shapes that come again, as where all replies are of one length.
What is used depends on shapes and on the processor, and never on a measured time: a run that is
resumed must compute what the unbroken one would have.

Shapes: N tokens, I inputs and O outputs of a layer.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

_log = logging.getLogger(__name__)
_onednn: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
_LEAST = 1 << 24  # multiplications that a product must have for a kernel of its own


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias``, as :func:`torch.nn.functional.linear`, with the same gradients.

    Args:
        x: [N, I].
        weight: [O, I].
        bias: [O].

    Returns:
        [N, O].
    """
    if not _is_large(x, weight):
        return linear(x, weight, bias)
    found: Tensor = _Product.apply(x, weight, bias)  # type: ignore[no-untyped-call]  # torch
    return found


def _is_large(x: Tensor, weight: Tensor) -> bool:
    wide = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu"
    large = wide and len(x) * weight.numel() >= _LEAST
    return large and not torch.is_autocast_enabled("cpu") and kernel_agrees()


@functools.cache
@torch.no_grad()
def kernel_agrees() -> bool:
    """Whether oneDNN's kernel, which is no public interface of torch's, is what we take it for.

    Compared once in a process with the public way, and not asked where it would gain nothing.
    """
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(n, generator=generator) for n in ((5, 3), (4, 3), (4,)))
    try:
        agree = torch.allclose(_by_onednn(x, weight, bias), linear(x, weight, bias), atol=1e-5)
        turned = _by_onednn(x, weight.t().contiguous().t(), None)
    except (TypeError, RuntimeError, AttributeError) as error:
        _log.info("products stay with torch's own kernel: %s", error)
        return False
    return agree and torch.allclose(turned, linear(x, weight), atol=1e-5)


def _by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = _onednn(x, weight, bias, "none", [], "")
    return found


class _Product(torch.autograd.Function):
    """y = x W' + b. Backward dx = dy W, dW = dy' x and db = sum(dy)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _by_onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (d_y,) = gradients
        wanted = ctx.needs_input_grad
        d_x = _by_onednn(d_y, weight.t(), None) if wanted[0] else None
        d_weight = d_y.t() @ x if wanted[1] else None  # MKL is as quick where a sum is long
        return d_x, d_weight, d_y.sum(0) if wanted[2] else None
