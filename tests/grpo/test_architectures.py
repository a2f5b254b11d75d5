"""Models of many architectures, made tiny from their configs: each is right, or refused.

The yardstick is transformers' own: the logits of each row alone, and ``generate``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForCausalLM

from assay.envs import Episode
from assay.grpo import (
    Batch,
    GRPOConfig,
    Learner,
    ModelError,
    ModelPolicy,
    Row,
    choose_forward,
    load_model,
    read_metrics,
    sample,
)
from assay.grpo.loading import character_tokenizer
from assay.grpo.logprobs import full_forward
from assay.verifiers import Verdict

pytestmark = pytest.mark.slow

torch.set_num_threads(1)

WINDOW, ROPE, LONGEST = 16, 64, 128  # CASES cross the first alone
TOKENS: dict[str, Any] = {
    "vocab_size": 100,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
SIZES: dict[str, Any] = {
    **TOKENS,
    "hidden_size": 64,  # heads of 16, the least that flex attention's kernels take
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": LONGEST,
}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 24}
MAMBA: dict[str, Any] = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8}
DELTA: dict[str, Any] = {
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "layer_types": ["linear_attention", "full_attention"],
}
SLIDING: dict[str, Any] = {
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention"],
}


def rope(kind: str, **others: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1e4, **others}}


# The config class of transformers, and what it takes beside SIZES; None leaves a size out.
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {}),
    "llama3": ("LlamaConfig", rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=32)),
    "llama-yarn": ("LlamaConfig", rope(
        "yarn", factor=4.0, original_max_position_embeddings=32)),
    "llama-dynamic": ("LlamaConfig", {
        "max_position_embeddings": ROPE, **rope("dynamic", factor=4.0)}),
    "llama4-chunks": ("Llama4TextConfig", {
        "attention_chunk_size": WINDOW, "num_local_experts": 2, "head_dim": 16,
        "intermediate_size_mlp": 48, "no_rope_layers": [1, 0], "moe_layers": [1]}),
    "qwen2": ("Qwen2Config", {}),
    "qwen2-window": ("Qwen2Config", {
        "use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1}),
    "qwen3": ("Qwen3Config", {"head_dim": 16}),
    "mistral": ("MistralConfig", {"sliding_window": WINDOW}),
    "gemma2": ("Gemma2Config", {
        **SLIDING, "head_dim": 16, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0}),
    "gemma3": ("Gemma3TextConfig", {**SLIDING, "head_dim": 16, "query_pre_attn_scalar": 8}),
    "phi3-longrope": ("Phi3Config", {
        "original_max_position_embeddings": ROPE,
        **rope("longrope", short_factor=[1.0 + i / 10 for i in range(8)],
               long_factor=[2.0 + i / 2 for i in range(8)],
               original_max_position_embeddings=ROPE, factor=2.0)}),
    "gpt2": ("GPT2Config", {
        "hidden_size": None, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": LONGEST,
        "max_position_embeddings": None, "num_hidden_layers": None, "num_attention_heads": None,
        "num_key_value_heads": None, "intermediate_size": None}),
    "gpt-neox": ("GPTNeoXConfig", {"num_key_value_heads": None}),
    "gpt-oss": ("GptOssConfig", {
        **SLIDING, "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2,
        **rope("default")}),
    "olmo2": ("Olmo2Config", {}),
    "olmo3": ("Olmo3Config", SLIDING),
    "cohere2": ("Cohere2Config", {**SLIDING, "head_dim": 16}),
    "granite": ("GraniteConfig", {"logits_scaling": 3.0, "attention_multiplier": 0.3}),
    "bloom-alibi": ("BloomConfig", {
        "n_layer": 2, "n_head": 4, "num_hidden_layers": None, "num_attention_heads": None,
        "num_key_value_heads": None, "intermediate_size": None, "max_position_embeddings": None}),
    "opt": ("OPTConfig", {
        "ffn_dim": 48, "num_key_value_heads": None, "intermediate_size": None,
        "word_embed_proj_dim": 64}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3-moe": ("Qwen3MoeConfig", {"head_dim": 16, "num_experts": 4, **EXPERTS}),
    "jamba": ("JambaConfig", {
        "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
        "expert_layer_offset": 1, "num_experts": 2, "num_experts_per_tok": 1,
        "mamba_d_state": 8, "mamba_dt_rank": 4}),
    "bamba": ("BambaConfig", {
        **MAMBA, "mamba_n_heads": 16, "attn_layer_indices": [1], "mamba_n_groups": 1,
        "mamba_chunk_size": 16}),
    "falcon-h1": ("FalconH1Config", {
        **MAMBA, "mamba_d_ssm": 64, "mamba_n_groups": 1, "mamba_chunk_size": 16, "head_dim": 16}),
    "zamba2": ("Zamba2Config", {
        "hidden_size": 32, "mamba_d_state": 8, "mamba_headdim": 16, "n_mamba_heads": 4,
        "mamba_ngroups": 1, "chunk_size": 16, "num_mem_blocks": 1,
        "layers_block_type": ["mamba", "hybrid"],
        "hybrid_layer_ids": [1]}),
    "nemotron-h": ("NemotronHConfig", {
        "layers_block_type": ["mamba", "attention"], "mamba_num_heads": 8, "mamba_head_dim": 8,
        "ssm_state_size": 8, "n_groups": 1, "chunk_size": 16, "head_dim": 16}),
    "lfm2": ("Lfm2Config", {"layer_types": ["conv", "full_attention"]}),
    "qwen3-next": ("Qwen3NextConfig", {
        **DELTA, **EXPERTS, "num_experts": 4, "shared_expert_intermediate_size": 24}),
    "qwen3.5": ("Qwen3_5TextConfig", DELTA),
    "deepseek-v3": ("DeepseekV3Config", {
        "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
        "v_head_dim": 8, "n_routed_experts": 4, "n_group": 2, "topk_group": 1, **EXPERTS,
        "first_k_dense_replace": 1, "num_key_value_heads": 4}),
    "gemma4": ("Gemma4TextConfig", {
        **SLIDING, "head_dim": 16, "global_head_dim": 16, "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 100, "num_kv_shared_layers": 0}),
    "gpt-neo-local": ("GPTNeoConfig", {
        "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
        "window_size": WINDOW, "num_hidden_layers": None, "num_attention_heads": None,
        "num_key_value_heads": None}),
}  # fmt: skip
# Of these transformers keeps the past in a cache of their own, or pads prompts into it: rows of a
# batch would be sampled otherwise than they are trained.
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "rwkv": ("RwkvConfig", {
        "hidden_size": 32, "num_hidden_layers": 2, "context_length": LONGEST}),
    "xlstm": ("xLSTMConfig", {
        "hidden_size": 32, "num_hidden_layers": 2, "num_heads": 4,
        "chunkwise_kernel": "chunkwise--native_autograd", "step_kernel": "native",
        "sequence_kernel": "native_sequence__native"}),
    "mamba": ("MambaConfig", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}),
    "mamba2": ("Mamba2Config", {
        "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "num_heads": 8, "head_dim": 8,
        "n_groups": 1, "chunk_size": 16}),
    "recurrent_gemma": ("RecurrentGemmaConfig", {
        **SIZES, "max_position_embeddings": None, "num_hidden_layers": 3,
        "attention_window_size": WINDOW}),
    "minimax": ("MiniMaxConfig", {
        **SIZES, "head_dim": 16, "layer_types": ["linear_attention", "full_attention"],
        "num_local_experts": 2, "block_size": 16}),
}  # fmt: skip
LENGTH_DEPENDENT = ("llama-dynamic", "phi3-longrope")


def build(name: str, device: str = "cpu", **others: Any) -> Any:
    """The model, with weights that are none of those that a fresh one has: norms 1, biases 0."""
    kind, settings = ARCHITECTURES[name]
    settings = {k: v for k, v in {**SIZES, **settings, **others}.items() if v is not None}
    torch.manual_seed(1)
    config = getattr(transformers, kind)(**{"bos_token_id": None, **settings})
    model: Any = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
    model.generation_config.eos_token_id = None  # replies go on up to their limit
    return model.to(device)


def tokens(n: int, seed: int) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(3, 100, (n,), generator=generator).tolist())


def groups(*shapes: tuple[int, tuple[int, ...]]) -> list[list[Row]]:
    """Rows for (prompt tokens, reply tokens of each); every fifth token is the environment's."""
    found = []
    for number, (n, lengths) in enumerate(shapes):
        rows = []
        for m in lengths:
            written = tuple(t % 5 != 3 for t in range(m))
            reply = tokens(m, 100 * number + m)
            rows.append(Row(tokens(n, number), reply, written, (0.0,) * m, (1.0,) * m))
        found.append(rows)
    return found


