"""Learning curves: the same start, tasks and settings through our Learner and TRL's GRPOTrainer.

A character-level Llama of 0.4 million parameters learns a+b below 100 by GRPO: P = 64 prompts,
G = 8, learning rate 3e-4 after 10 steps of warm-up, token mean, no KL, the sample's standard
deviation plus 1e-4. Each seed warms up one model on worked sums until it is right three times in
ten; both sides start from it and take the same prompts in the same order. Every so many steps
held-out pass@1 is taken of both by the same sampler; the clock of training stands meanwhile.
Runs are processes of one thread each, two at once; their clocks count CPU seconds.

    python benchmarks/learning_curves.py [--seeds 3] [--steps 240] [--png docs/learning-curves.png]

It prints pass@1 by step (mean over seeds, least and most), CPU seconds, those until both sides'
means were at the same pass@1, and ratios. Some six minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig as TRLConfig
from trl import GRPOTrainer

from assay import make
from assay.envs import TextEnv
from assay.family.trainers import warm_start
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

ENV = "assay/Arithmetic-v1"
PROMPTS, GROUP, TOKENS, RATE, WARMUP = 64, 8, 6, 3e-4, 10
Curve = list[tuple[int, float, float]]
"""Step, held-out pass@1, CPU seconds of training so far."""


class Clock:
    """Held-out pass@1 of a model as it is trained, on a clock that stands meanwhile.

    It counts the process's CPU seconds, which on one thread of an idle machine are those on the
    wall, and which another load hardly changes.
    """

    def __init__(self, tokenizer: Any, every: int, tasks: int) -> None:
        self.tokenizer, self.every = tokenizer, every
        self.held_out = held_out_tasks(make(ENV, split="test"), tasks)
        self.curve: Curve = []
        self.seconds, self._since = 0.0, time.process_time()

    def look(self, model: Any, step: int) -> None:
        """Take a point where one is due."""
        self.seconds += time.process_time() - self._since
        if step % self.every == 0:
            policy = ModelPolicy(model, self.tokenizer, max_new_tokens=TOKENS, seed=0)
            score = evaluate(policy, self.held_out).pass_at_1
            self.curve.append((step, score, self.seconds))
        self._since = time.process_time()


@dataclass(frozen=True)
class Job:
    """One side's run from one seed's start."""

    side: str
    folder: Path
    seed: int
    steps: int
    out: Path
    every: int
    held_out: int

    def run(self) -> Curve:
        """In this process, on one thread."""
        torch.set_num_threads(1)
        return {"assay": ours, "TRL": trl}[self.side](self)

    def clock(self, tokenizer: Any) -> Clock:
        """Of this run, starting now."""
        return Clock(tokenizer, self.every, self.held_out)


def start(folder: Path, seed: int) -> None:
    """A model that is right now and then."""
    torch.set_num_threads(1)
    model, tokenizer = load_model(tiny_model(folder, seed=seed))
    train, test = make(ENV, split="train"), make(ENV, split="test")
    tasks = [train.task(i) for i in range(3000)]
    warm_start(model, tokenizer, tasks, held_out_tasks(test, 500), max_new_tokens=TOKENS, seed=seed)
    model.save_pretrained(folder)


def ours(job: Job) -> Curve:
    """Train with the Learner."""
    model, tokenizer = load_model(job.folder)
    config = GRPOConfig(
        steps=job.steps,
        prompts_per_step=PROMPTS,
        group_size=GROUP,
        learning_rate=RATE,
        warmup_steps=WARMUP,
        max_new_tokens=TOKENS,
        advantage_std="sample",
        advantage_eps=1e-4,
        seed=job.seed,
    )
    watch = job.clock(tokenizer)
    tasks = training_tasks(make(ENV, split="train"), config)
    on_step = lambda row: watch.look(model, row["step"])  # noqa: E731
    # As TRL's below, it writes to no tracker: TensorBoard's thread counts as this process's.
    learner = Learner(
        model, tokenizer, tasks, config, job.out, progress=False, trackers=(), on_step=on_step
    )
    learner.train()
    return watch.curve


def trl(job: Job) -> Curve:
    """Train with TRL, as it is fastest on a CPU."""
    model, tokenizer = load_model(job.folder)
    env = make(ENV, split="train").unwrapped
    assert isinstance(env, TextEnv)
    tasks = [env.task(env.source.schedule(i, job.seed)) for i in range(job.steps * PROMPTS)]
    watch = job.clock(tokenizer)

    def reward(completions: list[str], number: list[int], **_: Any) -> list[float | None]:
        references = [tasks[i].reference for i in number]
        return [v.score for v in env.rubric.verify_many(completions, references)]

    class Look(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            watch.look(model, 0)

        def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
            watch.look(model, state.global_step)

    config = TRLConfig(
        output_dir=str(job.out),
        per_device_train_batch_size=PROMPTS * GROUP,
        num_generations=GROUP,
        max_completion_length=TOKENS,
        max_steps=job.steps,
        shuffle_dataset=False,
        learning_rate=RATE,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=WARMUP,
        weight_decay=0.0,
        max_grad_norm=1.0,
        beta=0.0,
        epsilon=0.2,
        loss_type="dapo",
        temperature=1.0,
        top_k=0,
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=True,
        dataloader_pin_memory=False,
        seed=job.seed,
    )
    rows = {"prompt": [t.text for t in tasks], "number": list(range(len(tasks)))}
    GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        args=config,
        train_dataset=Dataset.from_dict(rows),
        callbacks=[Look()],
    ).train()
    return watch.curve


def table(curves: dict[str, list[Curve]]) -> None:
    """Print pass@1 by step, then seconds and ratios."""
    points = [step for step, _, _ in curves["assay"][0]]
    print("| step | " + " | ".join(f"{side} (least to most)" for side in curves) + " |")
    print("|--:|" + "---|" * len(curves))
    for i, step in enumerate(points):
        cells = []
        for runs in curves.values():
            found = [run[i][1] for run in runs]
            cells.append(f"{statistics.mean(found):.3f} ({min(found):.3f} to {max(found):.3f})")
        print(f"| {step} | " + " | ".join(cells) + " |")
    seconds = {side: [run[-1][2] for run in runs] for side, runs in curves.items()}
    for side, found in seconds.items():
        print(f"{side}: " + ", ".join(f"{s:.1f} s" for s in found))
    ratios = [b / a for a, b in zip(seconds["assay"], seconds["TRL"], strict=True)]
    print("TRL / assay: " + ", ".join(f"{r:.2f}" for r in ratios))
    means = {side: mean_curve(runs) for side, runs in curves.items()}
    level = min(curve[-1][1] for curve in means.values())
    a, b = (seconds_to(level, means[side]) for side in ("assay", "TRL"))
    print(f"pass@1 {level:.3f}: assay {a:.1f} s, TRL {b:.1f} s, TRL / assay {b / a:.2f}")


def mean_curve(runs: Sequence[Curve]) -> Curve:
    """Means over runs, point by point."""
    columns = zip(*runs, strict=True)
    return [
        (points[0][0], statistics.mean(p[1] for p in points), statistics.mean(p[2] for p in points))
        for points in columns
    ]


def seconds_to(level: float, curve: Curve) -> float:
    """When a curve first was at a level, on a straight line between points; it must get there."""
    before = curve[0]
    for point in curve:
        if point[1] >= level:
            rise = point[1] - before[1]
            share = (level - before[1]) / rise if rise > 0 else 0.0
            return before[2] + max(0.0, share) * (point[2] - before[2])
        before = point
    raise ValueError(f"the curve never was at {level}")


def plot(curves: dict[str, list[Curve]], png: Path) -> None:
    """Means with bands from the least to the most: by step, and by second."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    by_step, by_second = figure.subplots(1, 2, sharey=True)
    for (side, runs), color in zip(curves.items(), ("tab:blue", "tab:orange"), strict=True):
        scores = [[point[1] for point in run] for run in runs]
        steps, mean, seconds = (list(column) for column in zip(*mean_curve(runs), strict=True))
        low, high = ([f(c) for c in zip(*scores, strict=True)] for f in (min, max))
        for axes, x in ((by_step, steps), (by_second, seconds)):
            axes.plot(x, mean, label=side, color=color, marker="o", ms=3)
            axes.fill_between(x, low, high, color=color, alpha=0.2, lw=0)
            axes.grid(alpha=0.25)
    by_step.set(xlabel="step", ylabel="held-out pass@1", title="the same curve per step")
    by_second.set(xlabel="CPU seconds of training", title=f"per second ({len(runs)} seeds each)")
    by_step.legend(loc="lower right")
    figure.savefig(png)


