"""The command: parse the options, print the plan."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..arguments import settings
from ..console import add_row, out, say
from ..extras import needing
from ..train_config import Precision, Sampling

if TYPE_CHECKING:
    from .estimate import Job, Plan

GIB = 2**30


def plan_command(
    model: Annotated[
        str,
        typer.Argument(
            help="qwen2.5-0.5b, qwen2.5-1.5b, qwen2.5-7b, a folder with config.json, or a hub name."
        ),
    ],
    gpu: Annotated[
        str,
        typer.Option(help="a100-40gb, a100-80gb, h100-80gb, h200-141gb, l4-24gb or rtx4090-24gb."),
    ] = "h100-80gb",
    count: Annotated[int, typer.Option(help="GPUs; several share the states (FSDP2).")] = 1,
    engine: Annotated[
        Sampling,
        typer.Option(metavar="TEXT", help="What samples: transformers, or vllm on its own GPUs."),
    ] = "transformers",
    lora: Annotated[bool, typer.Option("--lora", help="Train adapters of rank 16.")] = False,
    lora_rank: Annotated[int, typer.Option(help="Train adapters of this rank.")] = 0,
    dtype: Annotated[
        Precision, typer.Option(metavar="TEXT", help="Of the weights: float32 or bfloat16.")
    ] = "float32",
    gradient_checkpointing: Annotated[
        bool, typer.Option("--gradient-checkpointing", help="Compute layers again backward.")
    ] = False,
    prompt_tokens: Annotated[int, typer.Option(help="Tokens of a prompt.")] = 256,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the learner, such as group_size=8."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Plan a training run: memory, operations and least time.

    It needs neither weights nor a GPU. Memory is that of the update's own code, run on shapes
    alone. Times are lower bounds by the GPU's data sheet, not estimates.
    Exit code 1: it does not fit.
    """
    with needing("assay plan", "train"):
        import torch

        from ..grpo import GRPOConfig, LoRA
        from .estimate import Job, plan, read_config
    given = settings(setting or [])
    known = {each.name for each in fields(GRPOConfig)}
    for name in given.keys() - known:
        raise ValueError(f"--set {name}: the learner has no such setting: assay train --help-all")
    try:
        config = GRPOConfig(**given)
    except TypeError as error:
        raise ValueError(f"--set {error}") from error
    rank = lora_rank or 16 * lora
    job = Job(
        model=read_config(model),
        config=config,
        prompt_tokens=prompt_tokens,
        gpu=gpu,
        count=count,
        engine=engine,
        dtype=getattr(torch, dtype),
        gradient_checkpointing=gradient_checkpointing,
        lora=LoRA(rank=rank) if rank else None,
    )
    found = plan(job)
    if as_json:
        derived = {name: getattr(found, name) for name in ("peak", "fits", "least_seconds")}
        out.file.write(json.dumps({**asdict(found), **derived}, indent=2) + "\n")
    else:
        _show(job, found, model)
    if not found.fits:
        raise typer.Exit(1)


def _show(job: Job, found: Plan, model: str) -> None:
    config = job.config
    trained = "all trained" if found.trained == found.parameters else f"{found.trained:,} trained"
    say(
        f"{Path(model).name}: {found.parameters:,} parameters, {trained}\n"
        f"A step: {config.prompts_per_step} prompts of {job.prompt_tokens} tokens, "
        f"{config.group_size} replies of {config.max_new_tokens} to each; "
        f"micro-batches of {config.tokens_per_batch} tokens"
    )
    kinds = list(dict.fromkeys(kind for sizes in found.phases.values() for kind in sizes))
    memory = Table("GiB on each GPU" if job.count > 1 else "GiB", *kinds, "peak")
    for phase, sizes in found.phases.items():
        row = [f"{sizes[kind] / GIB:.2f}" if kind in sizes else "" for kind in kinds]
        add_row(memory, phase, *row, f"{sum(sizes.values()) / GIB:.2f}")
    out.print(memory)
    if found.server:
        parts = ", ".join(f"{kind} {size / GIB:.1f}" for kind, size in found.server.items())
        say(f"vLLM server, for all replies at once: {sum(found.server.values()) / GIB:.1f} GiB "
            f"({parts})")  # fmt: skip
    work = Table("least work of a step", "TFLOP", "GB moved", "seconds at least")
    for name, part in found.work.items():
        add_row(work, name, f"{part.tflop:,.1f}", f"{part.gigabytes:,.1f}", f"{part.seconds:.3f}")
    out.print(work)
    verdict = "fits" if found.fits else "does not fit"
    usable = (found.limit or 0) / GIB
    say(
        f"Peak {found.peak / GIB:.1f} GiB, {usable:.1f} usable: {verdict} {job.count} x "
        f"{job.gpu}. A step takes at least {found.least_seconds:.2f} s (a bound)."
    )
    for line in found.advice:
        say(f"  {line}")
    divided = "; states divided between GPUs, as FSDP2 does" if job.count > 1 else ""
    say(f"Forward: {found.forward}{divided}")
