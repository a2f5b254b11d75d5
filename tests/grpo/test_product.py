"""Products by oneDNN: what torch's linear gives, outputs and gradients."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear
from transformers import LlamaConfig, LlamaForCausalLM

from assay.grpo import Batch, Row
from assay.grpo.model import llama
from assay.grpo.model import product as kernels
from assay.grpo.model.forward import shared_forward
from assay.grpo.model.product import kernel_agrees, product
from assay.grpo.model.recompute import set_checkpointing

torch.set_num_threads(1)


def leaf(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, requires_grad=True)


@pytest.mark.parametrize("tokens", [3, 2048], ids=["small", "large"])
@pytest.mark.parametrize("biased", [True, False])
def test_a_product_is_torchs_linear(tokens: int, biased: bool) -> None:
    """The larger one, of 2^24 multiplications, is oneDNN's where the processor has AVX-512."""
    x, weight = leaf(tokens, 64), leaf(128, 64, seed=1)
    leaves = [x, weight, leaf(128, seed=2)] if biased else [x, weight]
    given = torch.randn(tokens, 128, generator=torch.Generator().manual_seed(3))
    found, wanted = (
        [y.detach(), *torch.autograd.grad(y, leaves, given)]
        for y in (product(*leaves), linear(*leaves))
    )
    by = type(product(*leaves).grad_fn).__name__
    assert (by == "_ProductBackward") == (tokens == 2048 and kernel_agrees())
    for a, b in zip(found, wanted, strict=True):
        assert float((a - b).norm() / b.norm()) < 1e-6


def test_weights_that_are_frozen_get_no_gradient() -> None:
    x, weight = leaf(2048, 64), leaf(128, 64, seed=1).detach()
    (d_x,) = torch.autograd.grad(product(x, weight).sum(), x)
    assert torch.allclose(d_x, weight.sum(0).expand_as(d_x), atol=1e-4)
    free = leaf(128, 64, seed=1)
    product(x.detach(), free).sum().backward()
    assert torch.allclose(free.grad, x.detach().sum(0).expand_as(free), atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_numbers_stay_with_torchs_own_kernel(dtype: torch.dtype) -> None:
    x, weight = leaf(2048, 64).to(dtype), leaf(128, 64, seed=1).to(dtype)
    assert torch.equal(product(x, weight), linear(x, weight))


def test_autocast_is_obeyed() -> None:
    x, weight = leaf(2048, 64), leaf(128, 64, seed=1)
    with torch.autocast("cpu", torch.bfloat16):
        found, wanted = product(x, weight), linear(x, weight)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, wanted)


@pytest.mark.parametrize(
    ("first", "second", "regular"),
    [((2, 2), (2, 2), True), ((2, 2), (3, 3), False), ((2, 2), (2, 3), False)],
    ids=["one length", "two lengths of prompts", "two lengths of replies"],
)
def test_kernels_are_compiled_for_batches_of_one_length(
    monkeypatch: pytest.MonkeyPatch, first: tuple[int, int], second: tuple[int, int], regular: bool
) -> None:
    """Of prompt and reply; otherwise each batch would have sizes of its own."""
    used: list[int] = []
    monkeypatch.setattr(llama, "product", lambda x, *rest: used.append(len(x)) or product(x, *rest))
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_attention_heads=4, **sizes)).eval()
    rows = [
        Row((5,) * prompt, (8,) * reply, (True,) * reply, (0.0,) * reply, (0.0,) * reply)
        for prompt, reply in (first, second)
    ]
    shared_forward(model, Batch.of([[row] for row in rows]), 1.0)
    assert bool(used) == regular


def test_layers_learn_the_same_by_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every product of a model by oneDNN, with layers computed again backward and without."""
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_attention_heads=4, **sizes)).eval()
    row = Row((5, 6, 7), (8, 9), (True,) * 2, (0.0,) * 2, (0.0,) * 2)

    def gradient() -> torch.Tensor:
        model.zero_grad()
        shared_forward(model, Batch.of([[row, row]]), 1.0)[0].pow(2).sum().backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    wanted = gradient()
    monkeypatch.setattr(kernels, "_LEAST", 0)
    assert float((gradient() - wanted).norm() / wanted.norm()) < 1e-6
    set_checkpointing(model, enabled=True)
    assert float((gradient() - wanted).norm() / wanted.norm()) < 1e-6