def main() -> None:
    """A start for each seed, then both sides from it, some runs at once."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=240)
    arguments.add_argument("--every", type=int, default=40)
    arguments.add_argument("--held-out", type=int, default=1000)
    arguments.add_argument("--at-once", type=int, default=2)
    arguments.add_argument("--png", type=Path)
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    curves: dict[str, list[Curve]] = {"assay": [], "TRL": []}
    root = Path(tempfile.mkdtemp())
    folders = [root / f"start-{seed}" for seed in range(given.seeds)]
    jobs = [
        Job(side, folder, seed, given.steps, root / f"{side}-{seed}", given.every, given.held_out)
        for side in ("TRL", "assay")  # the longer ones first
        for seed, folder in enumerate(folders)
    ]
    try:
        with ProcessPoolExecutor(given.at_once, mp_context=get_context("spawn")) as pool:
            list(pool.map(start, folders, range(given.seeds)))
            for job, curve in zip(jobs, pool.map(Job.run, jobs), strict=True):
                curves[job.side].append(curve)
                _, score, seconds = curve[-1]
                print(f"{job.side}, seed {job.seed}: {score:.3f} after {seconds:.1f} s", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if given.json:
        given.json.write_text(json.dumps(curves), encoding="utf-8")
    table(curves)
    if given.png:
        plot(curves, given.png)


if __name__ == "__main__":
    main()
