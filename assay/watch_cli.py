"""``assay report``: how a training run went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .console import say


def report_command(
    run: Annotated[
        Path, Argument(help="A run's directory, or a JSONL file of metrics with a step each.")
    ],
    out_path: Annotated[
        Path | None, Option("--out", "-o", help="The page; report.html in RUN by default.")
    ] = None,
) -> None:
    """Write a run's page: curves, samples and settings in one file.

    The page needs no network. It also works while the run goes on.
    """
    from .run_report.report import write_report

    say(f"Report: {write_report(run, out_path)}")
