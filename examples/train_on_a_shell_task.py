"""Train a tiny model to run two shell commands in a container, on a Harbor task made here.

The model first learns commands with programs drawn at random: it can write calls then, and knows
nothing of the task. Which program to run in which turn it learns from the reward alone.
"""

import random
import sys
import tempfile
from pathlib import Path

import torch

from assay import Sandbox
from assay.envs import Completion, play
from assay.envs.harbor import HarborEnv
from assay.envs.tools.calls import written_call
from assay.envs.turn_tokens import extend_prompt
from assay.family.trainers import FitConfig, sft
from assay.grpo import GRPOConfig, Learner, load_model, read_metrics, tiny_model, training_tasks
from assay.grpo.batch import row_of
from assay.sandbox import SandboxError

PROGRAMS = ("sort", "tac", "uniq", "cat"), ("rev", "nl", "wc", "head")
"""Of the first command and of the second: the task wants sort, then nl."""

LINES = "pear\nfig\napple\nplum\n"
DOCKERFILE = f"FROM assay-shell:latest\nWORKDIR /app\nRUN printf {LINES!r} > in\n"
TASK = {
    "task.toml": 'schema_version = "1.4"\n',
    "instruction.md": "Sort the lines of `in` into `mid`, then number those into `out`.",
    "environment/Dockerfile": DOCKERFILE,
    "tests/test.sh": """#!/bin/sh
cd /app; right=0
sort in | cmp -s - mid && right=$((right + 5))
[ -f mid ] && nl mid | cmp -s - out && right=$((right + 5))
echo $((right / 10)).$((right % 10)) > /logs/verifier/reward.txt
""",
}


def command(program, turn):
    """Return the call of a turn: the second goes on with what the first has written."""
    pipe = program + (" in | tee mid", " mid | tee out")[turn]
    return written_call("bash", {"command": pipe})


def write_task(folder):
    """Write the task's folder, and return it."""
    for path, text in TASK.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


class Demonstrator:
    """A policy that runs programs drawn at random: its tokens are what the model learns first."""

    def __init__(self, tokenizer, seed=0):
        self.tokenizer, self.random = tokenizer, random.Random(seed)  # noqa: S311

    def __call__(self, conversations):
        """Take the first turn in each conversation."""
        return self.extend(conversations, [()] * len(conversations))

    def extend(self, conversations, prefixes):
        """Take a turn in each conversation."""
        return [self._turn(*each) for each in zip(conversations, prefixes, strict=True)]

    def _turn(self, conversation, prefix):
        turn = sum(message["role"] == "assistant" for message in conversation)
        text = command(self.random.choice(PROGRAMS[turn]), turn)
        ids = (*self.tokenizer(text)["input_ids"], self.tokenizer.eos_token_id)
        prompt = tuple(extend_prompt(self.tokenizer, conversation, prefix))
        return Completion(text, "stop", prompt, ids, (0.0,) * len(ids))


def make_model(folder):
    """Return a tiny model; its tokenizer has one token for the frame of a call, and such words."""
    words = [*written_call("bash", {"command": "|"}).split("|"), *PROGRAMS[0], *PROGRAMS[1]]
    return load_model(tiny_model(folder, words=words, seed=0))


def imitate(model, tokenizer, env, count=16, steps=300):
    """Train the model on random commands, which earn 0.25 on average."""
    (group,) = play(env, Demonstrator(tokenizer), [env.task(0)], count)
    rows = [row_of(episode) for episode in group.episodes]
    sft(model, tokenizer, rows, FitConfig(steps=steps, batch_size=count, learning_rate=1e-3))


def train(env, folder, steps=12):
    """Train, and return the mean reward of each step."""
    torch.set_num_threads(1)  # more gain nothing on so small a model
    model, tokenizer = make_model(folder / "model")
    imitate(model, tokenizer, env)
    config = GRPOConfig(
        learning_rate=5e-4, steps=steps, prompts_per_step=1, group_size=12, max_new_tokens=24
    )
    Learner(model, tokenizer, training_tasks(env, config), config, folder / "run").train()
    return [row["reward"] for row in read_metrics(folder / "run/metrics.jsonl")[1:]]


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    try:
        with Sandbox() as sandbox:
            env = HarborEnv(write_task(folder / "task"), 2, tell="template", sandbox=sandbox)
            rewards = train(env, folder)
    except SandboxError as failure:
        sys.exit(f"this example needs Docker and `assay sandbox build shell`: {failure}")
    print("mean reward of each step:", *(f"{reward:.2f}" for reward in rewards))
    first, last = (sum(part) / 4 for part in (rewards[:4], rewards[-4:]))
    assert last > first + 0.2
