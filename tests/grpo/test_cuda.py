"""What only a GPU shows; tests of the other files that take ``device`` run there as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from transformers import AutoModelForCausalLM

from assay.grpo import (
    Batch,
    GRPOConfig,
    LoRA,
    Row,
    accumulate_gradient,
    choose_forward,
    load_model,
    sample,
    tiny_model,
)
from assay.grpo.logprobs import FORWARDS, chosen_logprobs, shared_forward
from assay.grpo.model import computed_dtype, set_autocast
from assay.plan.estimate import Job, plan, read_config
from assay.plan.trace import rows_of_step

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a model with heads of 32, which flex attention's kernels take."""
    return tiny_model(tmp_path_factory.mktemp("model"), max_length=4096)


def groups(*shapes: tuple[int, int, int], seed: int = 0) -> list[list[Row]]:
    """Groups of (prompt tokens, replies, tokens of the longest reply)."""
    generator = torch.Generator().manual_seed(seed)

    def ids(n: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, 60, (n,), generator=generator).tolist())

    found = []
    for s, g, t in shapes:
        prompt = ids(s)
        lengths = [max(1, t - 3 * i) for i in range(g)]
        found.append([Row(prompt, ids(n), (True,) * n, (0.0,) * n, (1.0,) * n) for n in lengths])
    return found


