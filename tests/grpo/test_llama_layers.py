"""Layers computed by their weights: the derivatives, and what they are not used for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen3Config
from transformers.models.llama.modeling_llama import LlamaMLP

from assay.grpo import Batch, Row
from assay.grpo.model.forward import full_forward, shared_forward
from assay.grpo.model.llama import _Normed, _Rotated, trains_by_weights

torch.set_num_threads(1)

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def build(config: Any) -> Any:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)  # norms with weights other than 1
    return model


def batch() -> Batch:
    def row(prompt: tuple[int, ...], *reply: int) -> Row:
        n = len(reply)
        return Row(prompt, reply, (True,) * n, (0.0,) * n, (0.0,) * n)

    return Batch.of([[row((5, 6, 7), 8, 9, 10), row((5, 6, 7), 11)], [row((12,), 13, 14)]])


def gradient(model: Any, forward: Any, given: Batch | None = None) -> torch.Tensor:
    model.zero_grad()
    logprobs, entropy = forward(model, given or batch(), 1.0)
    (logprobs.pow(2).sum() + entropy.sum()).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def test_derivatives_agree_with_finite_differences() -> None:
    """In float64; the norm of heads too, and rotations by unequal angles."""
    generator = torch.Generator().manual_seed(0)

    def leaf(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    for shape in ((3, 4), (2, 3, 4)):
        assert torch.autograd.gradcheck(_Normed.apply, (leaf(*shape), leaf(4), 0.1))
    angles = torch.tensor([[[0.3, -1.2]], [[2.0, 0.7]]], dtype=torch.float64)
    cos, sin = angles.cos().repeat(1, 1, 2), torch.cat([-angles.sin(), angles.sin()], dim=-1)
    assert torch.autograd.gradcheck(_Rotated.apply, (leaf(2, 3, 4), cos, sin))


def test_a_norm_and_a_rotation_by_hand() -> None:
    """(3, 4) has the mean square 12.5; a quarter turn takes (1, 2) to (-2, 1)."""
    normed = _Normed.apply(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0]), 0.0)
    assert normed[0].tolist() == pytest.approx([3 / 12.5**0.5, 8 / 12.5**0.5])
    x, cos, sin = torch.tensor([[[1.0, 2.0]]]), torch.zeros(1, 1, 2), torch.tensor([[[-1.0, 1.0]]])
    assert _Rotated.apply(x, cos, sin)[0, 0].tolist() == [-2.0, 1.0]


@pytest.mark.parametrize("config", [LlamaConfig(**SIZES), Qwen3Config(**SIZES)])
def test_the_gradient_is_that_of_the_modules(config: Any) -> None:
    model = build(config)
    assert trains_by_weights(model)
    found, wanted = gradient(model, shared_forward), gradient(model, full_forward)
    assert float((found - wanted).norm() / wanted.norm()) < 1e-5


def test_replies_of_one_token_need_the_prompts_last_alone() -> None:
    model = build(LlamaConfig(**SIZES))
    one = Batch.of([[Row((5, 6, 7), (8,), (True,), (0.0,), (0.0,))] * 2])
    found, wanted = (gradient(model, f, one) for f in (shared_forward, full_forward))
    assert float((found - wanted).norm() / wanted.norm()) < 1e-5


def test_hooks_are_run() -> None:
    """A layer's own is; with one on a norm, the modules are called."""
    model = build(LlamaConfig(**SIZES))
    seen: list[str] = []
    model.model.layers[0].register_forward_hook(lambda *_: seen.append("layer"))
    model.model.layers[1].mlp.down_proj.register_forward_hook(lambda *_: seen.append("linear"))
    assert trains_by_weights(model)
    shared_forward(model, batch(), 1.0)
    assert seen == ["layer", "linear"]
    model.model.norm.register_forward_hook(lambda *_: seen.append("norm"))
    assert not trains_by_weights(model)
    shared_forward(model, batch(), 1.0)
    assert seen[2:] == ["layer", "linear", "norm"]


class Doubled(LlamaMLP):
    """A user's own: the same parts, put together otherwise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def test_a_layer_with_a_part_of_ones_own_goes_through_its_modules() -> None:
    model = build(LlamaConfig(**SIZES))
    before = gradient(model, full_forward)
    own = Doubled(model.config)
    own.load_state_dict(model.model.layers[1].mlp.state_dict())
    model.model.layers[1].mlp = own
    assert not trains_by_weights(model)
    found, wanted = gradient(model, shared_forward), gradient(model, full_forward)
    assert float((found - wanted).norm() / wanted.norm()) < 1e-5
    assert float((wanted - before).norm() / wanted.norm()) > 0.1


@pytest.mark.parametrize(
    "model",
    [
        build(LlamaConfig(**SIZES)).bfloat16(),
        build(LlamaConfig(**SIZES)).train(),
        build(MistralConfig(**SIZES, sliding_window=4096)),
        build(
            Qwen3Config(**SIZES, use_sliding_window=True, sliding_window=4096, max_window_layers=1)
        ),
    ],
    ids=["half precision", "training mode", "mistral's window", "qwen's window"],
)
def test_others_go_through_their_modules(model: Any) -> None:
    """A window too wide to be seen in a small batch, too."""
    assert not trains_by_weights(model)
