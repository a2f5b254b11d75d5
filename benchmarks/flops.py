"""Operations of an update: ours, the least possible, and TRL's, for Qwen2.5-1.5B.

The rows of one step are the same on all sides. Ours runs accumulate_gradient, TRL's the loss path
of GRPOTrainer (every reply with its prompt, padded, through its fused head, and a backward pass),
both on fake tensors under FlopCounterMode, at 2 and at 3 layers, from which the rest follows as
operations are linear in layers. The least computes each distinct prompt and each reply once,
forward and twice that backward, logits at reply tokens alone, attention only where the mask
lets tokens see, and nothing of groups whose replies earn the same.

    python benchmarks/flops.py [--prompt 256] [--reply 256] [--prompts 4] [--group 8] [--flat 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from transformers import Qwen2Config

from assay.grpo import GRPOConfig, Row, accumulate_gradient
from assay.grpo.logprobs import shared_forward
from assay.plan.estimate import read_config
from assay.plan.trace import FakeModel, rows_of_step

LAYERS = (2, 3)


def least(model: Qwen2Config, rows: list[Row]) -> float:
    """Count the operations that no update of these rows can do without."""
    d, wide, layers = model.hidden_size, model.intermediate_size, model.num_hidden_layers
    head = d // model.num_attention_heads
    body = 2 * d * d + 2 * d * model.num_key_value_heads * head + 3 * d * wide
    taught = [row for row in rows if row.teaches]
    prompts = {row.prompt: len(row.prompt) for row in taught}
    tokens = sum(prompts.values()) + sum(len(row.reply) - 1 for row in taught)
    pairs = sum(s * (s + 1) // 2 for s in prompts.values())
    for row in taught:
        t = len(row.reply) - 1  # the last token predicts nothing
        pairs += t * len(row.prompt) + t * (t + 1) // 2
    logits = sum(len(row.reply) for row in taught) * d * model.vocab_size
    return 3 * (layers * (2 * body * tokens + 4 * pairs * d) + 2 * logits)


def ours(model: Qwen2Config, rows: list[Row], config: GRPOConfig, *, gpu: bool) -> float:
    """Count those of our update."""
    fake = FakeModel(model, gpu=gpu)
    with fake.counting() as found:
        accumulate_gradient(fake.model, shared_forward, rows, config)
    return found["flops"]


def trl(model: Qwen2Config, rows: list[Row], config: GRPOConfig) -> float:
    """Count those of TRL's loss path, in micro-batches of one group."""
    from trl import GRPOTrainer
    from trl.trainer.utils import add_fused_lm_head

    score: Any = GRPOTrainer._get_per_token_logps_and_entropies
    score = score.__wrapped__  # without its clock
    fake = FakeModel(model)
    add_fused_lm_head(fake.model, outputs=("log_probs", "entropy"))
    accelerator = SimpleNamespace(autocast=torch.enable_grad)
    trainer: Any = SimpleNamespace(accelerator=accelerator)
    group = config.group_size
    s, t = (max(len(x) for x in xs) for xs in ([r.prompt for r in rows], [r.reply for r in rows]))
    total, known = 0.0, {}
    for start in range(0, len(rows), group):
        part = rows[start : start + group]
        lengths = tuple((len(r.prompt), len(r.reply)) for r in part)
        if lengths not in known:  # operations depend on lengths alone
            pads = [(s - len(r.prompt), t - len(r.reply)) for r in part]
            ids = torch.tensor(
                [
                    (0,) * i + r.prompt + r.reply + (0,) * j
                    for (i, j), r in zip(pads, part, strict=True)
                ]
            )
            mask = torch.tensor([[0] * i + [1] * (s + t - i - j) + [0] * j for i, j in pads])
            with fake.counting() as found:
                logprobs, _, _ = score(trainer, fake.model, ids, mask, t, compute_entropy=True)
                logprobs.sum().backward()
            known[lengths] = found["flops"]
        total += known[lengths]
    return total


def at_full_depth(model: Qwen2Config, count: Callable[[Qwen2Config], float]) -> float:
    """Continue linearly from two shallow models."""
    low, high = (count(_shallow(model, n)) for n in LAYERS)
    return low + (model.num_hidden_layers - LAYERS[0]) * (high - low)


def _shallow(model: Qwen2Config, layers: int) -> Qwen2Config:
    return Qwen2Config(
        **{
            **model.to_dict(),
            "num_hidden_layers": layers,
            "max_window_layers": layers,
            "layer_types": None,
        }
    )


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (
        ("prompt", 256),
        ("reply", 256),
        ("prompts", 4),
        ("group", 8),
        ("flat", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--tokens", type=int, default=4096, help="of our micro-batches")
    given = parser.parse_args()
    model = read_config("qwen2.5-1.5b")
    config = GRPOConfig(
        prompts_per_step=given.prompts,
        group_size=given.group,
        max_new_tokens=given.reply,
        tokens_per_batch=given.tokens,
    )
    rows = [
        replace(row, advantages=(float(i // given.group >= given.flat),) * given.reply)
        for i, row in enumerate(rows_of_step(config, given.prompt))
    ]
    base = least(model, rows)
    print(f"least       {base / 1e12:8.1f} TFLOP   1.00")
    counts = {
        "ours, GPU": lambda m: ours(m, rows, config, gpu=True),
        "ours, CPU": lambda m: ours(m, rows, config, gpu=False),
        "TRL": lambda m: trl(m, rows, config),
    }
    for name, count in counts.items():
        found = at_full_depth(model, count)
        print(f"{name:11} {found / 1e12:8.1f} TFLOP {found / base:6.2f}", flush=True)


if __name__ == "__main__":
    main()
