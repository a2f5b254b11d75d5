"""Log a run while it goes on: metrics, sample groups, trackers, a progress bar."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
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
from rich.table import Column

from ..envs import Counts
from .records import FILE, SAMPLES, StepLines, finite
from .tasks import Rollout, unwrapped
from .trackers import Tracker, open_trackers, require_trackers

_log = logging.getLogger(__name__)


def filter_metrics(rollout: Rollout) -> dict[str, float]:
    """Count what a rollout left out in the last step: groups, and prompts that are too long.

    Returns:
        ``groups/NAME`` for each count of :class:`~assay.envs.Refill`, and ``accuracy/played``: of
        all episodes that were played and scored, the share that is right; ``prompts/too_long``.
    """
    found: dict[str, float] = {}
    if isinstance(counts := getattr(rollout, "counts", None), Counts):
        row = counts.to_json()
        correct, scored = row.pop("correct"), row.pop("scored")
        del row["masked"], row["wanted"]
        found = {f"groups/{name}": float(number) for name, number in row.items()}
        found["accuracy/played"] = correct / scored if scored else float("nan")
    if (too_long := getattr(unwrapped(rollout), "too_long", None)) is not None:
        found["prompts/too_long"] = float(too_long)
    return found


def due(step: int, steps: int) -> bool:
    """Whether a step of a run of so many keeps samples: the first, the last and about 200 more."""
    return step in (1, steps) or step % max(1, steps // 200) == 0


class MetricsLog:
    """Appends one row a step to ``metrics.jsonl``, and the same numbers to trackers.

    Each row is written as one whole line, so that the file can be read at any time. A tracker that
    fails or hangs is reported once; it neither stops nor slows the run.

    Args:
        directory: made if missing.
        resume_step: rows of later steps are dropped: their steps are about to be done again.
        trackers: names (``tensorboard``, ``wandb``, ``trackio``) or :class:`Tracker` objects.
            ``None``: TensorBoard, if it is installed; its files go to ``tensorboard/``.
        config: settings of the run, for trackers that show them.

    Raises:
        ImportError: a tracker that was asked for by name is not installed.
        ValueError: there is no tracker of that name.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        resume_step: int | None = None,
        trackers: Sequence[str | Tracker] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        require_trackers(trackers)
        root = Path(directory)
        self._rows = StepLines(root / FILE, resume_step=resume_step)
        self._samples: StepLines | None = None
        if resume_step is not None and (root / SAMPLES).exists():
            self._samples = StepLines(root / SAMPLES, resume_step=resume_step)
        self.path = self._rows.path
        self._trackers = open_trackers(trackers, root, config or {}, resume_step, self._rows.last)

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; it needs a ``step``. A number that is not finite becomes null."""
        values = finite(row)
        self._rows.write(values)
        for tracker in self._trackers:
            tracker.put(lambda t: t.write(values))

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Append a step's groups, as :func:`~assay.envs.group_summary.sample_groups` gives them."""
        if self._samples is None:
            self._samples = StepLines(self.path.with_name(SAMPLES))
        kept = finite(groups)
        self._samples.write({"step": step, "groups": kept})
        for tracker in self._trackers:
            tracker.put(lambda t: t.samples(step, kept))

    def close(self) -> None:
        """Close the files and the trackers. Calling it twice does no harm."""
        self._rows.close()
        if self._samples is not None:
            self._samples.close()
        for tracker in self._trackers:
            tracker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# The most important first: a narrow terminal cuts off the last ones.
_NUMBERS = {
    "reward": "reward {:.3f}",
    "held_out/pass_at_1": "held-out {:.3f}",
    "zero_variance": "zero-var {:.0%}",
    "none_share": "none {:.0%}",
    "tokens/s": "{:,.0f} tok/s",
    "kl": "kl {:.3g}",
    "entropy": "entropy {:.2f}",
    "tokens/reply": "length {:.0f}",
    "truncated": "cut {:.0%}",
    "clip_fraction": "clip {:.1%}",
}


def progress_text(row: Mapping[str, Any]) -> str:
    """Show the numbers of a row in one line, named rewards last."""
    named = {name: f"{name[7:]} {{:.3f}}" for name in row if name.startswith("reward/")}
    shown = []
    for name, form in (_NUMBERS | named).items():
        value = row.get(name)
        usual = value == 0 and name in ("none_share", "truncated")
        if value is not None and value == value and not usual:  # NaN is no number to show
            shown.append(form.format(value))
    return "  ".join(shown)


class Progress:
    """A progress bar with the most important numbers, of a run of which some steps are ``done``.

    Without a terminal, or without ``show``, a line is logged each step. ``console`` is the error
    stream by default.
    """

    def __init__(
        self, steps: int, done: int, *, show: bool, console: Console | None = None
    ) -> None:
        console = console or Console(stderr=True)
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self._steps, self._held_out = steps, dict[str, Any]()
        self._bar = Bar(
            BarColumn(8),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.description}", markup=False, table_column=rest),
            console=console,
            expand=True,
            speed_estimate_period=1800,  # steps may take minutes
            disable=not (show and console.is_terminal),
        )
        self._task = self._bar.add_task("", total=steps, completed=done)

    def update(self, row: Mapping[str, Any]) -> None:
        """Show a row of metrics."""
        name = "held_out/pass_at_1"
        self._held_out = {name: row[name]} if name in row else self._held_out
        text = progress_text({**row, **self._held_out})
        if self._bar.disable:
            _log.info("step %s/%s  %s", row["step"], self._steps, text)
        else:
            self._bar.update(self._task, completed=row["step"], description=text)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
