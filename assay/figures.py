"""Speed of sandboxes on the terminal: a bar while it is measured, then a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table

from .console import add_row, progress
from .sandbox.diagnostics.bench import Design, Figure, measure


def measured(
    designs: Sequence[Design], levels: Sequence[int], seconds: float, rounds: int
) -> list[Figure]:
    """Measure designs at each concurrency, and show on stderr how far that is."""
    turns = rounds * sum(design.most >= level for design in designs for level in levels)
    found: list[Figure] = []
    with progress() as bar:
        line = bar.add_task("starting", total=turns, completed=-1)

        def show(name: str) -> None:
            bar.update(line, advance=1, description=escape(f"{level:2} x {name}"))

        for level in levels:
            found += measure(designs, level, seconds=seconds, rounds=rounds, on_turn=show)
    return found


def figures_table(title: str, figures: Sequence[Figure], base: str) -> Table:
    """Return a row for each design and concurrency; the last column is relative to ``base``."""
    right = [Column(name, justify="right") for name in ("per s", "median ms", "p99 ms", "runs")]
    first = Column("at one time", justify="right"), Column("design", no_wrap=True)
    table = Table(*first, *right, Column("ratio", justify="right"), title=title)
    table.caption = f"ratio: to {base}"
    bases = {f.concurrency: f.per_s for f in figures if f.name == base}
    for i, figure in enumerate(figures):
        against = bases.get(figure.concurrency)
        add_row(
            table,
            str(figure.concurrency),
            figure.name,
            f"{figure.per_s:.1f}",
            f"{figure.median_ms:.2f}",
            f"{figure.p99_ms:.2f}",
            str(len(figure.times)),
            "-" if against is None else f"{figure.per_s / against:.2f}",
        )
        if figure.concurrency != figures[min(i + 1, len(figures) - 1)].concurrency:
            table.add_section()
    return table
