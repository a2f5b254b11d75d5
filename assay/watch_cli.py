"""``assay report``: how a training run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from typer import Argument, Option

from .console import add_row, out, say


def report_command(
    run: Annotated[
        Path, Argument(help="A run's directory, or a JSONL file of metrics with a step each.")
    ],
    out_path: Annotated[
        Path | None, Option("--out", "-o", help="The page; report.html in RUN by default.")
    ] = None,
    samples: Annotated[
        int, Option(min=0, help="Print so many groups of replies here too, the newest first.")
    ] = 0,
    step: Annotated[
        int | None, Option(help="Print the groups of this step, or of the last before it.")
    ] = None,
) -> None:
    """Write a run's page: curves, samples and settings in one file.

    The page needs no network. It also works while the run goes on.
    """
    from .run_report.history import read_history
    from .run_report.report import write_report

    page = write_report(run, out_path)
    if samples or step is not None:
        for table in sample_tables(read_history(run).samples, samples or 3, step):
            out.print(table)
    say(f"Report: {page}")


def sample_tables(
    samples: Sequence[Mapping[str, Any]], count: int, step: int | None = None
) -> list[Table]:
    """The newest groups up to a step, a table each.

    Raises:
        ValueError: the run kept no samples up to there.
    """
    rows = [row for row in samples if step is None or row["step"] <= step]
    groups = [(row["step"], group) for row in reversed(rows) for group in row["groups"]][:count]
    if not groups:
        until = "" if step is None else f" up to step {step}"
        raise ValueError(f"the run kept no samples{until}: there is nothing to print")
    tables = []
    for at, group in groups:
        table = Table(title=f"Step {at}, {group['kept_as']}", show_lines=True)
        table.add_column("reply", overflow="fold", ratio=1)
        for name in ("reward", "advantage", "tokens"):
            table.add_column(name, justify="right")
        table.add_column("why", overflow="fold", max_width=30)
        add_row(table, f"PROMPT\n{group['prompt']}", "", "", "", "")
        for reply in group["replies"]:
            advantage = reply["advantage"]
            add_row(
                table,
                reply["text"],
                "none" if reply["reward"] is None else f"{reply['reward']:.3g}",
                "-" if advantage is None else f"{advantage:+.2f}",
                f"{reply['tokens']}{' cut' * reply['truncated']}",
                f"{reply['status']}: {reply['reason']}",
            )
        tables.append(table)
    return tables
