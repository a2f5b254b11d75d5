"""``assay train``: an environment, a model directory, and GRPO between them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import settings
from .console import say
from .envs import TextEnv, arguments, make
from .envs.argument_types import refuse_types
from .naming import found_here

if TYPE_CHECKING:
    from .grpo import GRPOConfig


def train(
    env: Annotated[
        str, typer.Argument(help="Environment id, such as assay/Arithmetic-v0, or module:id.")
    ],
    model: Annotated[Path, typer.Option(help="A transformers directory: weights and tokenizer.")],
    out_dir: Annotated[
        Path, typer.Option("--out", help="Checkpoints, metrics and the picture go here.")
    ] = Path("runs/train"),
    data: Annotated[str | None, typer.Option(help="Where the environment's tasks are.")] = None,
    held_out_data: Annotated[
        str | None, typer.Option(help="Tasks to evaluate on, where the environment reads data.")
    ] = None,
    held_out: Annotated[int, typer.Option(help="How many tasks to evaluate on.")] = 200,
    steps: Annotated[int, typer.Option(help="Rollouts to train on.")] = 300,
    prompts: Annotated[int, typer.Option(help="Tasks of a rollout.")] = 64,
    group_size: Annotated[int, typer.Option(help="Replies to each task, at least 2.")] = 8,
    learning_rate: Annotated[
        float, typer.Option(help="After the warm-up. A tiny model made from nothing takes 3e-4.")
    ] = 1e-6,
    max_new_tokens: Annotated[int, typer.Option(help="Longest reply, in tokens.")] = 256,
    eval_every: Annotated[int, typer.Option(help="Steps between evaluations; 0: never.")] = 50,
    save_every: Annotated[int, typer.Option(help="Steps between checkpoints.")] = 50,
    seed: Annotated[int, typer.Option(help="Decides tasks, samples and minibatches.")] = 0,
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda.")] = "cpu",
    shard: Annotated[
        bool, typer.Option(help="Under torchrun: cut weights and optimizer up (FSDP2).")
    ] = False,
    resume: Annotated[
        bool, typer.Option(help="Go on from the newest checkpoint in --out.")
    ] = False,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="An argument of the environment: digits=3.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Any other field of GRPOConfig: beta=0.04, loss=dr_grpo."),
    ] = None,
    tracker: Annotated[
        list[str] | None,
        typer.Option(help="tensorboard, wandb or trackio; may be repeated. metrics.jsonl always."),
    ] = None,
) -> None:
    """Train a model on an environment with GRPO.

    Ctrl-C leaves a whole checkpoint; --resume goes on from it as if nothing had happened.

    On several devices: torchrun --nproc-per-node 2 -m assay train ... --device cuda
    """
    hush_transformers()
    from .grpo import (
        Learner,
        World,
        held_out_tasks,
        load_model,
        plot_learning_curve,
        training_tasks,
    )

    config = _config(
        option or [],
        steps=steps,
        prompts_per_step=prompts,
        group_size=group_size,
        learning_rate=learning_rate,
        max_new_tokens=max_new_tokens,
        eval_every=eval_every,
        save_every=save_every,
        seed=seed,
    )
    kwargs = settings(setting or [])
    train_env = make(found_here(env), **_with_data(kwargs, data))
    test_env = _held_out_env(env, kwargs, held_out_data) if eval_every else None
    world = World.join()
    try:
        loaded, tokenizer = load_model(model, device=device)
        learner = Learner(
            loaded,
            tokenizer,
            training_tasks(train_env, config),
            config,
            out_dir,
            held_out=held_out_tasks(test_env, held_out, group_size=config.eval_samples)
            if test_env
            else None,
            resume=resume,
            trackers=tracker,
            about={"env": env, "model": str(model), **kwargs},
            world=world,
            shard=shard,
        )
        learner.train()
    finally:
        train_env.close()
        if test_env:
            test_env.close()
    world.leave()
    if not world.is_main:
        return
    picture = plot_learning_curve(
        out_dir / "metrics.jsonl", out_dir / "learning_curve.png", title=f"GRPO on {env}"
    )
    say(f"Model: {learner.save()}\nMetrics: {out_dir / 'metrics.jsonl'}\nPicture: {picture}")
    say(f"Page of curves and samples: assay report {out_dir}")


def hush_transformers() -> None:
    """Turn off its bars for files of a few kilobytes: they would break up our own.

    Raises:
        ImportError: transformers is not installed.
    """
    try:
        from transformers.utils import logging
    except ImportError as error:
        raise ImportError("training needs more packages: pip install 'assay[train]'") from error
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it so


def _config(options: list[str], **fields: Any) -> GRPOConfig:
    from .grpo import GRPOConfig

    extra = settings(options, flag="--option")
    known = inspect.signature(GRPOConfig).parameters
    for name in extra:
        if name not in known:
            raise ValueError(f"--option has no {name!r}; there are {', '.join(known)}")
    refuse_types("--option", GRPOConfig, extra)
    return GRPOConfig(**{**fields, **extra})


def _with_data(kwargs: dict[str, Any], data: str | None) -> dict[str, Any]:
    return kwargs if data is None else {**kwargs, "data": data}


def _held_out_env(env: str, kwargs: dict[str, Any], data: str | None) -> TextEnv | None:
    """The tasks to evaluate on, or None where none are sure to be others than those trained on."""
    takes = arguments(env)
    if "split" in takes and "data" not in takes:
        return make(env, **{**kwargs, "split": "test"})
    if data is not None:
        return make(env, **{**kwargs, "data": data})
    say("No held-out tasks: give --held-out-data to evaluate on tasks that are not trained on.")
    return None
