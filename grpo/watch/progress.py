"""A progress bar, or log lines, with the numbers that tell whether a run is well."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

_log = logging.getLogger(__name__)
_BAR = 8
_LINE = 200  # columns of a log line
_NARROW = 70  # without a bar below that
_TIMES = 23  # columns for the two times, up to a day
# Most telling first: where the terminal is narrow, the last ones are left out.
_NUMBERS = (
    ("reward", "reward {:.3f}"),
    ("held_out/pass_at_1", "held-out {:.3f}"),
    ("zero_variance", "zero-var {:.0%}"),
    ("none_share", "none {:.0%}"),
    ("tokens/s", "{:,.0f} tok/s"),
    ("kl", "kl {:.3g}"),
    ("entropy", "entropy {:.2f}"),
    ("tokens/reply", "length {:.0f}"),
    ("truncated", "cut {:.0%}"),
    ("clip_fraction", "clip {:.1%}"),
)


def progress_text(row: Mapping[str, Any], width: int) -> str:
    """The numbers of a row, as many as fit: the most telling ones first, named rewards last.

    Args:
        row: of metrics; what it lacks is left out.
        width: in columns.
    """
    parts = [(name, name.partition("/")[2] + " {:.3f}") for name in row if name[:7] == "reward/"]
    text = ""
    for name, form in (*_NUMBERS, *parts):
        value = row.get(name)
        # No reply lacks a reward, and none is clipped: then there is nothing to tell.
        if value is None or value != value or (value == 0 and name in ("none_share", "truncated")):
            continue
        longer = f"{text}  {form.format(value)}".lstrip()
        if len(longer) > width:
            break
        text = longer
    return text


class Progress:
    """A progress bar with the numbers that tell whether a run is well.

    If it is not shown, each step is logged instead, at INFO.

    Args:
        steps: of the whole run.
        done: of them, before this start.
        show: draw it, where the error stream is a terminal.
        console: where to; the error stream if none is given.
    """

    def __init__(
        self, steps: int, done: int, *, show: bool, console: Console | None = None
    ) -> None:
        self._console = console or Console(stderr=True)
        self._bar = Bar(
            *([BarColumn(_BAR)] if self._console.width >= _NARROW else []),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            speed_estimate_period=1800,  # steps may take minutes
            disable=not (show and self._console.is_terminal),
        )
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._held_out: dict[str, Any] = {}

    def update(self, row: Mapping[str, Any]) -> None:
        """Show a row of metrics."""
        name = "held_out/pass_at_1"
        if name in row:
            self._held_out = {name: row[name]}
        row = {**row, **self._held_out}
        if self._bar.disable:
            total = self._bar.tasks[0].total
            _log.info("step %s/%s  %s", row["step"], total, progress_text(row, _LINE))
            return
        count = 2 * len(str(self._bar.tasks[0].total)) + 2
        bar = _BAR + 1 if self._console.width >= _NARROW else 0
        room = self._console.width - _TIMES - count - bar
        text = progress_text(row, room)
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
