"""Plans: what is traced on shapes agrees with what is counted by hand and with what is measured."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import GPT2Config, LlamaConfig, MixtralConfig, Qwen2Config
from typer.testing import CliRunner

from assay.cli import app
from assay.grpo import GRPOConfig, LoRA
from assay.plan.estimate import Job, Plan, plan, read_config

_log = logging.getLogger(__name__)
SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 99}


def tiny(layers: int = 2, **others: Any) -> Any:
    """A Llama of some 100 thousand parameters."""
    return LlamaConfig(num_hidden_layers=layers, num_key_value_heads=2, **SMALL, **others)


def job(model: Any = None, *, prompt: int = 8, **others: Any) -> Job:
    """Four prompts, two replies of eight tokens to each."""
    settings = {"prompts_per_step": 4, "group_size": 2, "max_new_tokens": 8, "tokens_per_batch": 48}
    config = GRPOConfig(**{**settings, **others.pop("config", {})})
    return Job(model=model or tiny(), config=config, prompt_tokens=prompt, **others)


@pytest.fixture(scope="module")
def usual() -> Plan:
    return plan(job(), advise=False)


def test_states_are_what_adamw_holds(usual: Plan) -> None:
    """Four bytes a weight, as many for its gradient, twice as many for AdamW's moments."""
    weights = 4 * usual.parameters
    step = usual.phases["step"]
    assert usual.trained == usual.parameters
    assert (step["weights"], step["gradients"]) == (weights, weights)
    assert 2 * weights <= step["optimizer"] < 2 * weights + 1000  # a count of steps for each


def test_operations_are_those_of_the_matrix_products(usual: Plan) -> None:
    """Forward: two for each weight and token it meets, and four for each pair in attention."""
    matrices = 2 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128)
    tokens = 4 * (8 + 2 * 7)  # a reply's last token predicts nothing
    pairs = 4 * (36 + 2 * (28 + 7 * 8))
    forward = 2 * matrices * tokens + 2 * 64 * 99 * 4 * 16 + 2 * 4 * pairs * 64
    assert usual.work["rollout"].tflop == pytest.approx(forward / 1e12, rel=1e-6)
    head = 2 * 64 * 99 * 4 * 16  # is computed again backward
    update = 3 * forward + head + 2 * 2 * pairs * 64  # and so are attention's scores
    assert usual.work["update"].tflop == pytest.approx(update / 1e12, rel=1e-6)


def test_a_token_costs_the_experts_that_it_meets(usual: Plan) -> None:
    """Two of four, where Llama has one, and a router."""
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    model = MixtralConfig(num_hidden_layers=2, num_key_value_heads=2, **experts, **SMALL)
    found = plan(job(model), advise=False)
    more = 2 * 2 * (3 * 64 * 128 + 64 * 4) * 4 * (8 + 2 * 7) / 1e12
    for phase, passes in (("rollout", 1), ("update", 3)):
        assert found.work[phase].tflop - usual.work[phase].tflop == pytest.approx(passes * more)


@pytest.mark.slow
def test_checkpointing_and_smaller_batches_save_activations() -> None:
    """And neither changes what the states take."""
    sizes = {"prompts_per_step": 8, "tokens_per_batch": 4096}
    model = tiny(layers=4)
    plans = [
        plan(job(model, prompt=128, **settings), advise=False).phases["update"]
        for settings in (
            {"config": sizes},
            {"config": sizes, "gradient_checkpointing": True},
            {"config": {**sizes, "tokens_per_batch": 512}},
        )
    ]
    most, checkpointed, fewer = (p["activations"] + p.get("temporary", 0) for p in plans)
    assert checkpointed < 0.5 * most
    assert fewer < 0.5 * most
    assert len({p["weights"] for p in plans}) == 1


@pytest.mark.slow
def test_lora_trains_adapters_only() -> None:
    pytest.importorskip("peft")
    found = plan(job(lora=LoRA(rank=4)), advise=False)
    assert 0 < found.trained < 0.3 * found.parameters
    assert found.phases["step"]["optimizer"] < 8.1 * found.trained


def test_reference_and_readings_are_planned() -> None:
    """A KL penalty takes a copy of the model and one more pass."""
    found = plan(job(config={"beta": 0.04}), advise=False)
    assert found.phases["reading"]["reference"] == 4 * found.parameters
    assert found.work["reading"].tflop == found.work["rollout"].tflop


def test_gpus_share_the_states(usual: Plan) -> None:
    """With FSDP2 each of four holds a quarter, and gathers what it computes with."""
    one, four = (p.phases["update"] for p in (usual, plan(job(count=4), advise=False)))
    for kind in ("weights", "optimizer"):
        assert four[kind] == one[kind] / 4
    assert four["gathered"] > 0


