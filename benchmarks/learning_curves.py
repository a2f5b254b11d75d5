"""Learning curves: the same start, tasks and settings through our Learner and TRL's GRPOTrainer.

A character-level Llama of 0.4 million parameters learns a+b below 100 by GRPO: P = 64 prompts,
G = 8, learning rate 3e-4 after 10 steps of warm-up, token mean, no KL, the sample's standard
deviation plus 1e-4. Each seed warms up one model on worked sums until it is right three times in
ten; both sides start from it and take the same prompts in the same order. Every so many steps
held-out pass@1 is taken of both by the same sampler; the clock of training stands meanwhile.

    python benchmarks/learning_curves.py [--seeds 3] [--steps 400] [--plot docs/learning-curves.png]

It prints pass@1 by step (mean over seeds, least and most), CPU seconds, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig as TRLConfig
from trl import GRPOTrainer

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

ENV = "assay/Arithmetic-v0"
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


def start(folder: Path, seed: int) -> None:
    """A model that is right now and then."""
    model, tokenizer = load_model(tiny_model(folder, seed=seed))
    train, test = make(ENV, split="train"), make(ENV, split="test")
    tasks = [train.task(i) for i in range(3000)]
    warm_start(model, tokenizer, tasks, held_out_tasks(test, 500), max_new_tokens=TOKENS, seed=seed)
    model.save_pretrained(folder)


def ours(folder: Path, seed: int, steps: int, out: Path, clock: Callable[[Any], Clock]) -> Curve:
    """Train with the Learner."""
    model, tokenizer = load_model(folder)
    config = GRPOConfig(
        steps=steps,
        prompts_per_step=PROMPTS,
        group_size=GROUP,
        learning_rate=RATE,
        warmup_steps=WARMUP,
        max_new_tokens=TOKENS,
        advantage_std="sample",
        advantage_eps=1e-4,
        seed=seed,
    )
    watch = clock(tokenizer)
    tasks = training_tasks(make(ENV, split="train"), config)
    on_step = lambda row: watch.look(model, row["step"])  # noqa: E731
    Learner(model, tokenizer, tasks, config, out, progress=False, on_step=on_step).train()
    return watch.curve


def trl(folder: Path, seed: int, steps: int, out: Path, clock: Callable[[Any], Clock]) -> Curve:
    """Train with TRL, as it is fastest on a CPU."""
    model, tokenizer = load_model(folder)
    env = make(ENV, split="train").unwrapped
    assert isinstance(env, TextEnv)
    tasks = [env.task(env.source.schedule(i, seed)) for i in range(steps * PROMPTS)]
    watch = clock(tokenizer)

    def reward(completions: list[str], number: list[int], **_: Any) -> list[float | None]:
        references = [tasks[i].reference for i in number]
        return [v.score for v in env.rubric.verify_many(completions, references)]

    class Look(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            watch.look(model, 0)

        def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
            watch.look(model, state.global_step)

    config = TRLConfig(
        output_dir=str(out),
        per_device_train_batch_size=PROMPTS * GROUP,
        num_generations=GROUP,
        max_completion_length=TOKENS,
        max_steps=steps,
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
        seed=seed,
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


def plot(curves: dict[str, list[Curve]], png: Path) -> None:
    """Means with bands from the least to the most: by step, and by second."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    by_step, by_second = figure.subplots(1, 2, sharey=True)
    for (side, runs), color in zip(curves.items(), ("tab:blue", "tab:orange"), strict=True):
        scores = [[point[1] for point in run] for run in runs]
        mean = [statistics.mean(column) for column in zip(*scores, strict=True)]
        low, high = ([f(c) for c in zip(*scores, strict=True)] for f in (min, max))
        seconds = [
            statistics.mean(c) for c in zip(*[[p[2] for p in run] for run in runs], strict=True)
        ]
        for axes, x in ((by_step, [point[0] for point in runs[0]]), (by_second, seconds)):
            axes.plot(x, mean, label=side, color=color, marker="o", ms=3)
            axes.fill_between(x, low, high, color=color, alpha=0.2, lw=0)
            axes.grid(alpha=0.25)
    by_step.set(xlabel="step", ylabel="held-out pass@1", title="the same curve per step")
    by_second.set(xlabel="CPU seconds of training", title=f"per second ({len(runs)} seeds each)")
    by_step.legend(loc="lower right")
    figure.savefig(png)


def main() -> None:
    """Both sides in turn for each seed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=400)
    arguments.add_argument("--every", type=int, default=50)
    arguments.add_argument("--held-out", type=int, default=1000)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--plot", type=Path)
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    torch.set_num_threads(given.threads)
    curves: dict[str, list[Curve]] = {"assay": [], "TRL": []}
    root = Path(tempfile.mkdtemp())
    try:
        for seed in range(given.seeds):
            folder = root / f"start-{seed}"
            start(folder, seed)
            for side, run in (("assay", ours), ("TRL", trl)):

                def clock(tokenizer: Any) -> Clock:
                    return Clock(tokenizer, given.every, given.held_out)

                curve = run(folder, seed, given.steps, root / f"{side}-{seed}", clock)
                curves[side].append(curve)
                last = curve[-1]
                print(f"seed {seed}, {side}: {last[1]:.3f} after {last[2]:.1f} s", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if given.json:
        given.json.write_text(json.dumps(curves), encoding="utf-8")
    table(curves)
    if given.plot:
        plot(curves, given.plot)


if __name__ == "__main__":
    main()
