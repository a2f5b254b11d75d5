"""``assay list``: each environment with a task of it; ``--markdown`` makes the page of the docs."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from . import report
from .console import out, say
from .docstring import meanings, plain, prose, table
from .envs import (
    EnvSpec,
    PluginWarning,
    Task,
    TextEnv,
    arguments,
    make,
    plugins,
    spec,
    specs,
)
from .envs.library import LIBRARY
from .envs.library.data_env import DataEnv
from .envs.splits import SAMPLE

_PREFACE = f"""\
Made by `assay list --markdown` from the docstrings and from the first task of each environment.
Options go to `make(id, ...)`, or behind `--set` on the command line. Those over data are shown with
their sample, `data="{SAMPLE}"`: a few rows of our own making."""
_DATA, _MADE, _TURNS = "Data sets", "Made on demand, without end", "Several turns, and tools"
_OVER_DATA = {f"assay/{name}-v1" for name in LIBRARY}
_LEFT_OUT = ("render_mode",)


def list_command(
    name: Annotated[str | None, typer.Argument(help="Show this one with all it has.")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the gallery as the page of the docs.")
    ] = False,
) -> None:
    """List the environments, or show one: its docs, options, a task and its solution.

    Plug-ins that cannot be used are named below the table.
    """
    if markdown:
        say(page().rstrip())
    elif name is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PluginWarning)  # said below, once
            found = plugins()
        out.print(report.environments(specs(), found))
        for plugin in found:
            for fault in plugin.faults:
                say(f"warning: {plugin}: {fault}")
    else:
        say("\n".join(_section(spec(name))))


def page() -> str:
    """Render the gallery as Markdown: the environments of this package."""
    lines = ["# Gallery of environments", "", _PREFACE]
    for title, found in _by_title().items():
        lines += ["", f"## {title}"]
        for one in found:
            lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def _by_title() -> dict[str, list[EnvSpec]]:
    found: dict[str, list[EnvSpec]] = {_MADE: [], _TURNS: [], _DATA: []}
    for one in specs():
        if one.id.startswith("assay/"):
            found[_title(one)].append(one)
    return {title: some for title, some in found.items() if some}


def _title(one: EnvSpec) -> str:
    if one.id in _OVER_DATA:
        return _DATA
    with _made(one) as env:
        return _TURNS if env.max_turns > 1 else _MADE


@contextmanager
def _made(one: EnvSpec) -> Iterator[TextEnv]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the sandbox's backend; no program runs here
        env = make(one.id, **({"data": SAMPLE} if one.id in _OVER_DATA else {}))
    try:
        yield env
    finally:
        env.close()


def _section(one: EnvSpec) -> Iterator[str]:
    with _made(one) as env:
        yield f"### {one.id}"
        for paragraph in _prose(env, one).split("\n\n"):
            yield from ("", plain(paragraph))
        hub = env.hub if isinstance(env, DataEnv) else ""
        needs = one.needs.replace("hub name", f"hub name such as `{hub}`") if hub else one.needs
        yield from ("", f"Needs: {needs}.")
        yield from ("", *table(_options(env, one)))
        yield from _shown(env.task(0))


def _prose(env: TextEnv, one: EnvSpec) -> str:
    """Return the docstring of its class, or the summary if a function made it."""
    own = type(env) is not TextEnv and type(env).__doc__
    return prose(type(env)) if own else one.summary or one.id


def _options(env: TextEnv, one: EnvSpec) -> list[tuple[str, str, str]]:
    known = inspect.signature(type(env)).parameters
    described: dict[str, str] = {}
    for kind in reversed(type(env).__mro__):
        if issubclass(kind, TextEnv):
            described |= meanings(kind)
    found = []
    for name in arguments(one.id):
        if name in _LEFT_OUT:
            continue
        default = known[name].default if name in known else inspect.Parameter.empty
        shown = "" if default is inspect.Parameter.empty else repr(one.kwargs.get(name, default))
        found.append((name, shown, described.get(name, "")))
    return found


def _shown(task: Task) -> Iterator[str]:
    """Render the prompt of a task and its solution verbatim."""
    for message in task.messages:
        who = "" if message["role"] == "user" else f" ({message['role']})"
        yield from ("", f"Prompt{who}:", "", *_fenced(message["content"]))
    if task.solution is not None:
        yield from ("", "A reply that earns full marks:", "", *_fenced(task.solution))


def _fenced(text: str) -> list[str]:
    """Render text as a Markdown block with a fence that does not occur in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *text.rstrip("\n").split("\n"), fence]
