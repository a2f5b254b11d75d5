"""Log a run while it goes on: metrics, sample groups, trackers, a progress bar.

Each tracker works in a thread of its own behind a bounded queue, so that a network that hangs or a
disk that is full costs the run nothing but what that tracker would have shown.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

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
from ..sandbox.pool.threads import Threads
from ..verifiers.visible import escape_invisible
from .records import FILE, SAMPLES, StepLines, WatchWarning, finite, read_about
from .tasks import Rollout, inner_rollout

_log = logging.getLogger(__name__)
_NAMES = ("tensorboard", "wandb", "trackio")


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
    inner: Any = inner_rollout(rollout)
    if (too_long := getattr(inner, "too_long", None)) is not None:
        found["prompts/too_long"], inner.too_long = float(too_long), None
    return found


def keeps_samples(step: int, steps: int) -> bool:
    """Return whether a step keeps samples: the first, the last and about 200 between."""
    return step in (1, steps) or step % max(1, steps // 200) == 0


@runtime_checkable
class Tracker(Protocol):
    """Takes a run's rows. If it raises or blocks, the run goes on."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Take a row of metrics: ``step``, and numbers, texts or ``None`` by name."""

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Take a step's groups, as :func:`~assay.envs.group_summary.sample_groups` gives them."""

    def close(self) -> None:
        """Finish: called once, after the last row."""


