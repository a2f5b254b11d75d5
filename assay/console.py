"""The consoles of the command line: results to stdout, errors and progress to stderr."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .sandbox.redaction import hide
from .verifiers.visible import visible

out = Console()
err = Console(stderr=True)


def say(text: str, *, to: Console = out) -> None:
    """Print a text verbatim: without wrapping or markup.

    What a model or a program wrote goes through ``one_line`` first. Complaints may quote what was
    given, so they are shown without secrets.
    """
    shown = visible(hide(text) if to is err else text)
    to.print(shown, markup=False, highlight=False, soft_wrap=True)


def cell(text: str) -> str:
    """Return a cell that shows a text verbatim: names and reasons may contain brackets."""
    return escape(visible(text))


def add_row(table: Table, *cells: str) -> None:
    """Add cells verbatim."""
    table.add_row(*map(cell, cells))
