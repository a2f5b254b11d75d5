"""The settings of ``assay train``, put together: a preset, over it a file, over it the flags."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

from .docstring import meanings, without_roles
from .grpo import GRPOConfig, Objective
from .grpo.presets import PRESETS, Preset
from .sandbox.redaction import redact, redacted_paths
from .setting_files import read_settings, yaml_lines
from .setting_values import WrongValue, parse_value, read_value
from .train_config import TrainConfig
from .verifiers.atomic_io import write_settings

FILE = "config.json"
_SEE = re.compile(r"[,;]? see (?:the functions of )?:\w+:`[^`]*`")  # links of the API's pages
_EXAMPLES = {"env": "assay/Arithmetic-v1", "model": "DIR"}


@cache
def hints() -> Mapping[str, Any]:
    """The type of each setting."""
    found = get_type_hints(TrainConfig)
    return MappingProxyType({f.name: found[f.name] for f in fields(TrainConfig)})


@cache
def defaults() -> Mapping[str, Any]:
    """The settings that need not be given, as they are without."""
    found = {}
    for each in fields(TrainConfig):
        if each.default is not MISSING:
            found[each.name] = each.default
        elif each.default_factory is not MISSING:
            found[each.name] = each.default_factory()
    return MappingProxyType(found)


@cache
def told() -> Mapping[str, str]:
    """What each setting means, from the docstrings of the dataclasses."""
    found: dict[str, str] = {}
    for each in (Objective, GRPOConfig, TrainConfig):
        for name, meaning in meanings(each, "Attributes").items():
            found[name] = without_roles(_SEE.sub("", meaning))
    return MappingProxyType(found)


def groups() -> dict[str, list[str]]:
    """The settings under headings, all of them, each once."""
    names = list(hints())
    found = {heading: [n for n in chosen if n in names] for heading, chosen in _GROUPS.items()}
    placed = {n for chosen in found.values() for n in chosen}
    rest = [n for n in names if n not in placed]
    return {**found, **({"Further settings": rest} if rest else {})}


_GROUPS: dict[str, tuple[str, ...]] = {
    "Tasks": (
        "env",
        "env_args",
        "levels",
        "data",
        "held_out_data",
        "held_out",
        "allow_test_split",
        "allow_overlap",
        "allow_sample",
    ),
    "Curriculum": tuple(n for n in TrainConfig.__annotations__ if n.startswith("curriculum")),
    "Model": (
        "model",
        "device",
        "shard",
        "dtype",
        "autocast",
        "gradient_checkpointing",
        "lora_rank",
        "lora_alpha",
        "lora_targets",
    ),
    "Sampling": ("engine", "server", "vllm_executable", "server_dtype", "max_model_len"),
    "What is written": ("out_dir", "trackers", "samples"),
    "Rollouts": (
        "steps",
        "prompts_per_step",
        "group_size",
        "temperature",
        "chat_template_kwargs",
        "max_new_tokens",
        "max_refills",
        "seed",
    ),
    "Updates": (
        "learning_rate",
        "warmup_steps",
        "schedule",
        "weight_decay",
        "max_grad_norm",
        "num_iterations",
        "minibatches",
    ),
    "Advantages": (
        "advantage",
        "advantage_std",
        "advantage_eps",
        "reward_weights",
        "hard_weight",
        "easy_weight",
        "difficulty_middle",
        "difficulty_slope",
    ),
    "Loss": (
        "loss",
        "surrogate",
        "ratio",
        "clip",
        "clip_high",
        "dual_clip",
        "cispo_cap",
        "cispo_floor",
        "sapo_temperature",
        "sapo_temperature_negative",
        "entropy_bonus",
        "top_entropy",
        "mask_truncated",
    ),
    "KL penalty": ("beta", "kl", "kl_in", "kl_correction", "reference_every"),
    "Mismatch of sampler and trainer": ("correction", "correction_cap", "correction_floor"),
    "Evaluation and checkpoints": (
        "eval_every",
        "eval_samples",
        "eval_temperature",
        "keep_best",
        "early_stop",
        "save_every",
        "save_every_updates",
        "keep_checkpoints",
    ),
    "What stops a run": ("max_none_share", "max_mismatch", "max_drift", "alarm_patience"),
    "Memory and speed": ("rows_per_batch", "tokens_per_batch", "rollout_chunks"),
}


def from_file(path: str | Path) -> dict[str, Any]:
    """The settings in a file, each of its type. ``preset`` may be among them.

    Raises:
        ValueError: it has an unknown name, or a value of another type.
        OSError: it is not there.
    """
    found = read_settings(path)
    preset = found.pop("preset", None)
    values = {name: _of_type(str(path), name, value) for name, value in found.items()}
    if preset is not None:
        values["preset"] = find_preset(preset, str(path)).name
    return values


def _of_type(where: str, name: str, value: Any) -> Any:
    if name not in hints():
        raise ValueError(f"{where} has the setting {name!r}, which there is not{_nearest(name)}")
    try:
        return read_value(hints()[name], value)
    except WrongValue as error:
        raise ValueError(f"{where}: {name} {error}") from error


def from_text(flag: str, name: str, text: str) -> Any:
    """A setting from the command line.

    Raises:
        ValueError: it is of another type.
    """
    try:
        return parse_value(hints()[name], text)
    except WrongValue as error:
        raise ValueError(f"{flag} {error}") from error


def find_preset(name: Any, where: str) -> Preset:
    """A preset by its name.

    Raises:
        ValueError: there is none, with the nearest.
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(str(name), PRESETS, 1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise ValueError(f"{where}: no preset is called {name!r}. {hint}See: assay presets")
    return PRESETS[name]


def layered(
    *,
    stored: Mapping[str, Any],
    file: Mapping[str, Any],
    preset: str | None,
    flags: Mapping[str, Any],
) -> tuple[dict[str, Any], set[str]]:
    """All settings that are given, and the names of those that are given now.

    Of what is given twice the later counts, in the order: stored, preset, file, flags. Arguments
    of the environment are put together one by one.

    Args:
        stored: those of the run that is resumed.
        file: from :func:`from_file`.
        preset: a name; it goes before the file's own.
        flags: from the command line.
    """
    chosen = preset or file.get("preset")
    own = {name: value for name, value in file.items() if name != "preset"}
    layers: list[Mapping[str, Any]] = [own, flags]
    if chosen is not None:
        layers.insert(0, find_preset(chosen, "--preset").overrides)
    found = dict(stored)
    for layer in layers:
        args = {**found.get("env_args", {}), **layer.get("env_args", {})}
        found |= {**layer, "env_args": args} if args else layer
    return found, {name for layer in layers for name in layer}


def build(values: Mapping[str, Any]) -> TrainConfig:
    """The settings, checked.

    Raises:
        ValueError: one is missing, out of its range, does nothing beside the others, or is a
            secret that the run's files do not keep.
    """
    for name, example in _EXAMPLES.items():
        if name not in values:
            flag = "as the first argument" if name == "env" else f"with --{name}"
            raise ValueError(
                f"{name} is not set: {told()[name].rstrip('.')}. Give it {flag}, or in a --config "
                f"file as '{name}: {example}'"
            )
    for path in redacted_paths(values):
        given = "--set" if path.startswith("env_args.") else f"--{path.replace('_', '-')}"
        raise ValueError(
            f"{path} is a secret, which the run does not keep: give it again with {given}, or in a "
            "--config file"
        )
    return TrainConfig(**values)


def refuse_unreached(config: TrainConfig, given: set[str]) -> None:
    """Refuse what was asked for and would not happen within the run's steps.

    Raises:
        ValueError: ``warmup_steps``, ``save_every`` or ``early_stop`` are too many for it.
    """
    steps = config.steps
    if not steps:
        return
    if "warmup_steps" in given and config.warmup_steps > steps:
        raise ValueError(
            f"warmup_steps={config.warmup_steps} is more than steps={steps}: the learning rate "
            "would never be reached. Lower it, or train for more steps"
        )
    if "save_every" in given and config.save_every > steps:
        raise ValueError(
            f"save_every={config.save_every} is more than steps={steps}: there would be no "
            "checkpoint before the end. Lower it, or set it to 0 for that"
        )
    evaluations = -(-steps // config.eval_every) if config.eval_every else 0
    if config.early_stop > evaluations and "early_stop" in given:
        raise ValueError(
            f"early_stop={config.early_stop} can end no run of {evaluations} evaluations after the "
            "first: lower it or eval_every, or train for more steps"
        )


def read_stored(out_dir: str | Path) -> dict[str, Any]:
    """The settings that a run was last started with; nothing where it has kept none.

    Settings that there are no more are passed over.

    Raises:
        ValueError: they cannot be read.
    """
    path = Path(out_dir) / FILE
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["config"]
        return {k: read_value(hints()[k], v) for k, v in found.items() if k in hints()}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error


def write_stored(config: TrainConfig) -> None:
    """Keep a run's settings, without secrets, whole or not at all; versions stay as they are."""
    path = Path(config.out_dir) / FILE
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    write_settings(path, {**before, "config": config.to_json()})


def as_file(values: Mapping[str, Any]) -> str:
    """Settings without secrets as a YAML file for ``--config``, each with what it means."""
    lines = yaml_lines(redact({**defaults(), **values}), told(), groups())
    return "\n".join(lines) + "\n"


def _nearest(name: str) -> str:
    near: Sequence[str] = difflib.get_close_matches(name, [*hints(), "preset"], 1)
    return f". Did you mean {near[0]}?" if near else ". See: assay train --print-config"