# Prompts and rows on either side of the window and at its edge; within ROPE.
CASES = groups((3, (5, 1, 30)), (15, (1, 2, 4)), (20, (14, 3)), (40, (20, 1)))


def own_logprobs(model: Any, rows: list[list[Row]]) -> list[torch.Tensor]:
    """Of the policy's tokens of each row, by the model's own logits of that row alone."""
    found = []
    for row in (r for group in rows for r in group):
        ids = torch.tensor([[*row.prompt, *row.reply]], device=model.device)
        logprobs = model(input_ids=ids, use_cache=False).logits[0].float().log_softmax(-1)
        reply = ids[0, len(row.prompt) :, None]
        chosen = logprobs[len(row.prompt) - 1 : -1].gather(1, reply)
        found.append(chosen[torch.tensor(row.written), 0])
    return found


def picked_logprobs(model: Any, forward: Callable[..., Any], rows: Any) -> list[torch.Tensor]:
    """The same by a forward on one batch."""
    batch = Batch.of(rows, device=model.device)
    logprobs, _ = forward(model, batch, 1.0)
    return [
        logprobs[p, g][batch.mask[p, g]] for p, group in enumerate(rows) for g in range(len(group))
    ]


def gradient(model: Any, logprobs: list[torch.Tensor]) -> torch.Tensor:
    """Of a sum in which every token has another weight."""
    model.zero_grad()
    flat = torch.cat(logprobs)
    (flat * torch.linspace(-1, 1.5, len(flat), device=flat.device)).sum().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_log_probabilities_and_gradients_are_the_models_own(name: str, device: str) -> None:
    model = build(name, device)
    _, forward = choose_forward(model)
    wanted = own_logprobs(model, CASES)
    found = picked_logprobs(model, forward, CASES)
    for a, b in zip(found, wanted, strict=True):
        assert torch.allclose(a, b, atol=1e-4)
    slopes = gradient(model, wanted)
    off = gradient(model, found) - slopes
    assert float(off.norm() / slopes.norm()) < 1e-4


