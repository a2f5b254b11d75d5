"""``assay train``: an environment, a model, and GRPO between them."""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Column, Table

from .agent_place import agent_env
from .console import add_row, err, out, say
from .envs import TextEnv, arguments, levels, make
from .envs.datasets.bad_rows import bad_rows_record
from .envs.datasets.errors import SplitError
from .envs.datasets.splits import have_same_prompts, make_for
from .extras import needing
from .grpo import PRESETS, GRPOConfig
from .naming import found_here
from .sandbox.redaction import redact, redacted_paths
from .train_config import MOVABLE, TrainConfig
from .train_settings import (
    as_file,
    build,
    defaults,
    find_preset,
    from_file,
    layered,
    read_stored,
    refuse_unreached,
    write_stored,
)

if TYPE_CHECKING:
    from .grpo import Engine
    from .grpo.tasks import PlayTasks


def presets_command(
    name: Annotated[str | None, typer.Argument(help="Show this one's settings.")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print settings and presets as the docs' page.")
    ] = False,
) -> None:
    """List the papers that --preset takes, or show one's settings."""
    if markdown:
        from .settings_page import page

        out.file.write(page())
        return
    if name is None:
        table = Table(Column("preset", no_wrap=True), Column("arXiv", no_wrap=True), "what")
        for preset in PRESETS.values():
            add_row(table, preset.name, preset.paper, preset.what)
        out.print(table)
        say("Settings of one: assay presets NAME")
        return
    found = find_preset(name)
    where = f", {found.where}" if found.where else ""
    say(f"# {found.what}\n# https://arxiv.org/abs/{found.paper}{where}")
    if found.missing:
        say(f"# Beside: {found.missing}")
    for key, value in found.overrides.items():
        say(f"{key}: {json.dumps(value)}")  # which is YAML


def hush_transformers() -> None:
    """Turn off the progress bars of transformers, which would break up our own.

    Raises:
        ImportError: transformers is not installed.
    """
    with needing("assay train", "train"):
        from transformers.utils import logging
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it so


def train_with(given: Mapping[str, Any]) -> None:
    """Merge the settings, then train or print them."""
    flags = dict(given)
    asked = {name: flags.pop(name, None) for name in ("config", "preset", "resume", "print_config")}
    file = from_file(asked["config"]) if asked["config"] else {}
    stored: dict[str, Any] = {}
    if asked["resume"]:
        where = flags.get("out_dir") or file.get("out_dir") or defaults()["out_dir"]
        stored = {**read_stored(where), "out_dir": str(where)}
    values, chosen = layered(stored=stored, file=file, preset=asked["preset"], flags=flags)
    if asked["print_config"]:
        if {"env", "model"} <= values.keys():
            build(values)  # it prints no settings that it would not take
        out.file.write(as_file(values))
        return
    config = build(values)
    hush_transformers()
    refuse_unreached(config, chosen)
    if asked["resume"]:
        refuse_moved(config, stored)
    _run(config, chosen, resume=bool(asked["resume"]))


def refuse_moved(config: TrainConfig, stored: Mapping[str, Any]) -> None:
    """Refuse to resume a run on other tasks; the learner validates its own settings.

    Raises:
        ValueError: a setting of this command differs from that of the run.
    """
    learners = {f.name for f in fields(GRPOConfig)}
    for name, before in stored.items():
        now = redact(getattr(config, name), name)
        if name not in learners and name not in MOVABLE and now != before:
            raise ValueError(
                f"{config.out_dir!r} was made with {name}={before!r}, and not {now!r}: resume with "
                "the former, or give another --out"
            )


