"""GRPO and PPO on the same task from the same warm start: what they reach, and what they hold.

The task is a + b for numbers below 100, in characters; a reply is right or it is not. A model of
0.4 million parameters is warm-started on 900 sums until three in ten sampled replies are right,
then trained by

- GRPO, 64 prompts of 8 replies a step;
- PPO at matched prompts: the same 64 prompts of 8 replies;
- PPO at matched completions: 512 prompts of one reply. A critic needs no group to compare with.

Nothing is tuned for one of them: learning rate, clip, warm-up, order of tasks and warm-started
model are the same; PPO's lambda is 1 and its critic's rate 1e-3. Each run has one thread and one
process.

With ``--memory``: peak memory of an update above that of the imports, each in a fresh process, of a
model of 25 million parameters, whose weights outweigh its activations.

    python benchmarks/ppo.py [--steps 300] [--seeds 2] [--jobs 2] [--png ppo.png]
    python benchmarks/ppo.py --memory
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging as transformers_logging

from assay.envs import Episode, EpisodeGroup, Policy, Span, Task
from assay.grpo import (
    GRPOConfig,
    Learner,
    ModelPolicy,
    PPOConfig,
    PPOLearner,
    character_tokenizer,
    evaluate,
    load_model,
    tiny_model,
    warm_start,
)
from assay.verifiers import Verdict

ARMS = {
    "GRPO 64 x 8": ("grpo", 64, 8),
    "PPO 64 x 8 (matched prompts)": ("ppo", 64, 8),
    "PPO 512 x 1 (matched completions)": ("ppo", 512, 1),
}
MEMORY = ("grpo", "grpo + reference", "ppo", "ppo + reference")
LOOKS = 10  # evaluations of a run


@dataclass(frozen=True)
class Curve:
    """What a run did.

    Attributes:
        steps: at which it was looked at.
        seconds: CPU seconds of training until then, on one thread.
        passed: share of sampled replies to 1,000 held-out sums that were right.
        greedy: of the most likely replies at the end.
        foreseen: mean explained variance of the critic's values over the last half.
    """

    steps: list[int]
    seconds: list[float]
    passed: list[float]
    greedy: float
    foreseen: float


class Sums:
    """All sums of two numbers below 100: 9,000 to train on, 1,000 held out."""

    def __init__(self) -> None:
        every = [(a, b) for a in range(100) for b in range(100)]
        random.Random(0).shuffle(every)  # noqa: S311 - no secret
        tasks = [
            Task(f"{a}+{b}=", str(a + b), id=f"{a}+{b}", solution=str(a + b)) for a, b in every
        ]
        self.train, self.held_out = tasks[:9000], tasks[9000:]

    def rollout(self, prompts: int, replies: int) -> Any:
        """Training tasks in one order, as many a step as are asked for."""

        def roll(policy: Policy, step: int) -> list[EpisodeGroup]:
            first = (step - 1) * prompts
            chosen = [self.train[i % len(self.train)] for i in range(first, first + prompts)]
            return play(policy, chosen, replies)

        return roll


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


def warm(directory: Path, seed: int) -> dict[str, Any]:
    """Make a model and warm-start it on a tenth of the training sums."""
    sums = Sums()
    model, tokenizer = load_model(tiny_model(directory, seed=seed))
    done = warm_start(
        model,
        tokenizer,
        sums.train[:900],
        lambda policy, _: play(policy, sums.held_out[:500], 1),
        max_new_tokens=6,
        seed=seed,
    )
    model.save_pretrained(directory)
    return asdict(done)


def train(directory: Path, arm: str, seed: int, steps: int, out: Path) -> Curve:
    """Train one arm, and look at it every so often."""
    sums = Sums()
    method, prompts, replies = ARMS[arm]
    model, tokenizer = load_model(directory)
    every = max(1, steps // LOOKS)
    shared = {
        "steps": steps,
        "prompts_per_step": prompts,
        "group_size": replies,
        "learning_rate": 3e-4,
        "max_new_tokens": 6,
        "seed": seed,
        "alarm_patience": 0,
    }
    policy = ModelPolicy(model, tokenizer, max_new_tokens=6, seed=seed)
    curve = Curve([], [], [], 0.0, float("nan"))
    foreseen: list[float] = []
    looked, started = 0.0, time.process_time()

    def look(row: dict[str, Any]) -> None:
        nonlocal looked
        if "value/explained_variance" in row and row["step"] > steps / 2:
            foreseen.append(row["value/explained_variance"])
        if row["step"] % every and row["step"] != steps:
            return
        begun = time.process_time()
        policy.reseed(seed)
        curve.steps.append(row["step"])
        curve.seconds.append(begun - started - looked)
        score = evaluate(policy, lambda p, _: play(p, sums.held_out, 1))
        curve.passed.append(score.pass_at_1)
        looked += time.process_time() - begun

    kind, config = (
        (PPOLearner, PPOConfig(**shared, critic_learning_rate=1e-3))
        if method == "ppo"
        else (Learner, GRPOConfig(**shared))
    )
    rollout = sums.rollout(prompts, replies)
    kind(model, tokenizer, rollout, config, out, progress=False, on_step=look).train()
    greedy = ModelPolicy(model, tokenizer, max_new_tokens=6, temperature=0)
    last = evaluate(greedy, lambda p, _: play(p, sums.held_out, 1)).pass_at_1
    mean = statistics.fmean(foreseen) if foreseen else float("nan")
    return Curve(curve.steps, curve.seconds, curve.passed, last, mean)


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
    base = memory("VmRSS")
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
        "alarm_patience": 0,
    }
    if "reference" in arm:
        shared |= {"beta": 0.04, "kl": "k1", "kl_in": "reward"}
    kind, config = (
        (PPOLearner, PPOConfig(**shared))
        if arm.startswith("ppo")
        else (Learner, GRPOConfig(**shared))
    )

    def mark(row: dict[str, Any]) -> None:
        marks.append((memory("VmHWM"), time.process_time()))

    kind(model, tokenizer, rollout, config, out, progress=False, on_step=mark).train()
    parameters = sum(p.numel() for p in model.parameters())
    peak = marks[-1][0] - base  # before the checkpoint is written
    return {
        "parameters": parameters,
        "mib": peak / 2**20,
        "bytes_per_parameter": peak / parameters,
        "seconds": marks[-1][1] - marks[1][1],
    }


def memory(name: str) -> float:
    """Bytes that this process holds (``VmRSS``) or ever held (``VmHWM``)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024.0 * int(x.split()[1]) for x in lines if x.startswith(name + ":"))