@torch.no_grad()
@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_the_most_likely_tokens_are_those_of_generate(name: str, device: str) -> None:
    """Two replies to each prompt of a batch, against each prompt alone, across the window."""
    model = build(name, device)
    prompts = [tokens(n, n) for n in (3, 14, 20, 40)]
    found = sample(model, [p for p in prompts for _ in "ab"], max_new_tokens=20, temperature=0.0)
    for i, prompt in enumerate(prompts):
        made = model.generate(
            torch.tensor([prompt], device=device), do_sample=False, max_new_tokens=20
        )
        wanted = made[0, len(prompt) :].tolist()
        assert found[2 * i].ids == found[2 * i + 1].ids == wanted


@torch.no_grad()
@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_tokens_are_sampled_with_the_log_probabilities_that_are_trained(
    name: str, device: str
) -> None:
    """Rows that are done leave the batch on the way."""
    model = build(name, device)
    prompts = [tokens(n, n) for n in (3, 3, 14, 14, 40)]
    replies = sample(model, prompts, max_new_tokens=20, eos_ids=range(15), seed=3)
    assert len({len(reply.ids) for reply in replies}) > 1
    for prompt, reply in zip(prompts, replies, strict=True):
        n = len(reply.ids)
        row = Row(prompt, tuple(reply.ids), (True,) * n, tuple(reply.logprobs), (1.0,) * n)
        (wanted,) = own_logprobs(model, [[row]])
        assert reply.logprobs == pytest.approx(wanted.tolist(), abs=5e-4)


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_three_steps_of_training(name: str, device: str, digits: Any, tmp_path: Path) -> None:
    """What is sampled is what is trained, before each update; the model is saved and comes back."""

    class Halves(digits):  # type: ignore[misc]
        """Every other reply is right, so that each group has a gradient."""

        def _episode(self, task: Any, reply: Any, place: int) -> Episode:
            verdict = Verdict.correct() if place % 2 else Verdict.wrong("even")
            return replace(super()._episode(task, reply, place), verdict=verdict)

    model, tokenizer = build(name, device), character_tokenizer()
    before = [p.detach().clone() for p in model.parameters()]
    config = GRPOConfig(
        steps=3,
        prompts_per_step=2,
        group_size=4,
        max_new_tokens=24,
        learning_rate=1e-3,
        warmup_steps=1,
        max_mismatch=1e-6,
    )
    Learner(model, tokenizer, Halves(2), config, tmp_path, progress=False).train()
    rows = read_metrics(tmp_path / "metrics.jsonl")[1:]
    assert [row["updates"] for row in rows] == [1, 1, 1]
    assert not all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    again = (
        AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoints" / "step-000003")
        .eval()
        .to(device)
    )
    for a, b in zip(own_logprobs(again, CASES), own_logprobs(model, CASES), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", LENGTH_DEPENDENT)
def test_rows_beyond_a_rope_that_changes_with_the_batch_are_refused(name: str) -> None:
    """Of these models transformers turns all positions otherwise if any row is longer.

    A row's log-probabilities then depend on its neighbours, and a reply's first tokens were drawn
    from another distribution than the one that is trained.
    """
    model = build(name)
    crossing = groups((3, (5, 1, 30)), (50, (30, 10, 1)))
    chosen, forward = choose_forward(model)
    for one in (forward, full_forward):
        try:
            found = picked_logprobs(model, one, crossing)
        except ValueError:  # right as well
            continue
        for a, b in zip(found, own_logprobs(model, crossing), strict=True):
            assert torch.allclose(a, b, atol=1e-4), chosen
    with pytest.raises(ValueError, match=rf"{ROPE}"):
        sample(model, [tokens(50, 0)], max_new_tokens=30)
    sample(model, [tokens(50, 0)], max_new_tokens=ROPE - 50)


@torch.no_grad()
@pytest.mark.parametrize("name", ["gpt2", "llama", "opt"])
def test_rows_longer_than_the_models_positions_are_refused(name: str) -> None:
    """By their length, the model's, and what to change: not by an index error, or garbage."""
    model = build(name)
    for prompt, room in ((LONGEST + 12, 1), (LONGEST - 8, 20)):
        with pytest.raises(ValueError, match=rf"{prompt}.*{LONGEST}.*max_new_tokens"):
            sample(model, [tokens(5, 0), tokens(prompt, 0)], max_new_tokens=room)
    (reply,) = sample(model, [tokens(LONGEST - 8, 0)], max_new_tokens=8)
    assert len(reply.ids) == 8


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_be_sampled_is_refused_when_it_is_loaded(name: str, tmp_path: Path) -> None:
    kind, settings = REFUSED[name]
    settings = {k: v for k, v in {**TOKENS, **settings}.items() if v is not None}
    config = getattr(transformers, kind)(**{"bos_token_id": None, **settings})
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    character_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=rf"the {name} model in [^\n]*$"):
        load_model(tmp_path)


