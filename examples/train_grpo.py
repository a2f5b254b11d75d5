"""Train a tiny model, made from nothing, on an environment with the built-in learner."""

import sys
import tempfile
from pathlib import Path

import torch

from assay import make
from assay.grpo import (
    GRPOConfig,
    Learner,
    held_out_tasks,
    load_model,
    plot_learning_curve,
    read_metrics,
    tiny_model,
    training_tasks,
)

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
torch.set_num_threads(2)

# Any directory that transformers loads will do; a real model needs no more than another path.
model, tokenizer = load_model(tiny_model(folder / "model", seed=0))
config = GRPOConfig(steps=30, prompts_per_step=16, max_new_tokens=2, eval_every=10)
train, test = (make("assay/Arithmetic-v0", digits=1, split=split) for split in ("train", "test"))
learner = Learner(
    model,
    tokenizer,
    training_tasks(train, config),
    config,
    folder / "run",
    held_out=held_out_tasks(test, 50),
    resume=(folder / "run").exists(),
)
learner.train()
plot_learning_curve(folder / "run/metrics.jsonl", folder / "run/learning_curve.png")

rows = read_metrics(folder / "run/metrics.jsonl")
print("mean reward, first and last five steps:")
for part in (rows[1:6], rows[-5:]):
    print(round(sum(row["reward"] for row in part) / 5, 3))
