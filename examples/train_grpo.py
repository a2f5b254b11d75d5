"""Train a tiny model, made from nothing, on an environment with the built-in learner."""

import sys
import tempfile
from pathlib import Path

import torch

from assay import make
from assay.family.trainers import warm_start
from assay.grpo import (
    GRPOConfig,
    Learner,
    held_out_tasks,
    load_model,
    read_metrics,
    tiny_model,
    training_tasks,
)
from assay.run_report.plot import plot_learning_curve

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
torch.set_num_threads(1)  # more gain nothing on so small a model

train, test = (make("assay/Arithmetic-v1", digits=1, split=split) for split in ("train", "test"))
config = GRPOConfig(
    learning_rate=3e-4, steps=40, prompts_per_step=32, max_new_tokens=3, eval_every=20
)

# Any directory that transformers loads will do; a model that can already add needs no warm start.
model, tokenizer = load_model(tiny_model(folder / "model", seed=0))
warm_start(model, tokenizer, [train.task(i) for i in range(500)], max_steps=20)
learner = Learner(
    model,
    tokenizer,
    training_tasks(train, config),
    config,
    folder / "run",
    held_out=held_out_tasks(test, 50),
)
learner.train()
plot_learning_curve(folder / "run/metrics.jsonl", folder / "run/learning_curve.png")

rows = read_metrics(folder / "run/metrics.jsonl")
first, last = (sum(row["reward"] for row in part) / 5 for part in (rows[1:6], rows[-5:]))
print(f"mean reward of the first five steps {first:.3f}, of the last five {last:.3f}")
assert last > first + 0.1
