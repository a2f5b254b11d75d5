"""Other places that a run's numbers go to: TensorBoard, Weights & Biases, trackio, or your own.

Each works in a thread of its own behind a bounded queue, so that a network that hangs or a disk
that is full costs the run nothing but what that tracker would have shown.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..sandbox.pool.threads import Threads
from ..verifiers.visible import visible
from .records import WatchWarning, read_about

_NAMES = ("tensorboard", "wandb", "trackio")


@runtime_checkable
class Tracker(Protocol):
    """Takes a run's rows. If it raises or blocks, the run goes on."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Take a row of metrics: ``step``, and numbers, texts or ``None`` by name."""

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Take a step's groups, as :func:`~assay.envs.group_summary.sample_groups` gives them."""

    def close(self) -> None:
        """Finish: called once, after the last row."""


class TensorBoard:
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


class Online:
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
        data = [[visible(v) if isinstance(v, str) else v for v in line] for line in data]
        self._run.log({"samples": self._module.Table(columns=columns, data=data)}, step=step)

    def close(self) -> None:
        """Send what is queued."""
        self._run.finish()


class Background:
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


def open_trackers(
    trackers: Sequence[str | Tracker] | None,
    directory: Path,
    config: Mapping[str, Any],
    resume_step: int | None,
    last: int,
) -> list[Background]:
    """Start the trackers of a run, as :class:`~assay.grpo.log.MetricsLog` is given them.

    ``last`` is the last step that was written before; -1 for a new run.
    """
    if trackers is None:
        trackers = ["tensorboard"] if importlib.util.find_spec("tensorboard") else []

    def make(tracker: str | Tracker) -> Tracker:
        if not isinstance(tracker, str):
            return tracker
        if tracker == "tensorboard":
            return TensorBoard(directory, resume_step)
        return Online(tracker, directory, config, last)

    names = [t if isinstance(t, str) else type(t).__name__ for t in trackers]
    return [Background(n, partial(make, t)) for n, t in zip(names, trackers, strict=True)]


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
    return "\n".join("    " + line for line in visible(text).split("\n"))
