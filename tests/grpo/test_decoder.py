"""Decoders: the fast ones agree with the copied cache, or are not chosen."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)

from assay.grpo import sample
from assay.grpo.decoder import CopyDecoder, SharedDecoder, _chosen, choose_decoder
from assay.grpo.sampler import _STEPS_A_LOOK, _closed_up

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
        (LlamaConfig(**SIZES), "shared"),
        (Qwen2Config(**SIZES), "shared"),
        (Qwen3Config(**SIZES, head_dim=16), "shared"),
        (MistralConfig(**SIZES, sliding_window=None), "shared"),
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
@pytest.mark.parametrize("prompts", [PROMPTS, [[1, 2], [3, 4]]], ids=["ragged", "even"])
def test_it_follows_the_copied_cache_while_rows_leave(prompts: Any) -> None:
    """Over buffers that grow, prompts that nobody needs any more, and rows that change places."""
    model = build(LlamaConfig(**SIZES))
    copies = [4, 2, 3][: len(prompts)]
    steps = 150  # the buffers for replies begin with 64 tokens
    fast, slow = (make(model, prompts, copies, steps) for make in (SharedDecoder, CopyDecoder))
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


def test_tokens_that_are_impossible_do_not_hide_what_is_right() -> None:
    """A logit of minus infinity is no difference where both have it."""
    model = build(LlamaConfig(**SIZES))

    def forbid(module: Any, given: Any, found: torch.Tensor) -> torch.Tensor:
        return found.index_fill(-1, torch.tensor([7]), -torch.inf)

    model.lm_head.register_forward_hook(forbid)
    assert choose_decoder(model)[0] == "shared"


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
    assert choose_decoder(model)[0] == "shared"
    model.train()  # it drops out, which the shared one does not
    assert choose_decoder(model)[0] == "copy"
    model.eval()
    assert choose_decoder(model)[0] == "shared"


@pytest.mark.parametrize("name", ["shared", "copy"])
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
