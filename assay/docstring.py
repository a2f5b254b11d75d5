"""Parts of docstrings for generated pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

_ROLE = re.compile(r":\w+:`~?([^`]*)`")
_INLINE = re.compile("(?<!`)``(?!`)")  # longer runs are code with backticks in it
_HEADING = re.compile(r"^(Args|Raises|Example|Examples|Attributes|Returns|Yields):$", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {4}(\*{0,2}\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


def to_markdown(text: str) -> str:
    """Render a docstring's paragraph as Markdown on one line."""
    return " ".join(without_roles(text).split())


def without_roles(text: str) -> str:
    """Render a docstring's code roles as Markdown."""
    return _INLINE.sub("`", _ROLE.sub(r"``\1``", text))


def prose(thing: object) -> str:
    """Return a docstring's prose before the arguments."""
    return _HEADING.split(inspect.getdoc(thing) or "", maxsplit=1)[0].strip()


def meanings(thing: object, heading: str = "Args") -> dict[str, str]:
    """Return what a docstring says of each argument or attribute, in order."""
    pieces = _HEADING.split(inspect.getdoc(thing) or "")
    section = dict(zip(pieces[1::2], pieces[2::2], strict=True)).get(heading, "")
    return {name: " ".join(meaning.split()) for name, meaning in _ARGUMENT.findall(section)}


def default(kind: type, name: str, given: Mapping[str, Any] | None = None) -> str:
    """Return an option's default as text, empty if it has none; ``given`` holds other defaults."""
    option = inspect.signature(kind).parameters.get(name)
    if option is None or option.default is option.empty:
        return ""
    return repr((given or {}).get(name, option.default))


def table(options: Sequence[tuple[str, str, str]]) -> list[str]:
    """Name, default and meaning of options as the lines of a Markdown table."""
    rows = [
        f"| `{name}` | {code_cell(default)} | {cell(to_markdown(meaning))} |"
        for name, default, meaning in options
    ]
    return ["| option | default | |", "|---|---|---|", *rows]


def cell(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    return text.replace("|", "\\|")


def code_cell(text: str, most: int = 400) -> str:
    """Render at most that many characters as inline code for a cell of a Markdown table."""
    if not text:
        return ""
    text = text if len(text) <= most else f"{text[:most]}…"
    text = "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
    text = text.replace("\n", "⏎").replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if len(ticks) > 1 or text[0] == " " or text[-1] == " " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"