@pytest.mark.slow
def test_advice_is_tried_until_it_fits() -> None:
    """1.9B trained whole on a GPU of 24 GB: what helps is listed, and ends with a verdict."""
    big = Qwen2Config(
        hidden_size=8192,
        intermediate_size=28672,
        num_hidden_layers=2,
        num_attention_heads=64,
        num_key_value_heads=8,
        vocab_size=8192,
    )
    found = plan(job(big, gpu="l4-24gb"))
    assert found.fits is False
    assert found.advice[-1].endswith(", fits")
    assert all("does not fit yet" in line for line in found.advice[:-1])


@pytest.mark.slow
def test_attention_that_cannot_share_prompts_is_planned_padded() -> None:
    """A cap on attention's scores is one that the CPU's shared attention lacks."""
    from transformers import Gemma2Config

    model = Gemma2Config(
        num_hidden_layers=2,
        num_key_value_heads=2,
        head_dim=16,
        final_logit_softcapping=None,
        **SMALL,
    )
    assert plan(job(model), advise=False).forward == "padded"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gpu": "h100"}, "gpu must be one of a100-40gb"),
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"prompt": 5000}, "more than the 2048 positions"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        job(**changes)


def test_published_sizes() -> None:
    sizes = {
        "qwen2.5-0.5b": 494_032_768,
        "qwen2.5-1.5b": 1_543_714_304,
        "qwen2.5-7b": 7_615_616_512,
    }
    for name, wanted in sizes.items():
        from transformers import AutoModelForCausalLM

        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(read_config(name))
        assert sum(p.numel() for p in model.parameters()) == wanted


def test_command_prints_and_tells_by_its_exit_code(tmp_path: Any) -> None:
    """A folder with a config is enough; --json has the same numbers."""
    tiny().save_pretrained(tmp_path)
    sizes = ["--set", "max_new_tokens=8", "--set", "prompts_per_step=2", "--prompt-tokens", "8"]
    shown = CliRunner().invoke(app, ["plan", str(tmp_path), *sizes, "--engine", "vllm"])
    assert shown.exit_code == 0, shown.output
    assert "fits 1 x h100-80gb" in shown.output
    assert "vLLM server" in shown.output
    told = CliRunner().invoke(app, ["plan", str(tmp_path), *sizes, "--json"])
    found = json.loads(told.output)
    assert found["fits"] is True
    assert found["peak"] == max(sum(kinds.values()) for kinds in found["phases"].values())


MEASURED = {
    "Llama 17M": LlamaConfig(
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=8,
        vocab_size=4096,
    ),
    "Qwen2 27M": Qwen2Config(
        hidden_size=640,
        intermediate_size=1728,
        num_hidden_layers=4,
        num_attention_heads=10,
        num_key_value_heads=2,
        vocab_size=16000,
        tie_word_embeddings=True,
    ),
    "GPT-2 20M": GPT2Config(
        n_embd=512,
        n_layer=4,
        n_head=8,
        vocab_size=15000,
        n_positions=512,
        bos_token_id=0,
        eos_token_id=0,
    ),
}

_MEASURE = """
import json, sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
from assay.grpo import GRPOConfig, accumulate_gradient
from assay.grpo.logprobs import padded_forward, shared_forward
from assay.plan.trace import rows_of_step

def status(name):
    return next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith(name)) * 1024

torch.set_num_threads(1)
config = GRPOConfig(prompts_per_step=2, max_new_tokens=64, tokens_per_batch=768)
def train(model_config, steps):
    model = AutoModelForCausalLM.from_config(model_config).eval()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        accumulate_gradient(model, shared_forward, rows_of_step(config, 64), config)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
whole = AutoConfig.from_pretrained(sys.argv[1])
small = AutoConfig.from_pretrained(sys.argv[2])
train(small, 1)  # libraries that load at first use are no part of it
base = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
train(whole, 2)
print(json.dumps(status("VmHWM") - base))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", MEASURED)
def test_plans_agree_with_resident_memory(name: str, tmp_path: Any) -> None:
    """Within 15 % of what a process of its own holds at most in two updates, on a CPU.

    Large blocks are mapped one by one: glibc's heap keeps what is freed between others in use.
    """
    MEASURED[name].save_pretrained(tmp_path / "whole")
    tiny().save_pretrained(tmp_path / "small")
    run = [sys.executable, "-c", _MEASURE, str(tmp_path / "whole"), str(tmp_path / "small")]
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    told = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    measured = json.loads(told.stdout)
    config = GRPOConfig(prompts_per_step=2, max_new_tokens=64, tokens_per_batch=768)
    found = plan(
        Job(model=MEASURED[name], config=config, prompt_tokens=64, gpu=None, autocast=False)
    )
    planned = max(sum(found.phases[phase].values()) for phase in ("update", "step"))
    mib = [round(x / 2**20) for x in (planned, measured)]
    _log.info("%s: %s parameters, planned %s MiB, measured %s", name, found.parameters, *mib)
    assert planned == pytest.approx(measured, rel=0.15)
