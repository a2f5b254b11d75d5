"""The settings of ``assay train``: a preset, overridden by a file, overridden by flags."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints

from .docstring import meanings, without_roles
from .extras import needing
from .grpo.presets import PRESETS, Preset
from .sandbox.redaction import redact, redacted_paths
from .train_config import TrainConfig
from .verifiers.atomic_io import write_settings
from .verifiers.nearest import did_you_mean

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

FILE = "config.json"
_SEE = re.compile(r"[,;]? see (?:the functions of )?:\w+:`[^`]*`")  # links of the API's pages
_EXAMPLES = {"env": "assay/Arithmetic-v1", "model": "DIR"}
_CLASSES = [kind for kind in TrainConfig.__mro__ if is_dataclass(kind)]  # the most derived first


@cache
def hints() -> Mapping[str, Any]:
    """Return the type of each setting."""
    found = get_type_hints(TrainConfig, include_extras=True)
    return MappingProxyType({f.name: found[f.name] for f in fields(TrainConfig)})


@cache
def defaults() -> Mapping[str, Any]:
    """Return the defaults of the settings that have one."""
    found = {}
    for each in fields(TrainConfig):
        if each.default is not MISSING:
            found[each.name] = each.default
        elif each.default_factory is not MISSING:
            found[each.name] = each.default_factory()
    return MappingProxyType(found)


@cache
def descriptions() -> Mapping[str, str]:
    """Return what each setting means, from the docstrings of the dataclasses."""
    found: dict[str, str] = {}
    for kind in reversed(_CLASSES):
        for name, meaning in meanings(kind, "Attributes").items():
            found[name] = without_roles(_SEE.sub("", meaning))
    return MappingProxyType(found)


_HEADINGS = {
    "env": "Tasks",
    "agent": "Programs that play",
    "curriculum": "Curriculum",
    "model": "Model",
    "engine": "Sampling engine",
    "out_dir": "Output",
    "steps": "Rollouts and updates",
    "rows_per_batch": "Memory and speed",
    "max_none_share": "Guards that stop a run",
    "reference_every": "Evaluation, checkpoints, seed",
    "allow_test_split": "Allowed tasks",
    "loss": "Loss",
    "beta": "KL penalty",
    "entropy_bonus": "Entropy and masks",
    "correction": "Mismatch of sampler and trainer",
    "advantage": "Advantages",
}
"""By the first setting below each heading; settings are in the order of the dataclasses."""


@cache
def groups() -> Mapping[str, list[str]]:
    """Return all settings under headings, each once."""
    home: dict[str, type] = {}
    for kind in reversed(_CLASSES):
        for name in inspect.get_annotations(kind):
            home.setdefault(name, kind)
    found: dict[str, list[str]] = {}
    heading = "Settings"
    for name in (name for kind in _CLASSES for name in home if home[name] is kind):
        heading = _HEADINGS.get(name, heading)
        found.setdefault(heading, []).append(name)
    return MappingProxyType(found)


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    with needing("assay train", "train"):
        from pydantic import TypeAdapter
    return TypeAdapter(hints()[name])


def from_value(where: str, name: str, value: Any) -> Any:
    """Convert a value from a file to its type, strictly; an int is accepted as a float.

    Raises:
        ValueError: the value is of another type. A quoted number is text.
    """
    from pydantic import ValidationError

    try:
        return _adapter(name).validate_json(json.dumps(value, default=str), strict=True)
    except ValidationError as error:
        quoted = isinstance(value, str) and _is_number(value)
        remedy = ": write it without quotes" if quoted else ""
        raise ValueError(f"{where} must be {_rule(error)}, got {value!r}{remedy}") from None


def from_text(where: str, name: str, text: str) -> Any:
    """Convert a value from the command line; ``none`` is None, lists and mappings are JSON.

    Raises:
        ValueError: the value is of another type.
    """
    from pydantic import ValidationError

    adapter = _adapter(name)
    attempts: list[Callable[[], Any]] = [lambda: adapter.validate_strings(text)]
    if text[:1] in ("[", "{"):
        attempts.insert(0, lambda: adapter.validate_json(text, strict=True))
    if text.lower() in ("none", "null"):
        attempts.insert(0, lambda: adapter.validate_python(None))
    errors = []
    for attempt in attempts:
        try:
            return attempt()
        except ValidationError as error:
            errors.append(_rule(error))
    as_json = ", as JSON" if re.search("object|array|dict|list|tuple", errors[0]) else ""
    raise ValueError(f"{where} must be {errors[0]}{as_json}, got {text!r}")


def _rule(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    rules = (
        each["msg"].partition(", unable")[0].removeprefix("Input should be ") for each in found
    )
    return " or ".join(dict.fromkeys(rules))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def from_file(path: str | Path) -> dict[str, Any]:
    """Read a file of settings, each converted to its type; ``preset`` may be among them.

    Raises:
        ValueError: a name is unknown, or a value is of another type.
        OSError: the file does not exist.
    """
    with needing("assay train", "train"):
        from .setting_files import read_settings

    found = read_settings(path)
    preset = found.pop("preset", None)
    for name in found:
        if name not in hints():
            near = did_you_mean(name, [*hints(), "preset"], "See: assay train --print-config")
            raise ValueError(f"{path}: there is no setting {name!r}. {near}")
    values = {name: from_value(f"{path}: {name}", name, value) for name, value in found.items()}
    if preset is not None:
        values["preset"] = find_preset(preset, f"{path}: ").name
    return values


def find_preset(name: Any, where: str = "") -> Preset:
    """Return a preset by its name.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in PRESETS:
        near = did_you_mean(str(name), PRESETS, "See: assay presets")
        raise ValueError(f"{where}no preset is called {name!r}. {near}")
    return PRESETS[name]