def _run(config: TrainConfig, chosen: set[str], *, resume: bool) -> None:
    from .grpo import Learner, ServerError, World, held_out_tasks, load_model, training_tasks
    from .grpo.interrupt import Terminated, TrainingStopped, terminable
    from .grpo.log import require_trackers
    from .grpo.run_directory import find_start
    from .grpo.tasks import splits_of
    from .grpo.vllm_server import require_executable
    from .run_report.plot import plot_learning_curve

    found_here(config.env)
    with ExitStack() as stack:
        train_env = stack.enter_context(
            closing(_made("train", config, config.data, config.env_args))
        )
        sampler = config.sampler(train_env.source)
        player = _player(config, train_env, stack)
        rollout = training_tasks(train_env, config.learner(), sampler, play_tasks=player)
        test_env = _held_out_env(config, train_env) if config.eval_every else None
        if test_env is not None:
            stack.callback(test_env.close)
        elif config.eval_every:
            config = _without_evaluation(config, chosen)
        # First what may be refused without reading gigabytes of weights.
        held_out = None
        if test_env:
            held_out = held_out_tasks(
                test_env,
                config.held_out,
                group_size=config.eval_samples,
                play_tasks=_player(config, test_env, stack),
            )
            splits_of(rollout, held_out, config.learner())
        world = World.join()
        stack.callback(world.leave)
        stack.enter_context(terminable())
        if world.is_main:
            log_steps()
        require_trackers(config.trackers)
        if config.engine == "vllm" and config.server is None and world.is_main:
            try:
                require_executable(config.vllm_executable)
            except ServerError as error:
                raise ConnectionError(str(error)) from error
        if not resume:  # a resumed run's checkpoint is hashed once, by the learner
            world.on_main(lambda: find_start(Path(config.out_dir), resume=False))
        loaded, tokenizer = load_model(
            config.model,
            device=config.device,
            dtype=config.dtype,
            autocast=config.autocast,
            lora=config.lora(),
            gradient_checkpointing=config.gradient_checkpointing,
        )
        refuse_length(loaded, config.max_new_tokens)
        engine = None
        if world.is_main:
            engine = stack.enter_context(engine_of(config, loaded, tokenizer))
        bad_rows = train_env.bad_rows
        learner = Learner(
            loaded,
            tokenizer,
            rollout,
            config.learner(),
            config.out_dir,
            held_out=held_out,
            resume=resume,
            engine=engine,
            trackers=config.trackers,
            samples=config.samples,
            about=config.about() | ({"bad_rows": bad_rows_record(bad_rows)} if bad_rows else {}),
            world=world,
            shard=config.shard,
        )
        if world.is_main:
            write_stored(config)
        try:
            learner.train()
        except (KeyboardInterrupt, Terminated):
            if world.is_main:
                say(f"To go on: {resume_command(config, world.size)}", to=err)
            raise
        except TrainingStopped as error:
            if os.environ.get("ASSAY_DEBUG"):
                raise
            say(f"{type(error).__name__}: {error}", to=err)
            raise typer.Exit(1) from error
        saved = learner.save()
    if not world.is_main:
        return
    folder = Path(config.out_dir)
    metrics = folder / "metrics.jsonl"
    picture = plot_learning_curve(
        metrics, folder / "learning_curve.png", title=f"GRPO on {config.env}"
    )
    say(f"Model: {saved}\nMetrics: {metrics}\nPicture: {picture}")
    say(f"Page of curves and samples: assay report {folder}")


def _player(config: TrainConfig, env: TextEnv, stack: ExitStack) -> PlayTasks | None:
    """Return what plays the tasks in the environment's place, if a program does."""
    if config.agent is None:
        return None
    played = agent_env(
        env,
        config.agent,
        unsafe=config.unsafe_agent,
        backend=config.agent_backend,
        image=config.agent_image,
        memory_mib=config.agent_memory_mib,
        file=config.agent_file,
        answer_file=config.agent_answer,
        time_s=config.agent_time_s,
        at_once=config.agents_at_once,
    )
    agent = stack.enter_context(played)
    from .gateway.policy_engine import AgentPlayer

    return AgentPlayer(agent, max_turns=config.agent_turns)


def log_steps() -> None:
    """Log each step to stderr, unless it is a terminal, which shows a bar."""
    if not err.is_terminal:
        logging.basicConfig(format="%(asctime)s %(message)s")
        logging.getLogger("assay").setLevel(logging.INFO)


def resume_command(config: TrainConfig, processes: int = 1) -> str:
    """Return the command that resumes a run; secrets are placeholders."""
    launcher = ["torchrun", f"--nproc-per-node={processes}", "-m"] if processes > 1 else []
    command = shlex.join([*launcher, "assay", "train", "--resume", "--out", config.out_dir])
    for path in redacted_paths(config.to_json()):
        name = path.removeprefix("env_args.")
        command += f" --set {name}=..." if name != path else f" --{name.replace('_', '-')} ..."
    return command


