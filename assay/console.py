"""Where the command line speaks: tables and sentences out, complaints and progress beside them."""

from __future__ import annotations

import re

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .sandbox.redaction import hide

out = Console()
err = Console(stderr=True)


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """A text that may be a model's, with escapes for what would move a terminal's cursor."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str, *, to: Console = out) -> None:
    """Print a text as it stands: no wrapped path, and brackets are no markup.

    Complaints may quote what was given, so they are shown without secrets.
    """
    to.print(
        visible(hide(text) if to is err else text), markup=False, highlight=False, soft_wrap=True
    )


def add_row(table: Table, *cells: str) -> None:
    """Add cells as they stand: names and reasons may hold brackets."""
    table.add_row(*(escape(visible(cell)) for cell in cells))
