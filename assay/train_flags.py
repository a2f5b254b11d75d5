"""The flags of ``assay train``: one for each setting, made from the dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from .arguments import settings
from .setting_files import as_yaml
from .setting_values import choices, placeholder
from .train_settings import defaults, from_text, groups, hints, told

# Shorter names, from before every setting had a flag.
_ALSO = {"prompts_per_step": ("--prompts",), "out_dir": ("--out",), "trackers": ("--tracker",)}
_NO = "no_"  # before the name of what is turned off
_WHERE = "Where the settings are from"

Command = Callable[[Mapping[str, Any]], None]


def training_app(run: Command) -> typer.Typer:
    """A command with all flags.

    Args:
        run: called with what was given: settings by name, each of its type, and ``config``,
            ``preset``, ``resume``, ``print_config``.
    """
    app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    parameters = [*_own(), *_of_settings()]

    def command(**given: Any) -> None:
        run(_read({name: value for name, value in given.items() if value is not None}))

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect reads it
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = HELP
    app.command("train")(command)
    return app


HELP = """Train a model on an environment with GRPO.

Settings come from a preset, over it a file, over it the flags. They are kept in OUT/config.json:
--resume reads them there, and goes on as if nothing had happened. Ctrl-C leaves a whole checkpoint.

--no-NAME turns off what --NAME turns on.
"""


def flag(name: str) -> str:
    """The flag of a setting."""
    if name == "env_args":
        return "--set"
    return "ENV" if name == "env" else f"--{name.replace('_', '-')}"


def _own() -> list[inspect.Parameter]:
    """What is no setting."""

    def option(kind: Any, *names: str, help: str, **more: Any) -> Any:  # noqa: A002  # typer's word
        return Annotated[kind, typer.Option(*names, help=help, rich_help_panel=_WHERE, **more)]

    kinds = {
        "config": option(
            Path | None, "--config", metavar="FILE", help="A YAML or TOML file of settings."
        ),
        "preset": option(
            str | None, "--preset", metavar="NAME", help="A paper's settings: see assay presets."
        ),
        "resume": option(
            bool,
            "--resume",
            help="Go on from the newest checkpoint in --out; all else may be left out.",
        ),
        "print_config": option(
            bool, "--print-config", help="Print all settings as a file for --config, and stop."
        ),
        "option": option(list[str] | None, "--option", help="", hidden=True),
    }
    empty = {"resume": False, "print_config": False}
    return [_parameter(name, kind, empty.get(name)) for name, kind in kinds.items()]


def _of_settings() -> list[inspect.Parameter]:
    found = []
    for heading, names in groups().items():
        for name in names:
            hint = hints()[name]
            extra: dict[str, Any] = {"help": _help(name), "rich_help_panel": heading}
            kind: Any = str | None
            names_of = (flag(name), *_ALSO.get(name, ()))
            if name == "env":
                argument = typer.Argument(help=_help(name), metavar="ENV")
                found.append(_parameter(name, Annotated[kind, argument]))
                continue
            if name == "env_args":
                kind, extra["metavar"] = list[str] | None, "NAME=VALUE"
            elif name == "trackers":
                kind, extra["metavar"] = list[str] | None, "WORD"
            elif hint in (bool, bool | None):
                kind = bool | None
                off = typer.Option(f"--no-{flag(name)[2:]}", hidden=True)
                found.append(_parameter(f"{_NO}{name}", Annotated[kind, off]))
            else:
                extra["metavar"] = placeholder(hint)
            found.append(_parameter(name, Annotated[kind, typer.Option(*names_of, **extra)]))
    return found


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _help(name: str) -> str:
    meaning = told()[name].replace("`", "")
    words = choices(hints()[name])
    if words and not all(word in meaning for word in words):
        meaning += f" One of {', '.join(words)}."
    symbol = meaning.startswith("p ")  # no word, but the p of an equation
    text = escape(meaning if symbol else meaning[0].upper() + meaning[1:])
    if name not in defaults() or name == "env_args":
        return text
    default = defaults()[name]
    shown = "none" if default is None else default if words else as_yaml(default)
    return rf"{text} [dim]\[{escape(shown)}][/dim]"


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, each of its type.

    Raises:
        ValueError: a flag's value is of another type, or the flag is no more.
    """
    if given.get("option"):
        pair = given["option"][0]
        name, _, value = pair.partition("=")
        raise ValueError(
            f"--option {pair} is now {flag(name)} {value}"
            if name in hints()
            else f"--option {pair} is no more, and there is no setting {name!r}: each has a flag "
            "of its own, see assay train --help"
        )
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name == "env_args":
            found[name] = settings(value)
        elif name == "trackers":
            found[name] = None if value == ["none"] else tuple(value)
        elif isinstance(value, str) and name in hints():
            found[name] = from_text(flag(name), name, value)
        elif name.startswith(_NO):
            found[name.removeprefix(_NO)] = False
        elif name != "option":
            found[name] = value
    return found