def gradient(model: Any, name: str, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities, and the gradient of a sum in which every token has another weight."""
    model.zero_grad()
    found = FORWARDS[name](model, batch, 1.0)[0]
    flat = found[batch.mask]
    (flat * torch.linspace(-1, 1.5, len(flat), device=flat.device)).sum().backward()
    slopes = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    return found.detach(), slopes


@pytest.mark.parametrize("lora", [None, LoRA(rank=4)], ids=["whole", "lora"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_bfloat16_gradients_point_where_float32_does(
    directory: Path, lora: LoRA | None, checkpointing: bool
) -> None:
    """By shared prompts and flex attention, against the model's own logits in float32."""
    settings: dict[str, Any] = {"device": "cuda", "lora": lora}
    plain, _ = load_model(directory, **settings)
    model, _ = load_model(
        directory, autocast=True, gradient_checkpointing=checkpointing, **settings
    )
    model.load_state_dict(plain.state_dict())
    assert choose_forward(model)[0] == "shared"
    batch = Batch.of(groups((130, 4, 150), (7, 8, 40), (300, 2, 3)), device="cuda")
    found, slopes = gradient(model, "shared", batch)
    wanted, of_plain = gradient(plain, "full", batch)
    assert float((found - wanted)[batch.mask].abs().mean()) < 0.01
    assert float((slopes - of_plain).norm() / of_plain.norm()) < 0.05


def test_the_first_ratio_is_near_1_in_bfloat16(directory: Path) -> None:
    model, _ = load_model(directory, device="auto", autocast=None)
    assert model.device.type == "cuda"
    assert computed_dtype(model) is torch.bfloat16
    prompts = [[5 + i, 6, 7] for i in range(16) for _ in range(4)]
    drawn = sample(model, prompts, max_new_tokens=200, seed=3)
    rows = [
        [Row(tuple(p), tuple(s.ids), (True,) * 200, tuple(s.logprobs), (0.0,) * 200)]
        for p, s in zip(prompts, drawn, strict=True)
    ]
    with torch.no_grad():
        found = choose_forward(model)[1](model, Batch.of(rows, device="cuda"), 1.0)[0]
    old = torch.tensor([s.logprobs for s in drawn], device="cuda")[:, None]
    ratio = (found - old).exp()
    assert float((ratio - 1).abs().max()) < 0.1
    assert float((ratio - 1).abs().mean()) < 0.01


def test_batches_of_other_shapes_are_compiled_once(directory: Path) -> None:
    """After a few: torch falls back to attention over all pairs at its limit of eight."""
    model, _ = load_model(directory, device="cuda", autocast=True)

    def run(seed: int) -> None:
        shapes = [
            (5 + 13 * seed + i, 2 + (seed + i) % 4, 6 + 7 * seed) for i in range(1 + seed % 3)
        ]
        batch = Batch.of(groups(*shapes, seed=seed), device="cuda")
        gradient(model, "shared", batch)
        with torch.no_grad():
            shared_forward(model, batch, 1.0)

    for seed in range(4):
        run(seed)
    before = counters["stats"]["unique_graphs"]
    for seed in range(4, 40):
        run(seed)
    assert counters["stats"]["unique_graphs"] - before <= 1


def test_attention_does_not_hold_all_pairs(directory: Path) -> None:
    """Of 24,000 tokens: a number for each pair of each head would be 4.6 GiB in bfloat16."""
    model, _ = load_model(directory, device="cuda", autocast=True)
    batch = Batch.of(groups(*[(1000, 8, 1500)] * 2), device="cuda")
    with torch.no_grad():
        shared_forward(model, batch, 1.0)
    torch.cuda.reset_peak_memory_stats()
    base = torch.cuda.memory_allocated()
    with torch.no_grad():
        shared_forward(model, batch, 1.0)
    above = torch.cuda.max_memory_allocated() - base
    assert above < 2**30


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_chosen_logprobs_and_gradients_are_those_of_log_softmax(dtype: torch.dtype) -> None:
    """At a vocabulary of several chunks, in the dtype of the products."""
    torch.manual_seed(0)
    hidden = torch.randn(2500, 64, device="cuda", requires_grad=True)
    weight = (torch.randn(50_000, 64, device="cuda") / 8).requires_grad_()
    targets = torch.randint(50_000, (2500,), device="cuda")
    scale = torch.linspace(-1, 1, 2500, device="cuda")
    logprobs, entropy = chosen_logprobs(hidden, weight, targets, compute=dtype)
    found = torch.autograd.grad((scale * (logprobs + 0.1 * entropy)).sum(), (hidden, weight))
    table = (hidden.double() @ weight.double().T).log_softmax(-1)
    own = table.gather(1, targets[:, None])[:, 0] - 0.1 * (table.exp() * table).sum(-1)
    wanted = torch.autograd.grad((scale * own).sum(), (hidden, weight))
    bound = 1e-4 if dtype == torch.float32 else 2e-2
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == torch.float32
        assert float((a - b).norm() / b.norm()) < bound


def test_a_resumed_run_is_the_unbroken_one(directory: Path, tmp_path: Path) -> None:
    """To the bit, in the defaults of a GPU, with deterministic algorithms."""
    script = """
import sys, torch
from assay.grpo import GRPOConfig, Learner, load_model
sys.path.insert(0, sys.argv[3])
from conftest import Digits
torch.use_deterministic_algorithms(True)
config = lambda n: GRPOConfig(steps=n, prompts_per_step=4, group_size=4, max_new_tokens=12,
    learning_rate=1e-3, max_mismatch=1e-3)
def run(out, n, resume=False):
    model, tokenizer = load_model(sys.argv[1], device="cuda", autocast=True)
    Learner(model, tokenizer, Digits(4), config(n), f"{sys.argv[2]}/{out}", progress=False,
        resume=resume).train()
    return torch.cat([p.detach().flatten() for p in model.parameters()])
straight = run("straight", 6)
run("halves", 3)
assert torch.equal(run("halves", 6, resume=True), straight)
"""
    command = [
        sys.executable,
        "-c",
        script,
        str(directory),
        str(tmp_path),
        str(Path(__file__).parents[1]),
    ]
    env = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("tokens", [4096, 16384])
def test_plans_agree_with_the_memory_of_an_update(tokens: int) -> None:
    """Within 15 %, of Qwen2.5-0.5B's shape in the defaults of a GPU, without an optimizer."""
    config = GRPOConfig(prompts_per_step=4, max_new_tokens=512, tokens_per_batch=tokens)
    shape = read_config("qwen2.5-0.5b")
    planned = plan(Job(model=shape, config=config, prompt_tokens=192)).phases["update"]
    with torch.device("cuda"):
        model: Any = AutoModelForCausalLM.from_config(shape).eval()
    set_autocast(model, torch.bfloat16)
    rows = rows_of_step(config, 192)
    accumulate_gradient(model, shared_forward, rows, config)
    torch.cuda.reset_peak_memory_stats()
    model.zero_grad(set_to_none=True)
    accumulate_gradient(model, shared_forward, rows, config)
    measured = torch.cuda.max_memory_allocated()
    assert sum(planned.values()) - planned["optimizer"] == pytest.approx(measured, rel=0.15)