def fresh(*arguments: str) -> Any:
    """Run a part of this file in a process of its own; what it printed last, as JSON."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def compare_memory(root: Path) -> None:
    """Print peak memory of each method."""
    large_model(root / "large")
    found = {
        arm: fresh("--part", "hold", "--arm", arm, "--dir", str(root / "large")) for arm in MEMORY
    }
    first = found["grpo"]
    print(f"{first['parameters'] / 1e6:.1f} million parameters, float32, AdamW, one thread")
    print(f"{'':18s} {'MiB':>6s} {'bytes/parameter':>16s} {'of grpo':>8s} {'CPU s/step':>11s}")
    for arm, x in found.items():
        share = x["mib"] / first["mib"]
        print(
            f"{arm:18s} {x['mib']:6.0f} {x['bytes_per_parameter']:16.1f} {share:8.2f} "
            f"{x['seconds']:11.2f}"
        )


def compare_quality(root: Path, steps: int, seeds: int, jobs: int, png: Path) -> None:
    """Train all arms from all seeds, print a table, and draw the curves."""
    with ThreadPoolExecutor(jobs) as pool:
        models = {seed: root / f"model-{seed}" for seed in range(seeds)}
        for seed, done in zip(
            models,
            pool.map(
                lambda s: fresh("--part", "warm", "--seed", str(s), "--dir", str(models[s])), models
            ),
            strict=True,
        ):
            print(f"seed {seed}: warm after {done['steps']} steps at {done['pass_at_1']:.3f}")
        asked = [(arm, seed) for seed in models for arm in ARMS]

        def run(one: tuple[str, int]) -> Curve:
            arm, seed = one
            where = ("--dir", str(models[seed]), "--steps", str(steps))
            return Curve(**fresh("--part", "train", "--arm", arm, "--seed", str(seed), *where))

        curves = dict(zip(asked, pool.map(run, asked), strict=True))
    print(f"\nheld-out pass@1 (sampled, at temperature 1) after {steps} steps of 512 replies")
    head = ("by seed", "mean", "greedy", "CPU s", "foreseen")
    print(f"{'':34s} {head[0]:>20s} {head[1]:>6s} {head[2]:>7s} {head[3]:>7s} {head[4]:>9s}")
    for arm in ARMS:
        mine = [curves[arm, seed] for seed in range(seeds)]
        ends = [c.passed[-1] for c in mine]
        each = " ".join(f"{x:.3f}" for x in ends)
        row = [statistics.fmean(ends), statistics.fmean(c.greedy for c in mine)]
        row += [statistics.fmean(c.seconds[-1] for c in mine)]
        row += [statistics.fmean(c.foreseen for c in mine)]
        print(f"{arm:34s} {each:>20s} {row[0]:6.3f} {row[1]:7.3f} {row[2]:7.1f} {row[3]:9.2f}")
    draw(curves, seeds, png)
    print(f"\ncurves: {png}")


def draw(curves: dict[tuple[str, int], Curve], seeds: int, png: Path) -> None:
    """Pass@1 by step and by CPU seconds: the mean of the seeds, and their range."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    for arm in ARMS:
        mine = [curves[arm, seed] for seed in range(seeds)]
        table = list(zip(*(c.passed for c in mine), strict=True))
        means = [statistics.fmean(x) for x in table]
        by = (mine[0].steps, list(mean_of([c.seconds for c in mine])))
        for axis, across in zip(axes, by, strict=True):
            axis.plot(across, means, label=arm)
            axis.fill_between(across, [min(x) for x in table], [max(x) for x in table], alpha=0.2)
    axes[0].set(xlabel="step (512 replies each)", ylabel="held-out pass@1, sampled")
    axes[1].set(xlabel="CPU seconds of training, one thread")
    axes[0].legend()
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(png, dpi=120)


def mean_of(lists: Sequence[Sequence[float]]) -> Iterator[float]:
    """Means of lists, place by place."""
    return (statistics.fmean(x) for x in zip(*lists, strict=True))


def main() -> None:
    """Compare, or, in a process of its own, do one part."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=300)
    arguments.add_argument("--seeds", type=int, default=2)
    arguments.add_argument("--jobs", type=int, default=2, help="runs side by side")
    arguments.add_argument("--png", type=Path, default=Path("ppo.png"))
    arguments.add_argument("--memory", action="store_true", help="memory instead of quality")
    for hidden in ("--part", "--arm", "--dir", "--seed"):
        arguments.add_argument(hidden, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    transformers_logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if given.part == "warm":
            print(json.dumps(warm(Path(given.dir), int(given.seed))))
        elif given.part == "train":
            curve = train(Path(given.dir), given.arm, int(given.seed), given.steps, root / "run")
            print(json.dumps(asdict(curve)))
        elif given.part == "hold":
            print(json.dumps(hold(Path(given.dir), given.arm, root / "run")))
        elif given.memory:
            compare_memory(root)
        else:
            compare_quality(root, given.steps, given.seeds, given.jobs, given.png)


if __name__ == "__main__":
    main()