@contextmanager
def engine_of(config: TrainConfig, model: Any, tokenizer: Any) -> Iterator[Engine | None]:
    """Yield what samples in the model's place, with its weights; close it and end its server.

    Raises:
        ConnectionError: the server cannot be started or reached, or is not one of this model.
    """
    if config.engine == "transformers":
        yield None
        return
    from .grpo import ServerError, VLLMPolicy, VLLMServer
    from .grpo.model import computed_dtype, is_adapted

    folder = Path(config.out_dir)
    try:
        with ExitStack() as stack:
            server: VLLMServer | str | None = config.server
            if server is None:
                adapters = getattr(model, "peft_config", {}).values()
                sleep = ["--enable-sleep-mode"] * config.server_sleep
                server = VLLMServer(
                    model.config._name_or_path,
                    folder / "vllm.log",
                    executable=config.vllm_executable,
                    dtype=config.server_dtype or str(computed_dtype(model)).removeprefix("torch."),
                    max_model_len=config.max_model_len,
                    lora_rank=max((adapter.r for adapter in adapters), default=0),
                    options=[*sleep, *shlex.split(config.server_options)],
                )
                stack.enter_context(server)
            # Weights that the next sync brings anyway are dropped; an adapter's base stays.
            asleep: Literal[1, 2] = 1 if is_adapted(model) else 2
            policy = VLLMPolicy(
                tokenizer,
                server,
                config.sync_dir or folder / "vllm",
                max_new_tokens=config.max_new_tokens,
                temperature=config.temperature,
                chat_template_kwargs=config.chat_template_kwargs,
                sleep_level=asleep if config.server_sleep else 0,
            )
            stack.enter_context(closing(policy))
            policy.sync(model, 0)  # refuse before the run writes a file
            yield policy
    except ServerError as error:
        raise ConnectionError(str(error)) from error


def refuse_length(model: Any, max_new_tokens: int) -> None:
    """Refuse replies longer than the positions that a model is made for.

    Raises:
        ValueError: they are.
    """
    most = getattr(model.config, "max_position_embeddings", None)
    if most is not None and max_new_tokens >= most:
        raise ValueError(
            f"max_new_tokens={max_new_tokens}, and the model is made for {most} tokens, prompt and "
            "reply together: lower it"
        )


def _made(
    role: Literal["train", "test"],
    config: TrainConfig,
    data: str | None,
    env_args: Mapping[str, Any],
) -> TextEnv:
    """Make the environment to train or to evaluate on."""
    args = {**env_args, **({} if data is None else {"data": data}), **(config.levels or {})}
    build = make if config.levels is None else levels
    allowed = role == "train" and config.allow_test_split
    return make_for(role, config.env, args, any_split=allowed, build=build)[0]


def _held_out_env(config: TrainConfig, train_env: TextEnv) -> TextEnv | None:
    """Make the environment of the evaluation; None if it has only training tasks."""
    args = {name: value for name, value in config.env_args.items() if name != "split"}
    if config.held_out_data is not None:
        return _made("test", config, config.held_out_data, args)
    if "split" not in arguments(config.env):
        return None
    try:
        env = _made("test", config, config.data, args)
    except SplitError:
        return None
    if have_same_prompts(env.source, train_env.source):  # a file has no other split
        env.close()
        return None
    return env


def _without_evaluation(config: TrainConfig, chosen: set[str]) -> TrainConfig:
    """Return settings without evaluations; refuse if one was asked for explicitly."""
    asked = sorted(chosen & _OF_EVALUATION)
    if asked:
        raise ValueError(
            f"{asked[0]} needs held-out tasks, and {config.env} has none of its own: give "
            "--held-out-data, or set eval_every to 0"
        )
    say("No held-out tasks: give --held-out-data to evaluate on tasks that are not trained on.")
    return replace(config, eval_every=0)


_OF_EVALUATION = {
    *("eval_every", "held_out", "keep_best", "early_stop", "eval_samples", "eval_temperature")
}