def test_weights_in_float16_are_refused(model_dir: Path) -> None:
    """Adam's epsilon and most updates are 0 in it, and gradients overflow."""
    with pytest.raises(ModelError, match=r"float16.*bfloat16"):
        load_model(model_dir, dtype="float16")


def test_a_vocabulary_larger_than_the_tokenizers_is_trained(digits: Any, tmp_path: Path) -> None:
    """Qwen's and others are padded: a token that has no text is sampled now and then."""
    model, tokenizer = build("qwen2", vocab_size=300), character_tokenizer()
    policy = ModelPolicy(model, tokenizer, max_new_tokens=8)
    replies = policy([[{"role": "user", "content": "1+1="}]] * 8)
    assert any(i >= len(tokenizer) for reply in replies for i in reply.ids)
    config = GRPOConfig(
        steps=1, prompts_per_step=4, group_size=8, max_new_tokens=8, max_mismatch=1e-6
    )
    Learner(model, tokenizer, digits(4, 8), config, tmp_path, progress=False).train()


@pytest.mark.parametrize("template", [False, True], ids=["none", "template"])
def test_a_prompt_without_chat_template_begins_as_the_tokenizer_begins_texts(
    template: bool, model: Any
) -> None:
    """Base models of Gemma and Llama were never trained without their first token."""
    tokenizer = character_tokenizer()
    tokenizer.bos_token = "<unk>"  # any token that the model has
    begin = tokenizer.bos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<unk> $A", special_tokens=[("<unk>", begin)]
    )
    if not template:
        tokenizer.chat_template = None
    asked = ({"role": "user", "content": "1+1="},)
    policy = ModelPolicy(model, tokenizer, max_new_tokens=2)
    (first,) = policy([asked])
    text = tokenizer("1+1=", add_special_tokens=False)["input_ids"]
    assert list(first.prompt_ids) == (text if template else [begin, *text])
    said = ({"role": "assistant", "content": first.text}, {"role": "user", "content": "2+2="})
    (second,) = policy.extend([(*asked, *said)], [(*first.prompt_ids, *first.ids)])
    assert list(second.prompt_ids).count(begin) == list(first.ids).count(begin) + (not template)
