"""Speed of sandboxes on the terminal: a bar while it is measured, then a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from .console import err
from .sandbox.diagnostics.bench import Design, Figure, measure


def measured(
    designs: Sequence[Design], levels: Sequence[int], seconds: float, rounds: int
) -> list[Figure]:
    """Measure designs at each concurrency, and show on stderr how far that is."""
    turns = rounds * sum(design.most >= level for design in designs for level in levels)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("starting", total=turns)
        begun = 0

        def show(name: str) -> None:
            nonlocal begun
            progress.update(task, completed=begun, description=f"{level:2} x {escape(name)}")
            begun += 1

        found = []
        for level in levels:
            found += measure(designs, level, seconds=seconds, rounds=rounds, on_turn=show)
    return found


def figures_table(title: str, figures: Sequence[Figure], base: str) -> Table:
    """Return a row for each design and concurrency; the last column is relative to ``base``."""
    table = Table(title=title, caption=f"ratio: to {base}")
    table.add_column("at one time", justify="right")
    table.add_column("design", no_wrap=True)
    for heading in ("per s", "median ms", "p99 ms", "runs", "ratio"):
        table.add_column(escape(heading), justify="right")
    bases = {f.concurrency: f.per_s for f in figures if f.name == base}
    last = None
    for figure in figures:
        if last not in (None, figure.concurrency):
            table.add_section()
        last = figure.concurrency
        against = bases.get(figure.concurrency)
        table.add_row(
            str(figure.concurrency),
            escape(figure.name),
            f"{figure.per_s:.1f}",
            f"{figure.median_ms:.2f}",
            f"{figure.p99_ms:.2f}",
            str(len(figure.times)),
            "-" if against is None else f"{figure.per_s / against:.2f}",
        )
    return table
