"""``assay verifiers``: what each verifier pays for, with replies that win and that lose.

The page of the docs is made by the same command, so it says what the code says.
"""

from __future__ import annotations

import inspect
import json
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table

from . import verifiers as room
from .console import add_row, out, say
from .docstring import cell, meanings, plain, prose, without_roles
from .verifiers import Verifier
from .verifiers.catalogue import Example, examples

_BASES = ("Verifier", "FunctionVerifier")
_TITLES = {
    "form": "Form: how a reply is written",
    "instructions": "Instructions",
    "puzzles": "Puzzles: every right answer wins",
    "judges": "Judges: models that score",
    "": "Answers, programs and rubrics",
}
_PREFACE = """\
Made by `assay verifiers --markdown` from the docstrings and from the replies in
`verifiers/examples/`, to which `tests/verifiers/test_contract.py` holds every verifier. Options go
to the constructor, or behind the name on the command line: `assay audit 'Exact:{"case": false}'`.
The cost is the median time of one reply, over the examples, in one process."""
_SHOWN_REPLY, _SHOWN_REFERENCE = 200, 400


@dataclass(frozen=True)
class Entry:
    """One verifier of the catalogue.

    Attributes:
        kind: its class.
        examples: replies whose scores are known.
    """

    kind: type[Verifier]
    examples: tuple[Example, ...]

    @property
    def name(self) -> str:
        """The class's name."""
        return self.kind.__name__

    @property
    def folder(self) -> str:
        """The folder of ``verifiers/`` that it is in; empty for those that are in none."""
        parts = self.kind.__module__.removeprefix(f"{room.__name__}.").split(".")
        return parts[0] if len(parts) > 1 and parts[0] in _TITLES else ""

    @property
    def text(self) -> str:
        """The docstring before the arguments."""
        return prose(self.kind)

    @property
    def summary(self) -> str:
        """The first sentence of that, on one line."""
        return plain(self.text.partition("\n\n")[0])

    @property
    def options(self) -> list[tuple[str, str, str]]:
        """Name, default and meaning of each option."""
        known = inspect.signature(self.kind).parameters
        found = []
        for name, meaning in meanings(self.kind).items():
            default = known[name].default if name in known else inspect.Parameter.empty
            shown = "" if default is inspect.Parameter.empty else repr(default)
            found.append((name, shown, meaning))
        return found


def entries() -> list[Entry]:
    """Return the verifiers that users can name, by folder and name."""
    kinds = [getattr(room, name) for name in room.__all__ if name not in _BASES]
    found = [
        Entry(kind, tuple(e for e in examples() if type(e.verifier) is kind))
        for kind in kinds
        if isinstance(kind, type) and issubclass(kind, Verifier)
    ]
    order = list(_TITLES)
    return sorted(found, key=lambda e: (order.index(e.folder), e.name))


def verifiers_command(
    name: Annotated[str | None, typer.Argument(help="Show this one with all it has.")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the catalogue as the page of the docs.")
    ] = False,
) -> None:
    """List the verifiers, or show one: rules, options, replies that pass and replies that fail."""
    found = entries()
    if markdown:
        say(page(found).rstrip())
    elif name is None:
        table = Table("verifier", "what it pays for", title="Verifiers")
        for entry in found:
            add_row(table, entry.name, entry.summary.replace("`", ""))
        out.print(table)
    else:
        chosen = [entry for entry in found if entry.name == name]
        if not chosen:
            raise ValueError(
                f"no verifier is called {name!r}; known: {', '.join(e.name for e in found)}"
            )
        say("\n".join(_section(chosen[0], cost=None)))


def page(found: list[Entry], *, costs: bool = True) -> str:
    """Render the catalogue as Markdown. With costs, each verifier is timed on its own examples."""
    lines = ["# Catalogue of verifiers", "", _PREFACE]
    folder = None
    for entry in found:
        if entry.folder != folder:
            folder = entry.folder
            lines += ["", f"## {_TITLES[folder]}"]
        lines += ["", *_section(entry, cost=_cost(entry) if costs else None)]
    return "\n".join(lines) + "\n"


def _section(entry: Entry, cost: str | None) -> Iterator[str]:
    yield f"### {entry.name}"
    for paragraph in entry.text.split("\n\n"):
        yield ""
        listed = paragraph.lstrip().startswith(("- ", "* ", "1. ", "|"))
        yield without_roles(paragraph) if listed else plain(paragraph)
    if entry.options:
        yield from ("", "| option | default | |", "|---|---|---|")
        for name, default, meaning in entry.options:
            yield f"| `{name}` | {_code(default)} | {cell(plain(meaning))} |"
    shown: list[Example] = list(entry.examples)
    if shown:
        yield from ("", "| reply | score | against, or why |", "|---|---|---|")
    for example in shown:
        options = repr(example.verifier).removeprefix(example.name)
        default = repr(_by_default(entry.kind)).removeprefix(example.name)
        with_ = "" if options == default else f" with {_code(_given(options, default))}"
        reference = "" if example.reference is None else _code(_json(example.reference))
        yield f"| {_code(example.wins[0])} | 1 | {f'{reference}{with_}'.strip()} |"
        for loser in example.loses:
            yield f"| {_code(loser.reply)} | {loser.score:.2g} | {cell(loser.why)} |"
    if cost:
        yield from ("", f"Cost: {cost}.")


def _by_default(kind: type[Verifier]) -> Verifier | None:
    try:
        return kind()
    except (TypeError, ValueError):
        return None


def _given(options: str, default: str) -> str:
    """Return the options that differ from the defaults."""
    usual = set(default.strip("()").split(", "))
    return ", ".join(part for part in options[1:-1].split(", ") if part not in usual)


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_REFERENCE else text[:_SHOWN_REFERENCE] + "…"


def _code(text: str) -> str:
    """Return inline code for a table cell: line ends become a sign."""
    if not text:
        return ""
    text = text if len(text) <= _SHOWN_REPLY * 2 else f"{text[:_SHOWN_REPLY]}…"
    text = "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
    text = text.replace("\n", "⏎").replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if len(ticks) > 1 or text[0] == " " or text[-1] == " " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _cost(entry: Entry) -> str | None:
    """Return the median time of a reply, over the replies of the examples."""
    if not entry.examples or entry.name == "Code":
        return None
    times = []
    for example in entry.examples:
        for reply in (*example.wins, *(loser.reply for loser in example.loses)):
            example.verifier.verify(reply, example.reference)  # caches and workers
            for _ in range(5):
                started = time.perf_counter()
                example.verifier.verify(reply, example.reference)
                times.append(time.perf_counter() - started)
    median = statistics.median(times)
    return f"{median * 1e6:.0f} µs" if median < 1e-3 else f"{median * 1e3:.1f} ms"
