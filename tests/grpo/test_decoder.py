"""Decoders: the fast ones agree with the copied cache, or are not chosen."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)

from assay.grpo import sample
from assay.grpo.cpu import LlamaDecoder
from assay.grpo.decoder import CopyDecoder, SharedDecoder
from assay.grpo.loading import LoRA, add_lora
from assay.grpo.model import causal_lm, set_autocast
from assay.grpo.sampler import _STEPS_A_LOOK, DECODERS, _chosen, _closed_up, _probe, choose_decoder

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
SIZES: dict[str, Any] = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
}
PROMPTS = [[5, 6, 7, 8, 9], [3], [11, 12, 13]]


def build(config: Any) -> Any:
    torch.manual_seed(1)
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (LlamaConfig(**SIZES), "llama"),
        (Qwen2Config(**SIZES), "llama"),
        (Qwen3Config(**SIZES, head_dim=16), "llama"),
        (MistralConfig(**SIZES, sliding_window=None), "llama"),
        (MistralConfig(**SIZES, sliding_window=4), "copy"),
        (Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=4, max_window_layers=1),
         "copy"),
        (GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, bos_token_id=0,
                    eos_token_id=1), "shared"),
    ],
    ids=["llama", "qwen2", "qwen3", "mistral", "mistral-window", "qwen2-window", "gpt2"],
)  # fmt: skip
def test_the_fastest_that_is_right_is_chosen(config: Any, name: str) -> None:
    assert choose_decoder(build(config))[0] == name


@torch.no_grad()
@pytest.mark.parametrize("name", ["llama", "shared"])
@pytest.mark.parametrize("prompts", [PROMPTS, [[1, 2], [3, 4]]], ids=["ragged", "even"])
def test_it_follows_the_copied_cache_while_rows_leave(name: str, prompts: Any) -> None:
    """Over buffers that grow, prompts that nobody needs any more, and rows that change places."""
    model = build(LlamaConfig(**SIZES))
    copies = [4, 2, 3][: len(prompts)]
    steps = 150  # the buffers for replies begin with 64 tokens
    fast, slow = (make(model, prompts, copies, steps) for make in (DECODERS[name], CopyDecoder))
    generator = torch.Generator().manual_seed(0)
    for t in range(steps):
        rows = len(slow.logits)
        assert torch.allclose(fast.logits, slow.logits, atol=1e-4)
        if t in (0, 3, 70, 100, 140) and rows > 1:
            kept = torch.tensor(_closed_up(rows, [i for i in range(rows) if i % 4 != t % 3]))
            fast.keep(kept)
            slow.keep(kept)
            assert torch.allclose(fast.logits, slow.logits, atol=1e-4)
        tokens = torch.randint(100, (len(slow.logits),), generator=generator)
        fast.feed(tokens)
        slow.feed(tokens)
    assert len(slow.logits) < 4


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SIZES, tie_word_embeddings=True),
        LlamaConfig(**SIZES, head_dim=12, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-2),
        LlamaConfig(**SIZES, max_position_embeddings=64, rope_parameters={
            "rope_type": "yarn", "factor": 4.0, "rope_theta": 100.0}),
        MistralConfig(**SIZES, sliding_window=None, hidden_act="gelu"),
        Qwen2Config(**SIZES),
        Qwen3Config(**SIZES, head_dim=16),
    ],
    ids=["llama", "llama-biases", "llama-yarn", "mistral", "qwen2", "qwen3"],
)  # fmt: skip
def test_hand_written_arithmetic_is_the_models(config: Any) -> None:
    """With weights that are none of those that a fresh model has: norms of 1, biases of 0."""
    model = build(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    found, wanted = (_probe(model, make) for make in (LlamaDecoder, CopyDecoder))
    for a, b in zip(found, wanted, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, bos_token_id=0,
                    eos_token_id=1), "fits GPT2"),
        (Gemma2Config(**SIZES, head_dim=8), "fits Gemma2"),
        (LlamaConfig(**SIZES, rope_parameters={
            "rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}), "change with the length"),
    ],
    ids=["gpt2", "gemma2", "dynamic"],
)  # fmt: skip
def test_others_are_not_decoded_by_hand(config: Any, message: str) -> None:
    model = build(config)
    with pytest.raises(ValueError, match=message):
        LlamaDecoder(model, PROMPTS, [1, 1, 1], 4)
    assert choose_decoder(model)[0] != "llama"


def test_layers_that_are_more_than_a_product_are_called() -> None:
    """Adapters and hooks work as they do in the model."""
    model = build(Qwen2Config(**SIZES))
    layer = model.model.layers[1]
    hooks = [
        module.register_forward_hook(lambda module, given, found: found * 1.5)
        for module in (layer.self_attn.k_proj, layer.mlp.up_proj)
    ]
    found, wanted = (_probe(model, make) for make in (LlamaDecoder, CopyDecoder))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, wanted, strict=True))
    assert choose_decoder(model)[0] == "llama"
    hooks.append(layer.register_forward_hook(lambda module, given, found: found * 1.5))
    assert choose_decoder(model)[0] == "shared"  # it calls the layer itself
    for hook in hooks:
        hook.remove()
    assert choose_decoder(model)[0] == "llama"


def test_a_part_that_is_replaced_after_the_first_sample_is_called() -> None:
    model = build(LlamaConfig(**SIZES))
    assert choose_decoder(model)[0] == "llama"

    class Halved(torch.nn.Module):
        def __init__(self, mlp: torch.nn.Module) -> None:
            super().__init__()
            self.mlp = mlp

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.mlp(x) / 2

    layer = model.model.layers[0]
    layer.mlp = Halved(layer.mlp)
    name, make = choose_decoder(model)
    assert name == "shared"
    found, wanted = (_probe(model, make) for make in (make, CopyDecoder))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, wanted, strict=True))


def test_adapters_are_decoded_by_hand() -> None:
    model = add_lora(build(LlamaConfig(**SIZES)), LoRA(rank=4))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.5)
    plain = causal_lm(model)
    assert choose_decoder(plain)[0] == "llama"
    found, wanted = (_probe(plain, make) for make in (LlamaDecoder, CopyDecoder))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, wanted, strict=True))
    with model.disable_adapter():
        without = _probe(plain, LlamaDecoder)
    assert (without[0] - found[0]).abs().max() > 0.01


class _Keeping(torch.nn.Linear):
    """Keeps what it makes of its weight, for each number of rows: some quantised layers do."""

    def __init__(self, like: torch.nn.Linear) -> None:
        super().__init__(like.in_features, like.out_features, bias=False)
        self.kept: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) not in self.kept:
            self.kept[len(x)] = self.weight.detach() * 1
        return torch.nn.functional.linear(x, self.kept[len(x)])


def test_what_a_layer_keeps_while_sampling_can_be_trained_with() -> None:
    """Torch refuses to train with tensors that were made in inference mode."""
    model = build(LlamaConfig(**SIZES))
    attention = model.model.layers[0].self_attn
    attention.v_proj = keeping = _Keeping(attention.v_proj)
    assert choose_decoder(model)[0] == "llama"
    keeping.kept.clear()
    sample(model, [PROMPTS[0]], max_new_tokens=3)
    assert 1 in keeping.kept  # a row of one token, as is a batch of one sequence
    model(input_ids=torch.tensor([PROMPTS[0]])).logits.square().mean().backward()
    assert attention.q_proj.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("autocast", [False, True], ids=["bfloat16", "autocast"])
def test_half_precision_is_decoded_by_hand(autocast: bool) -> None:
    model = build(Qwen3Config(**SIZES, head_dim=16))
    exact = _probe(model, CopyDecoder)
    if autocast:
        set_autocast(model, torch.bfloat16)
    else:
        model.to(torch.bfloat16)
    assert choose_decoder(model)[0] == "llama"
    for a, b in zip(_probe(model, LlamaDecoder), exact, strict=True):
        assert 0 < (a - b).abs().max() < 0.05


def test_tokens_that_are_impossible_do_not_hide_what_is_right() -> None:
    """A logit of minus infinity is no difference where both have it."""
    model = build(LlamaConfig(**SIZES))

    def forbid(module: Any, given: Any, found: torch.Tensor) -> torch.Tensor:
        return found.index_fill(-1, torch.tensor([7]), -torch.inf)

    model.lm_head.register_forward_hook(forbid)
    assert choose_decoder(model)[0] == "llama"


def test_a_second_turn_is_decoded_as_one_prompt() -> None:
    """Going on from a reply's own tokens, so that each row has a prompt of its own."""
    model = build(LlamaConfig(**SIZES))
    first = sample(model, [PROMPTS[0]] * 4, max_new_tokens=6, seed=1)
    prompts = [[*PROMPTS[0], *s.ids, 9] for s in first]
    again = sample(model, prompts, max_new_tokens=6, seed=2)
    with torch.no_grad():
        for prompt, reply in zip(prompts, again, strict=True):
            logits = model(input_ids=torch.tensor([prompt + reply.ids])).logits[0]
            steps = logits[len(prompt) - 1 : -1].log_softmax(-1)
            wanted = steps.gather(1, torch.tensor(reply.ids)[:, None])[:, 0]
            assert reply.logprobs == pytest.approx(wanted.tolist(), abs=1e-5)


