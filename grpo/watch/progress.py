"""A progress bar with the numbers that tell whether a run is well."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar


class Progress:
    """A progress bar with the numbers that tell whether a run is well.

    Args:
        steps: of the whole run.
        done: of them, before this start.
        show: draw it, where the error stream is a terminal.
    """

    def __init__(self, steps: int, done: int, *, show: bool) -> None:
        console = Console(stderr=True)
        self._bar = Bar(
            TextColumn("train"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=not (show and console.is_terminal),
        )
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._held_out = ""

    def update(self, row: Mapping[str, Any]) -> None:
        """Show a row of metrics."""
        if "held_out/pass_at_1" in row:
            self._held_out = f"  held-out {row['held_out/pass_at_1']:.3f}"
        text = self._held_out
        if "reward" in row:
            text = (
                f"reward {row['reward']:.3f}  accuracy {row['accuracy']:.3f}  "
                f"zero-variance {row['zero_variance']:.0%}{text}"
            )
        self._bar.update(self._task, completed=row["step"], description=text)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
