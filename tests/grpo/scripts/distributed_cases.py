"""What is computed both in one process and in two."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from assay.envs import Rows, Task, TextEnv
from assay.grpo import GRPOConfig, Learner, Row, held_out_tasks, load_model, training_tasks
from assay.grpo.model import set_autocast
from assay.grpo.tasks import Rollout
from assay.verifiers import FunctionVerifier


def rollouts(config: GRPOConfig) -> tuple[Rollout, Rollout]:
    """Training and held-out tasks whose replies are right if they begin with a digit."""

    def environment(name: str, count: int) -> TextEnv:
        judge = FunctionVerifier(lambda reply, gold: reply[:1].isdigit())
        return TextEnv(Rows([Task(f"{name}{i}?", "", id=f"{i}") for i in range(count)]), judge)

    held_out = held_out_tasks(environment("held out ", 3), 3)
    return training_tasks(environment("", 20), config), held_out


SETTINGS: dict[str, Any] = {
    "steps": 2,
    "prompts_per_step": 7,
    "group_size": 4,
    "max_new_tokens": 3,
    "learning_rate": 3e-3,
    "warmup_steps": 2,
    "tokens_per_batch": 60,
}
RUN: dict[str, Any] = {
    "beta": 0.05,
    "advantage_std": "batch",
    "minibatches": 2,
    "num_iterations": 2,
    "eval_every": 1,
    "save_every": 1,
}


def learner(
    model_dir: Path, out: Path, *, rollout: Any = None, settings: Any = None, **more: Any
) -> Learner:
    """A learner of the run; ``rollout`` is a class of tasks, ``more`` goes to the learner."""
    model, tokenizer = load_model(model_dir)
    config = GRPOConfig(**{**SETTINGS, **RUN, **(settings or {})})
    usual, held_out = rollouts(config)
    played = usual if rollout is None else rollout(usual.env, config)
    more = {"held_out": held_out, "progress": False, **more}
    return Learner(model, tokenizer, played, config, out, **more)


def stop_in_update(learner: Learner, number: int, update: int) -> None:
    """Have the process receive a signal while the optimizer takes a step, counted from 1."""
    take, taken = learner.optimizer.step, count(1)

    def step_and_stop() -> None:
        if next(taken) == update:
            os.kill(os.getpid(), number)
        take()

    learner.optimizer.step = step_and_stop  # type: ignore[method-assign]


def model_of(kind: str, model_dir: Path) -> Any:
    """A model by name: ``llama``, ``autocast`` (a Llama that computes in bfloat16) or ``gpt2``."""
    if kind == "gpt2":
        torch.manual_seed(0)
        ends = {"bos_token_id": 1, "eos_token_id": 1}
        config = GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=2, n_head=2, **ends)
        return GPT2LMHeadModel(config).eval()
    model, _ = load_model(model_dir)
    if kind == "autocast":
        set_autocast(model, torch.bfloat16)
    return model


def row(prompt: int, place: int, length: int, advantage: float) -> Row:
    """Some tokens of a prompt and a reply; which does not matter."""
    reply = tuple(5 + (7 * prompt + 3 * place + t) % 90 for t in range(length))
    old = tuple(-3.0 - 0.1 * ((place + t) % 5) for t in range(length))
    return Row(
        tuple(5 + (prompt + i) % 90 for i in range(3 + prompt % 4)),
        reply,
        (True,) * length,
        old,
        (advantage,) * length,
        reference=tuple(x + 0.2 for x in old),
    )


def _groups(sizes: list[int]) -> list[Row]:
    return [
        row(p, i, 1 + (3 * p + i) % 9, (-1.0) ** i * (0.5 + 0.1 * p))
        for p, size in enumerate(sizes)
        for i in range(size)
    ]


GRADIENTS: dict[str, tuple[list[Row], dict[str, Any]]] = {
    "gpt2": (_groups([4, 1, 3, 4]), {"max_grad_norm": 1e9}),
    "autocast": (_groups([4, 1, 3, 4]), {"max_grad_norm": 1e9}),
    "uneven groups": (_groups([4, 1, 3, 4, 2, 4, 4]), {"max_grad_norm": 1e9}),
    "one row": ([row(0, 0, 5, 1.0), row(0, 1, 5, 0.0)], {"max_grad_norm": 1e9}),
    "penalty": (_groups([4, 4, 4]), {"beta": 0.1, "loss": "grpo", "max_grad_norm": 1e9}),
    "cut": (_groups([4, 4, 4]), {"max_grad_norm": 1e-3, "loss": "dr_grpo"}),
}