def test_a_prompt_is_not_copied_to_its_replies() -> None:
    model = build(LlamaConfig(**SIZES))
    with torch.no_grad():
        decoder = SharedDecoder(model, [[1] * 50], [16], 8)
        decoder.feed(torch.zeros(16, dtype=torch.long))
    kept = [*(x for layer in decoder._prompts for x in layer), *decoder._replies]
    # 2 layers, keys and values, 2 heads of 8: 50 tokens once, and room for 4 of 16 replies
    assert sum(x.numel() for x in kept) == 2 * 2 * 2 * 8 * (50 + 16 * 4)


def test_buffers_grow_by_a_few_tokens_and_later_double() -> None:
    """Doubled from 128 tokens on; none past the end."""
    model = build(LlamaConfig(**SIZES))
    rooms = []
    with torch.no_grad():
        decoder = SharedDecoder(model, [[1, 2]], [2], 300)
        for _ in range(300):
            decoder.feed(torch.zeros(2, dtype=torch.long))
            rooms.append(decoder._replies[0].shape[3])
    assert sorted(set(rooms)) == [*range(4, 129, 4), 256, 300]


def test_the_choice_is_made_again_where_the_model_changes() -> None:
    model = build(LlamaConfig(**SIZES, attention_dropout=0.5))
    assert choose_decoder(model)[0] == "llama"
    model.train()  # it drops out, which the shared one does not
    assert choose_decoder(model)[0] == "copy"
    model.eval()
    assert choose_decoder(model)[0] == "llama"


