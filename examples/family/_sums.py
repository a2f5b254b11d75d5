"""What several studies share: sums in characters, and a tiny model that is right now and then."""

from __future__ import annotations

from typing import Any

from assay import make
from assay.envs import TextEnv
from assay.grpo import (
    GRPOConfig,
    Learner,
    ModelPolicy,
    evaluate,
    held_out_tasks,
    load_model,
    tiny_model,
    training_tasks,
    warm_start,
)
from assay.study import Outcome, Trial, every

LONGEST = 6  # tokens of a reply


def sums(split: str) -> TextEnv:
    """Sums of two numbers below 100; a reply is right or it is not."""
    return make("assay/Arithmetic-v0", split=split)


def start(trial: Trial, *, until: float = 0.3) -> None:
    """Warm a model up on worked sums until a share of its sampled replies is right."""
    model, tokenizer = load_model(tiny_model(trial.start, seed=trial.seed))
    train = sums("train")
    warm_start(
        model,
        tokenizer,
        [train.task(i) for i in range(900)],
        held_out_tasks(sums("test"), 200),
        target=0.05 if trial.short else until,
        max_new_tokens=LONGEST,
        seed=trial.seed,
    )
    model.save_pretrained(trial.start)


def trained(trial: Trial, config: GRPOConfig, *, looks: int = 10) -> Outcome:
    """Train from the seed's start; held-out pass@1 and what the log says of each step."""
    model, tokenizer = load_model(trial.start)
    held_out = held_out_tasks(sums("test"), 50 if trial.short else 500)
    look = every(config.steps, looks)
    curves: dict[str, list[tuple[float, float]]] = {
        "held-out pass@1": [],
        "zero-variance share": [],
    }

    def note(row: dict[str, Any]) -> None:
        if "zero_variance" in row:
            curves["zero-variance share"].append((row["step"], row["zero_variance"]))
        if look(row["step"]):
            policy = ModelPolicy(model, tokenizer, max_new_tokens=LONGEST, seed=trial.seed)
            curves["held-out pass@1"].append((row["step"], evaluate(policy, held_out).pass_at_1))

    tasks = training_tasks(sums("train"), config)
    Learner(
        model, tokenizer, tasks, config, trial.folder / "run", progress=False, on_step=note
    ).train()
    return Outcome({"pass@1": curves["held-out pass@1"][-1][1]}, curves)