def layered(
    *,
    stored: Mapping[str, Any],
    file: Mapping[str, Any],
    preset: str | None,
    flags: Mapping[str, Any],
) -> tuple[dict[str, Any], set[str]]:
    """Merge all given settings, and name those that are given now and are not the default.

    Later layers override earlier ones: stored, preset, file, flags. Arguments of the environment
    are merged one by one.

    Args:
        stored: those of the run that is resumed.
        file: from :func:`from_file`.
        preset: a name; it overrides the file's own.
        flags: from the command line.
    """
    chosen = preset or file.get("preset")
    own = {name: value for name, value in file.items() if name != "preset"}
    layers: list[Mapping[str, Any]] = [own, flags]
    if chosen is not None:
        layers.insert(0, find_preset(chosen, "--preset: ").overrides)
    found = dict(stored)
    for layer in layers:
        args = {**found.get("env_args", {}), **layer.get("env_args", {})}
        found |= {**layer, "env_args": args} if args else layer
    # A file of --print-config holds every default: to write one down is not to ask for it.
    usual = defaults()
    given = {name for layer in layers for name in layer}
    return found, {name for name in given if name not in usual or found[name] != usual[name]}


def build(values: Mapping[str, Any]) -> TrainConfig:
    """Make the settings, validated.

    Raises:
        ValueError: one is missing, out of its range, has no effect with the others, or is a
            redacted secret.
    """
    for name, example in _EXAMPLES.items():
        if name not in values:
            flag = "as the first argument" if name == "env" else f"with --{name}"
            raise ValueError(
                f"{name} is not set: {descriptions()[name].rstrip('.')}. Give it {flag}, or in a "
                f"--config file as '{name}: {example}'"
            )
    for path in redacted_paths(values):
        given = "--set" if path.startswith("env_args.") else f"--{path.replace('_', '-')}"
        raise ValueError(
            f"{path} is a secret, which the run does not keep: give it again with {given}, or in a "
            "--config file"
        )
    return TrainConfig(**values)


def refuse_unreached(config: TrainConfig, given: set[str]) -> None:
    """Refuse settings that would have no effect within the run's steps.

    Raises:
        ValueError: ``warmup_steps``, ``save_every`` or ``early_stop`` exceeds the run.
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
    """Return the settings that the run in a directory was last started with.

    Settings that no longer exist are skipped; a run of the Python interface has none.

    Raises:
        ValueError: the directory does not exist, or its settings cannot be read.
    """
    path = Path(out_dir) / FILE
    if not path.parent.is_dir():
        raise ValueError(
            f"nothing to resume: there is no directory {str(out_dir)!r}. Give that of a run with "
            "--out, or leave out --resume"
        )
    if not path.is_file():
        if not any(path.parent.glob("step-*")):
            raise ValueError(
                f"nothing to resume: {str(out_dir)!r} holds no training run. Give that of a run "
                "with --out, or leave out --resume"
            )
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["config"]
        return {k: from_value(k, k, v) for k, v in found.items() if k in hints()}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error


def write_stored(config: TrainConfig) -> None:
    """Write a run's settings atomically, without secrets; versions stay as they are."""
    path = Path(config.out_dir) / FILE
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    write_settings(path, {**before, "config": config.to_json()})


def as_file(values: Mapping[str, Any]) -> str:
    """Format settings, without secrets, as a YAML file for ``--config`` with descriptions."""
    from .setting_files import as_yaml

    shown = redact({**defaults(), **values})
    lines: list[str] = []
    for heading, names in groups().items():
        lines += ["", f"# --- {heading} ---"]
        for name in names:
            lines += textwrap.wrap(
                descriptions()[name], 96, initial_indent="# ", subsequent_indent="# "
            )
            lines.append(f"{name}: {as_yaml(shown[name])}" if name in shown else f"# {name}:")
    return "\n".join(lines[1:]) + "\n"