class TensorBoardTracker:
    """Writes ``tensorboard/`` in the run's directory; a resumed run replaces its later steps."""

    def __init__(self, directory: Path, resume_step: int | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = None if resume_step is None else resume_step + 1
        self._board = SummaryWriter(str(directory / "tensorboard"), purge_step=purge)

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a scalar for each number."""
        for name, value in _numbers(row).items():
            self._board.add_scalar(name, value, row["step"])

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Add a text for each group, as Markdown whose markup is only ours."""
        for group in groups:
            lines = [_indented(group["prompt"])]
            for reply in group["replies"]:
                lines.append(f"**reward {reply['reward']}, {reply['status']}**")
                lines.append(_indented(reply["text"]))
            self._board.add_text(f"samples/{group['kept_as']}", "\n\n".join(lines), step)

    def close(self) -> None:
        """Write what is queued."""
        self._board.close()


class OnlineTracker:
    """Logs to wandb or trackio, which have one interface; a resumed run goes on under its id.

    Where to (project, entity, mode, directory) is for their own environment variables to say, such
    as ``WANDB_PROJECT``, ``WANDB_MODE=offline`` and ``TRACKIO_DIR``.
    """

    def __init__(self, package: str, directory: Path, config: Mapping[str, Any], last: int) -> None:
        self._module, self._last = importlib.import_module(package), last
        home = directory.resolve()
        started = read_about(directory).get("started", [])[:1]  # another if it is started anew
        ident = hashlib.sha256(f"{home} {started}".encode()).hexdigest()[:16]
        where: dict[str, Any] = {"id": ident, "name": home.name, "dir": str(directory)}
        if package == "trackio":
            where = {"project": "assay", "name": f"{home.name}-{ident[:6]}", "embed": False}
        self._tables = package == "wandb"
        self._run = self._module.init(**where, config=dict(config), resume="allow")

    def write(self, row: Mapping[str, Any]) -> None:
        """Log the numbers at their step; steps that are done again are there already."""
        if row["step"] > self._last:
            self._run.log(_numbers(row), step=row["step"])

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Log the groups as a table of wandb's."""
        if step <= self._last or not self._tables:
            return
        columns = ["kept_as", "prompt", "text", "reward", "status", "advantage"]
        lines = [{**group, **reply} for group in groups for reply in group["replies"]]
        data = [[line[name] for name in columns] for line in lines]
        data = [[escape_invisible(v) if isinstance(v, str) else v for v in line] for line in data]
        self._run.log({"samples": self._module.Table(columns=columns, data=data)}, step=step)

    def close(self) -> None:
        """Send what is queued."""
        self._run.finish()


class BackgroundTracker:
    """Runs a tracker in a thread; reports its first failure where the run writes its rows.

    ``make`` opens it in that thread. Up to ``waiting`` rows wait, further ones are dropped;
    :meth:`close` gives the last of them ``closing_s`` seconds.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Tracker],
        *,
        waiting: int = 10_000,
        closing_s: float = 30.0,
    ) -> None:
        self.name, self._most, self._closing_s = name, waiting, closing_s
        self._thread = Threads(1, f"tracker-{name}")
        self._tracker = self._thread.submit(make)
        self._calls: deque[Future[None]] = deque()
        self._reported = self._closed = False

    def close(self) -> None:
        """Wait for what is queued, up to a limit. Calling it twice does no harm."""
        if not self._closed:
            self._closed, self._most = True, self._most + 1
            self.put(lambda tracker: tracker.close())
            wait(self._calls, self._closing_s)
            self._report_done()
            if self._calls:
                self._report(f"not done {self._closing_s:.0f} s after the last row")
            self._thread.close()

    def put(self, call: Callable[[Tracker], None]) -> None:
        """Queue a call of the tracker."""
        self._report_done()
        if len(self._calls) < self._most:
            self._calls.append(self._thread.submit(lambda: call(self._tracker.result())))
        else:
            self._report(f"{self._most} rows wait for it: the next ones are dropped")

    def _report_done(self) -> None:
        while self._calls and self._calls[0].done():
            if (error := self._calls.popleft().exception()) is not None:
                self._report(f"{type(error).__name__}: {error}")

    def _report(self, what: str) -> None:
        if not self._reported:
            self._reported = True
            message = f"tracker {self.name}: {what}. Training goes on; metrics.jsonl is whole"
            warnings.warn(message, WatchWarning, stacklevel=4)


def require_trackers(trackers: Sequence[str | Tracker] | None) -> None:
    """Require that trackers are installed, before a model is loaded.

    Raises:
        ImportError: one that was asked for by name is not installed.
        ValueError: there is none of that name.
    """
    for name in (t for t in trackers or () if isinstance(t, str)):
        if name not in _NAMES:
            raise ValueError(f"there is no tracker {name!r}: expected one of {', '.join(_NAMES)}")
        if importlib.util.find_spec(name) is None:
            raise ImportError(f"the tracker {name!r} is not installed: run pip install {name}")


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    return {k: v for k, v in row.items() if k != "step" and isinstance(v, int | float)}


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in escape_invisible(text).split("\n"))


class MetricsLog:
    """Appends one row a step to ``metrics.jsonl``, and the same numbers to trackers.

    Each row is written as one whole line, so that the file can be read at any time. A tracker that
    fails or hangs is reported once; it neither stops nor slows the run.

    Args:
        directory: made if missing.
        resume_step: rows of later steps are dropped: their steps are about to be done again.
        trackers: names that :func:`require_trackers` takes, or :class:`Tracker` objects.
            ``None``: TensorBoard, if it is installed; its files go to ``tensorboard/``.
        config: settings of the run, for trackers that show them.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        resume_step: int | None = None,
        trackers: Sequence[str | Tracker] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        root = Path(directory)
        self._rows = StepLines(root / FILE, resume_step=resume_step)
        self._samples = StepLines(root / SAMPLES, resume_step=resume_step)
        self.path = self._rows.path
        if trackers is None:
            trackers = ["tensorboard"] if importlib.util.find_spec("tensorboard") else []

        def start(tracker: str | Tracker) -> BackgroundTracker:
            if not isinstance(tracker, str):
                return BackgroundTracker(type(tracker).__name__, lambda: tracker)
            if tracker == "tensorboard":
                return BackgroundTracker(tracker, lambda: TensorBoardTracker(root, resume_step))
            return BackgroundTracker(
                tracker, lambda: OnlineTracker(tracker, root, config or {}, self._rows.last)
            )

        self._trackers = [start(tracker) for tracker in trackers]

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; it needs a ``step``. A number that is not finite becomes null."""
        values = finite(row)
        self._rows.write(values)
        for tracker in self._trackers:
            tracker.put(lambda t: t.write(values))

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Append a step's groups, as :func:`~assay.envs.group_summary.sample_groups` gives them."""
        kept = finite(groups)
        self._samples.write({"step": step, "groups": kept})
        for tracker in self._trackers:
            tracker.put(lambda t: t.samples(step, kept))

    def close(self) -> None:
        """Close the trackers. Calling it twice does no harm."""
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
