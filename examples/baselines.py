"""What GRPO is compared with, on one tiny model: SFT, RFT, DPO, Online RFT and PPO."""

import copy
import sys
import tempfile
from functools import partial
from pathlib import Path

import torch

from assay import make
from assay.family.trainers import (
    FitConfig,
    PPOConfig,
    PPOLearner,
    dpo,
    preference_pairs,
    rft,
    warm_start,
)
from assay.grpo import (
    GRPOConfig,
    Learner,
    ModelPolicy,
    evaluate,
    held_out_tasks,
    load_model,
    tiny_model,
    training_tasks,
)

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
torch.set_num_threads(1)  # more gain nothing on so small a model

train, test = (make("assay/Arithmetic-v1", digits=1, split=split) for split in ("train", "test"))
held_out = held_out_tasks(test, 50, group_size=8)


def score(model, tokenizer):
    """Share of replies to held-out tasks that are right."""
    return evaluate(ModelPolicy(model, tokenizer, max_new_tokens=3), held_out).pass_at_1


# All begin with the same supervised start.
start, tokenizer = load_model(tiny_model(folder / "model", seed=0))
warm_start(start, tokenizer, [train.task(i) for i in range(500)], max_steps=40)
found = {"SFT": score(start, tokenizer)}

# Two learn from groups that were judged once, here or elsewhere: EpisodeGroup.from_json reads them.
once = GRPOConfig(prompts_per_step=100, max_new_tokens=3)
groups = training_tasks(train, once)(ModelPolicy(start, tokenizer, max_new_tokens=3), 1)

model = copy.deepcopy(start)
rft(model, tokenizer, groups, FitConfig(learning_rate=3e-4, epochs=4, warmup_steps=0))
found["RFT"] = score(model, tokenizer)

model = copy.deepcopy(start)
dpo(model, tokenizer, preference_pairs(groups), FitConfig(learning_rate=1e-4, epochs=2), beta=0.1)
found["DPO"] = score(model, tokenizer)

# Three sample anew from the model as it is at each step.
common = {"steps": 15, "learning_rate": 3e-4, "max_new_tokens": 3}
many = {**common, "prompts_per_step": 32, "group_size": 8}
for name, kind, config in (
    ("Online RFT", partial(Learner, progress=False), GRPOConfig(**many, advantage="reward")),
    ("GRPO", partial(Learner, progress=False), GRPOConfig(**many)),
    (
        "PPO, a reply to a task",
        PPOLearner,
        PPOConfig(**common, prompts_per_step=256, group_size=1, critic_learning_rate=1e-3),
    ),
):
    model = copy.deepcopy(start)
    tasks = training_tasks(train, config)
    kind(model, tokenizer, tasks, config, folder / name).train()
    found[name] = score(model, tokenizer)

for name, share in found.items():
    print(f"{name:24s} {share:.3f} of held-out replies are right")
assert max(found["GRPO"], found["PPO, a reply to a task"]) > found["SFT"]
