"""What the scripts beside it train: one short run, always the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from assay.envs import Prioritised, Rows, Task, TextEnv
from assay.grpo import GRPOConfig, Learner, SampledTasks, load_model
from assay.verifiers import FunctionVerifier

torch.set_num_threads(1)


def learner(model_dir: str, out: Path, *, resume: bool, **settings: Any) -> Learner:
    """A learner of twelve tasks: a reply that begins with a digit up to the task's own is right."""
    tasks = [Task(f"{i}?", str(i), id=str(i)) for i in range(12)]
    judge = FunctionVerifier(lambda reply, gold: reply[:1].isdigit() and int(reply[0]) <= int(gold))
    env = TextEnv(Rows(tasks), judge)
    config = GRPOConfig(
        **{
            "steps": 6,
            "prompts_per_step": 4,
            "group_size": 4,
            "max_new_tokens": 2,
            "learning_rate": 3e-3,
            "num_iterations": 2,
            "minibatches": 2,
            "beta": 0.02,
            "reference_every": 2,
            "save_every": 1,
            "save_every_updates": 1,
            **settings,
        }
    )
    rollout = SampledTasks(env, config, Prioritised(env.source))
    model, tokenizer = load_model(model_dir)
    return Learner(model, tokenizer, rollout, config, out, resume=resume, progress=False)
