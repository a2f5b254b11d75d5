"""Where the command line speaks: tables and sentences out, complaints and progress beside them."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

out = Console()
err = Console(stderr=True)


def say(text: str, *, to: Console = out) -> None:
    """Print a text as it stands: no wrapped path, and brackets are no markup."""
    to.print(text, markup=False, highlight=False, soft_wrap=True)


def add_row(table: Table, *cells: str) -> None:
    """Add cells as they stand: names and reasons may hold brackets."""
    table.add_row(*map(escape, cells))
