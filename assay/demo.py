"""``assay demo``: score answers, run code in a sandbox, train a model with GRPO."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from typer import Option

from .console import add_row, out, progress, say
from .envs import make, wilson_interval
from .sandbox import Limits, Sandbox, SandboxError
from .training_cli import hush_transformers
from .verifiers import Code, Format, Math, Rubric
from .verifiers.atomic_io import write_directory

ENV = "assay/Arithmetic-v1"
Row = Mapping[str, Any]
_REPLIES = (
    r"Half of 3/4 is \boxed{0.375}.",
    "<think>0.75 / 2</think><answer>3/8</answer>",
    "It is 3/8 or 4/8.",
    "I don't know.",
)
_PROGRAMS = {
    "right": "def add(a, b):\n    return a + b",
    "wrong": "def add(a, b):\n    return a - b",
    "leaves before the tests": "import os\nos._exit(0)",
    "equals everything": "class Any(int):\n    __eq__ = lambda *_: True\n"
    "def add(a, b):\n    return Any(0)",
    "never ends": "def add(a, b):\n    while True: pass",
    "takes all memory": "def add(a, b):\n    return len([0] * 10**10)",
}
_TESTS = {"tests": "assert add(2, 3) == 5\nassert add(-1, 1) == 0", "entry_point": "add"}


def demo(
    out_dir: Annotated[Path, Option("--out", "-o", help="Directory of the runs.")] = Path(
        "runs/demo"
    ),
    seed: Annotated[int, Option(help="Random seed.")] = 0,
    steps: Annotated[int, Option(min=0, help="GRPO steps.")] = 400,
) -> None:
    """Run the main use case on this machine in about two minutes.

    Scores a few answers, runs a few programs in a sandbox, makes a tiny model, pretrains it on
    worked sums until it is sometimes correct, and trains it with GRPO on rewards alone. An
    interrupted demo continues when it is started again.
    """
    hush_transformers()
    out.print(_scored_answers())
    _run_programs()
    _train(out_dir / f"seed-{seed}", seed, steps)


def _scored_answers() -> Table:
    rubric = Rubric(
        {"accuracy": Math(), "format": Format()},
        weights={"accuracy": 1.0, "format": 0.2},
        gate="accuracy",
    )
    table = Table("reply", "score", "accuracy", "format", "why", title="Answers, gold 3/8")
    for reply, verdict in zip(
        _REPLIES, rubric.verify_many(_REPLIES, ["3/8"] * len(_REPLIES)), strict=True
    ):
        parts = [f"{verdict.parts[name]:.0f}" for name in ("accuracy", "format")]
        add_row(table, reply, f"{verdict.score:.2f}", *parts, verdict.reason)
    rubric.close()
    return table


def _run_programs() -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table's title says which backend it is
            with Sandbox(limits=Limits(cpu_s=1, memory_mib=256)) as sandbox:
                code = Code(sandbox)
                verdicts = code.verify_many(list(_PROGRAMS.values()), [_TESTS] * len(_PROGRAMS))
                backend = sandbox.backend
    except SandboxError as error:
        say(f"No sandbox here, so no program was run: {error}")
        return
    table = Table("program", "score", "status", "why", title=f"Programs, in {backend}")
    for name, verdict in zip(_PROGRAMS, verdicts, strict=True):
        score = "none" if verdict.score is None else f"{verdict.score:.0f}"
        add_row(table, name, score, verdict.status.value, verdict.reason)
    out.print(table)


def _train(folder: Path, seed: int, steps: int) -> None:
    import torch

    from .grpo import (
        GRPOConfig,
        Learner,
        held_out_tasks,
        list_checkpoints,
        load_model,
        read_metrics,
        training_tasks,
    )
    from .run_report.plot import plot_learning_curve

    config = GRPOConfig(
        learning_rate=3e-4, steps=steps, max_new_tokens=6, eval_every=50, save_every=100, seed=seed
    )
    started = time.perf_counter()
    # So small a model gains nothing from a second thread, and waits for it on a busy machine.
    torch.set_num_threads(1)
    test = held_out_tasks(make(ENV, split="test"), 1000)
    start = folder / "start"
    if not (start / "config.json").exists():
        write_directory(start, lambda to: _make_start(to, seed))
    model, tokenizer = load_model(start)
    learner = Learner(
        model,
        tokenizer,
        training_tasks(make(ENV, split="train"), config),
        config,
        folder,
        held_out=test,
        resume=bool(list_checkpoints(folder / "checkpoints")),
        about={"env": ENV},
    )
    learner.train()
    picture = plot_learning_curve(
        folder / "metrics.jsonl", folder / "learning_curve.png", title=f"GRPO on {ENV}, seed {seed}"
    )
    evaluated = [r for r in read_metrics(folder / "metrics.jsonl") if "held_out/scored" in r]
    seconds = time.perf_counter() - started
    table = _before_and_after(evaluated[0], evaluated[-1], f"Learning a+b by GRPO, {seconds:.0f} s")
    out.print(table)
    say(f"Learning curve: {picture}\nModel: {learner.save()}")
    say(f"Page of curves and samples: assay report {folder}")


def _make_start(folder: Path, seed: int) -> None:
    """Make a tiny model that is sometimes correct."""
    from .family.trainers import warm_start
    from .grpo import held_out_tasks, load_model, tiny_model

    model, tokenizer = load_model(tiny_model(folder, seed=seed))
    train = make(ENV, split="train")
    with progress() as bar:
        line = bar.add_task("warm start", total=None)
        warm_start(
            model,
            tokenizer,
            [train.task(i) for i in range(3000)],
            held_out_tasks(make(ENV, split="test"), 500),
            target=0.3,
            check_every=10,
            max_new_tokens=6,
            seed=seed,
            progress=lambda w: bar.update(
                line, description=f"warm start, step {w.steps}: pass@1 {w.pass_at_1:.2f}"
            ),
        )
    model.save_pretrained(folder)


def _before_and_after(before: Row, after: Row, title: str) -> Table:
    table = Table("held-out pass@1", "value", "95 % interval", "problems", title=title)
    for name, row in (("before", before), ("after", after)):
        share, scored = row["held_out/pass_at_1"], row["held_out/scored"]
        low, high = wilson_interval(round(share * scored), scored)
        add_row(table, name, f"{share:.3f}", f"{low:.3f} to {high:.3f}", str(scored))
    gain = after["held_out/pass_at_1"] - before["held_out/pass_at_1"]
    add_row(table, "gain", f"{gain:+.3f}", "", "")
    return table


def hasty(messages: Sequence[Mapping[str, str]], seed: int) -> str:
    """Add two numbers, forget to carry now and then, and sometimes answer nothing.

    A policy to try ``assay eval assay/Arithmetic-v1 --policy assay.demo:hasty``.
    """
    a, b = map(int, messages[-1]["content"].removesuffix("=").split("+"))
    mood = random.Random(seed).random()  # noqa: S311  # no secret, and reproducible
    if mood < 0.1:
        return "That is hard to say."
    return str(a + b if mood < 0.6 else (a + b) % 10 + 10 * (a // 10 + b // 10))
