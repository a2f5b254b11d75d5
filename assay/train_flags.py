"""The flags of ``assay train``: one for each setting, made from the dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from rich.markup import escape

from .arguments import settings
from .command import HelpAll
from .train_settings import defaults, descriptions, from_text, groups, hints

_COMMON = (
    *("env", "env_args", "data", "model", "device", "lora_rank", "engine", "out_dir", "steps"),
    *("prompts_per_step", "group_size", "learning_rate", "max_new_tokens", "temperature"),
    *("beta", "eval_every", "save_every", "seed"),
)
"""Settings that ``-h`` shows; ``--help-all`` shows all."""

_ALIASES = {
    "out-dir": "out",
    "prompts": "prompts-per-step",
    "num-generations": "group-size",  # this and the two below are TRL's names
    "max-completion-length": "max-new-tokens",
    "max-steps": "steps",
    "tracker": "trackers",
}
"""Other names of flags, which the help does not show."""


def flag_name(word: str) -> str:
    """Return the name of a flag that is given under any of its names."""
    return _ALIASES.get(word, word)


def command_of(run: Callable[[Mapping[str, Any]], None]) -> Callable[..., None]:
    """Return the command, with all flags in its signature.

    Args:
        run: called with what was given: settings by name, each of its type, and ``config``,
            ``preset``, ``resume``, ``print_config``.
    """
    environment = typer.Argument(help=_help("env"), metavar="ENV")
    parameters = [
        _parameter("env", Annotated[str | None, environment]),
        *(_option(n, heading) for heading, names in groups().items() for n in names if n != "env"),
        _own("preset", str | None, "Settings of a paper, such as dapo; see assay presets."),
        _own("config", Path | None, "Settings in a YAML or TOML file."),
        _own("resume", bool, "Continue from --out; it needs no other option."),
        _own("print_config", bool, "Print all settings as such a file."),
        _parameter("help_all", HelpAll, False),
    ]

    def train(**given: Any) -> None:
        run(_read({name: value for name, value in given.items() if value is not None}))

    train.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect reads it
    train.__annotations__ = {p.name: p.annotation for p in parameters}
    train.__doc__ = """Train a model on an environment with GRPO.

    A preset is overridden by --config, and both by flags. --resume
    reads the settings in OUT/config.json. Ctrl-C leaves a complete checkpoint.
    """
    return train


def flag(name: str) -> str:
    """Return the flag of a setting."""
    if name == "env_args":
        return "--set"
    return "ENV" if name == "env" else f"--{name.replace('_', '-')}"


def _own(name: str, kind: Any, text: str) -> inspect.Parameter:
    """Return an option that is no setting."""
    option = typer.Option(flag(name), help=text, rich_help_panel="Where settings come from")
    return _parameter(name, Annotated[kind, option], False if kind is bool else None)


def _option(name: str, heading: str) -> inspect.Parameter:
    hint, names = hints()[name], [flag(name)]
    kind: Any = str | None
    metavar: str | None = _metavar(hint)
    if name in ("env_args", "trackers"):
        kind, metavar = list[str] | None, "NAME=VALUE" if name == "env_args" else "NAME"
    elif hint in (bool, bool | None):
        kind, metavar, names = bool | None, None, [f"{flag(name)}/--no-{flag(name)[2:]}"]
    elif name == "out_dir":
        names = ["--out", "-o"]
    option = typer.Option(
        *names,
        metavar=metavar,
        help=_help(name),
        show_default=_default(name),
        hidden=name not in _COMMON,
        rich_help_panel=heading,
    )
    return _parameter(name, Annotated[kind, option])


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _metavar(hint: Any) -> str:
    words = {int: "INTEGER", float: "NUMBER", str: "TEXT"}
    kind = next((kind for kind in get_args(hint) or (hint,) if kind in words), None)
    if get_origin(hint) is Literal:
        return "NAME"
    return "JSON" if kind is None or get_origin(hint) in (dict, Mapping) else words[kind]


def _help(name: str) -> str:
    meaning = descriptions()[name].replace("`", "")
    symbol = meaning.startswith("p ")  # no word, but the p of an equation
    words = [str(each) for each in get_args(hints()[name]) if get_origin(hints()[name]) is Literal]
    if words and not all(word in meaning for word in words):
        meaning += f" One of {', '.join(words)}."
    return escape(meaning if symbol else meaning[0].upper() + meaning[1:])


def _default(name: str) -> str | bool:
    if name not in defaults() or name == "env_args":
        return False
    default = defaults()[name]
    return "none" if default is None else str(default).lower() if default is False else str(default)


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert what was given to the types of the settings."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name == "env_args":
            found[name] = settings(value)
        elif name == "trackers":
            found[name] = None if value == ["none"] else tuple(value)
        elif isinstance(value, str) and name in hints():
            found[name] = from_text(flag(name), name, value)
        elif name != "help_all":
            found[name] = value
    return found
