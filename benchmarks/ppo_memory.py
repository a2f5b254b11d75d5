"""What GRPO and PPO hold in memory: an update's peak, each method in a fresh process.

The model has 25 million parameters, so that its weights outweigh its activations; two steps of 16
sequences of 96 tokens, 4 at a time, in float32 with AdamW on one thread. The peak is above what
the process held once all was imported. What both reach: ``assay family run ppo``.

    python benchmarks/ppo_memory.py
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measuring import last_json, resident_mib, show
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging as transformers_logging

from assay.envs import Episode, EpisodeGroup, Policy, Span, Task
from assay.family.trainers import PPOConfig, PPOLearner
from assay.grpo import GRPOConfig, Learner, load_model
from assay.grpo.loading import character_tokenizer
from assay.verifiers import Verdict

MEMORY = ("grpo", "grpo + reference", "ppo", "ppo + reference")


def play(policy: Policy, tasks: Sequence[Task], replies: int) -> list[EpisodeGroup]:
    """Judge replies by comparing them with the sum, character for character."""
    given = iter(policy([t.messages for t in tasks for _ in range(replies)]))
    groups = []
    for task in tasks:
        episodes = []
        for _ in range(replies):
            said = next(given)
            right = said.text == task.reference and said.finish == "stop"
            spans = (Span("environment", said.prompt_ids), Span("model", said.ids, said.logprobs))
            verdict = Verdict.correct() if right else Verdict.wrong("")
            episodes.append(
                Episode(task.id, (), verdict, truncated=said.finish == "length", spans=spans)
            )
        groups.append(EpisodeGroup(task, tuple(episodes)))
    return groups


def large_model(directory: Path) -> None:
    """A Llama of 25 million parameters in which nothing ends a reply."""
    tokenizer = character_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=512,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=8,
        intermediate_size=1376,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def hold(directory: Path, arm: str, out: Path) -> dict[str, float]:
    """Peak memory of two steps of 16 sequences of 96 tokens, 4 at a time, above the imports'."""
    tasks = [Task("?" * 64 + str(i), str(i), id=str(i)) for i in range(4)]
    base = resident_mib()
    model, tokenizer = load_model(directory)
    marks: list[tuple[float, float]] = []

    def rollout(policy: Policy, step: int) -> list[EpisodeGroup]:
        groups = play(policy, tasks, 4)
        return [
            EpisodeGroup(
                g.task,
                tuple(
                    Episode(e.task_id, (), Verdict.wrong("", score=i / 4), spans=e.spans)
                    for i, e in enumerate(g.episodes)
                ),
            )
            for g in groups
        ]

    shared: dict[str, Any] = {
        "steps": 2,
        "prompts_per_step": 4,
        "group_size": 4,
        "max_new_tokens": 32,
        "rows_per_batch": 4,
        "tokens_per_batch": 4 * 96,
    }
    if "reference" in arm:
        shared |= {"beta": 0.04, "kl": "k1", "kl_in": "reward"}
    kind, config = (
        (PPOLearner, PPOConfig(**shared))
        if arm.startswith("ppo")
        else (partial(Learner, progress=False), GRPOConfig(**shared))
    )

    def mark(row: dict[str, Any]) -> None:
        marks.append((resident_mib("VmHWM"), time.process_time()))

    kind(model, tokenizer, rollout, config, out, on_step=mark).train()
    parameters = sum(p.numel() for p in model.parameters())
    peak = marks[-1][0] - base  # before the checkpoint is written
    return {
        "parameters": parameters,
        "mib": peak,
        "bytes_per_parameter": peak * 2**20 / parameters,
        "seconds": marks[-1][1] - marks[1][1],
    }


def compare_memory(root: Path) -> None:
    """Print peak memory of each method."""
    large_model(root / "large")
    command = [sys.executable, __file__, "--dir", str(root / "large"), "--arm"]
    found = {arm: last_json([*command, arm]) for arm in MEMORY}
    first = found["grpo"]
    show(
        f"{first['parameters'] / 1e6:.1f} million parameters, float32, AdamW, one thread",
        ["", "MiB", "bytes/parameter", "of grpo", "CPU s/step"],
        [
            [
                arm,
                f"{x['mib']:.0f}",
                f"{x['bytes_per_parameter']:.1f}",
                f"{x['mib'] / first['mib']:.2f}",
                f"{x['seconds']:.2f}",
            ]
            for arm, x in found.items()
        ],
    )


def main() -> None:
    """Compare, or, in a process of its own, hold one method's."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for hidden in ("--arm", "--dir"):
        arguments.add_argument(hidden, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    transformers_logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if given.arm:
            print(json.dumps(hold(Path(given.dir), given.arm, root / "run")))
        else:
            compare_memory(root)


if __name__ == "__main__":
    main()