@pytest.mark.parametrize("name", ["llama", "shared", "copy"])
@pytest.mark.parametrize("steps", [1, 3])
def test_samples_do_not_depend_on_how_they_are_made(
    name: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither on the decoder, nor on how often the host looks who is done."""
    model = build(LlamaConfig(**SIZES))
    prompts = [p for p in PROMPTS for _ in range(6)]
    ask: dict[str, Any] = {"max_new_tokens": 10, "eos_ids": range(30), "seed": 2}
    wanted = sample(model, prompts, **ask)
    assert {s.finish for s in wanted} == {"stop", "length"}
    monkeypatch.setitem(_STEPS_A_LOOK, "cpu", steps)
    monkeypatch.setitem(_chosen, model, (_chosen[model][0], name))
    assert choose_decoder(model)[0] == name
    found = sample(model, prompts, **ask)
    assert [(s.ids, s.finish) for s in found] == [(s.ids, s.finish) for s in wanted]
    for a, b in zip(found, wanted, strict=True):
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)


def test_rows_close_up_with_as_few_moves_as_can_be() -> None:
    assert _closed_up(6, [0, 2, 3, 5]) == [0, 5, 2, 3]
    assert _closed_up(4, [2, 3]) == [3, 2]
    assert _closed_up(3, [0, 1, 2]) == [0, 1, 2]
