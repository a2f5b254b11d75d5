"""The consoles of the command line: results to stdout, errors and progress to stderr."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from typer import Option

from .sandbox.redaction import hide
from .verifiers.visible import escape_invisible, visible_json

out = Console()
err = Console(stderr=True)

LINE_EVERY_S = 30.0

AsJson = Annotated[bool, Option("--json", help="Print the result as JSON.")]
"""The option ``--json``: print the result as JSON to stdout, in place of tables."""


def say(text: str, *, to: Console = out) -> None:
    """Print a text verbatim: without wrapping or markup.

    What a model or a program wrote goes through ``one_line`` first. Complaints may quote what was
    given, so they are shown without secrets.
    """
    shown = escape_invisible(hide(text) if to is err else text)
    to.print(shown, markup=False, highlight=False, soft_wrap=True)


def cell(text: str) -> str:
    """Return a cell that shows a text verbatim: names and reasons may contain brackets."""
    return escape(escape_invisible(text))


def add_row(table: Table, *cells: str) -> None:
    """Add cells verbatim."""
    table.add_row(*map(cell, cells))


def print_json(value: Any) -> None:
    """Print a value as JSON to stdout; what a terminal would obey is escaped."""
    out.file.write(visible_json(value, indent=2) + "\n")


@contextmanager
def naming_the_port(port: int, host: str = "127.0.0.1") -> Iterator[None]:
    """Name the port in the error if it is in use.

    Raises:
        OSError: it is.
    """
    try:
        yield
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise OSError(
            f"port {port} of {host} is in use: give another --port, or 0 for any free one"
        ) from error


class _Progress(Progress):
    """Prints a line every LINE_EVERY_S if the console is not a terminal, for logs."""

    _said = 0.0

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._say(task_id)

    def update(self, task_id: TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        self._say(task_id)

    def _say(self, task_id: TaskID) -> None:
        now = time.monotonic()
        self._said = self._said or now
        if not self.console.is_terminal and now - self._said >= LINE_EVERY_S:
            self._said = now
            task = self.tasks[self.task_ids.index(task_id)]
            total = "" if task.total is None else f" of {task.total:g}"
            say(f"{task.description}: {task.completed:g}{total}", to=self.console)


def progress(*columns: str, refreshes: float = 10) -> Progress:
    """Make a progress bar on stderr, or lines if that is no terminal.

    Args:
        columns: more columns, such as ``"{task.fields[so_far]}"``.
        refreshes: per second; each costs CPU time.
    """
    return _Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        *map(TextColumn, columns),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        refresh_per_second=refreshes,
    )
