"""Other places that a run's numbers go to: TensorBoard, Weights & Biases, trackio, or your own.

Each works in a thread of its own behind a bounded queue, so that a network that hangs or a disk
that is full costs the run nothing but what that tracker would have shown.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import queue
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ...verifiers.visible import visible
from .about import read_about
from .lines import WatchWarning

_WAITING = 10_000  # rows; some MiB at most
_CLOSING_S = 30.0


@runtime_checkable
class Tracker(Protocol):
    """Where a run's rows go. It may raise and it may block: the run does not notice."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Take a row of metrics: ``step``, and numbers, texts or ``None`` by name."""

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Take a step's sample groups, as :func:`sample_groups` gives them."""

    def close(self) -> None:
        """Finish: called once, after the last row."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a tracker is opened for.

    Attributes:
        directory: of the run.
        config: its settings, as JSON values.
        resume_step: the step that a resumed run goes on from; ``None`` for a new one.
        last: the last step that was written before; -1 for a new run.
    """

    directory: Path
    config: Mapping[str, Any]
    resume_step: int | None = None
    last: int = -1

    @property
    def run_id(self) -> str:
        """A name for this run: the same when it is resumed, another when it is started anew."""
        started = read_about(self.directory).get("started", [])[:1]
        return hashlib.sha256(f"{self.directory.resolve()} {started}".encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """A name for people."""
        return self.directory.resolve().name


class TensorBoard:
    """Writes ``tensorboard/`` in the run's directory."""

    def __init__(self, origin: Origin) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # Without purge_step the steps that are done again would show up twice.
        purge = None if origin.resume_step is None else origin.resume_step + 1
        self._board = SummaryWriter(str(origin.directory / "tensorboard"), purge_step=purge)

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a scalar for each number."""
        for name, value in _numbers(row).items():
            self._board.add_scalar(name, value, row["step"])

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Add a text for each group."""
        for group in groups:
            self._board.add_text(f"samples/{group['kept_as']}", as_markdown(group), step)

    def close(self) -> None:
        """Write what waits."""
        self._board.close()


class WandB:
    """Logs to Weights & Biases: a resumed run goes on under its id.

    Where to (project, entity, mode) is for wandb's own environment variables to say, such as
    ``WANDB_PROJECT`` and ``WANDB_MODE=offline``.
    """

    def __init__(self, origin: Origin) -> None:
        wandb = importlib.import_module("wandb")  # it has types where it is installed, else none
        self._wandb, self._last = wandb, origin.last
        self._run = wandb.init(
            id=origin.run_id,
            name=origin.name,
            dir=str(origin.directory),
            config=dict(origin.config),
            resume="allow",
        )

    def write(self, row: Mapping[str, Any]) -> None:
        """Log the numbers at their step; steps that are done again are there already."""
        if row["step"] > self._last:
            self._run.log(_numbers(row), step=row["step"])

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Log the groups as a table."""
        if step <= self._last:
            return
        columns = ["kept as", "prompt", "reply", "reward", "status", "advantage"]
        data = [
            [group["kept_as"], group["prompt"], r["text"], r["reward"], r["status"], r["advantage"]]
            for group in groups
            for r in group["replies"]
        ]
        data = [[visible(v) if isinstance(v, str) else v for v in line] for line in data]
        self._run.log({"samples": self._wandb.Table(columns=columns, data=data)}, step=step)

    def close(self) -> None:
        """Send what waits."""
        self._run.finish()


class Trackio:
    """Logs to trackio, which keeps its files on this machine (``TRACKIO_DIR``)."""

    def __init__(self, origin: Origin) -> None:
        trackio = importlib.import_module("trackio")
        self._last = origin.last
        self._run = trackio.init(
            project="assay",
            name=f"{origin.name}-{origin.run_id[:6]}",
            config=dict(origin.config),
            resume="allow",
            embed=False,
        )

    def write(self, row: Mapping[str, Any]) -> None:
        """Log the numbers at their step; steps that are done again are there already."""
        if row["step"] > self._last:
            self._run.log(_numbers(row), step=row["step"])

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Nothing: the samples are in ``samples.jsonl``."""

    def close(self) -> None:
        """Write what waits."""
        self._run.finish()


class Background:
    """Runs a tracker in a thread; reports its first failure where the run writes its rows.

    Args:
        name: of the tracker, for the report.
        make: opens it; called in the thread.
        waiting: rows that may wait; further ones are dropped.
        closing_s: how long :meth:`close` waits for the last of them.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Tracker],
        *,
        waiting: int = _WAITING,
        closing_s: float = _CLOSING_S,
    ) -> None:
        self.name, self._make, self._closing_s = name, make, closing_s
        self._queue: queue.Queue[Callable[[Tracker], None] | None] = queue.Queue(waiting)
        self._failure: str | None = None
        self._reported = self._closed = False
        self._thread = threading.Thread(target=self._work, name=f"tracker-{name}", daemon=True)
        self._thread.start()

    def write(self, row: Mapping[str, Any]) -> None:
        """Hand a row over, or drop it where too many wait."""
        self._put(lambda tracker: tracker.write(row))

    def samples(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Hand a step's samples over, or drop them where too many wait."""
        self._put(lambda tracker: tracker.samples(step, groups))

    def close(self) -> None:
        """Wait for what is left, but not for ever. Calling it twice does no harm."""
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + self._closing_s
        with contextlib.suppress(queue.Full):  # where it hangs
            self._queue.put(None, timeout=self._closing_s)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._fail(f"not done {self._closing_s:.0f} s after the last row")
        self._report()

    def _put(self, call: Callable[[Tracker], None]) -> None:
        try:
            self._queue.put_nowait(call)
        except queue.Full:
            self._fail(f"{self._queue.maxsize} rows wait for it: the next ones are dropped")
        self._report()

    def _work(self) -> None:
        tracker: Tracker | None = None
        try:
            tracker = self._make()
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")
        while (call := self._queue.get()) is not None:
            if tracker is not None:
                self._try(call, tracker)
        if tracker is not None:
            self._try(lambda tracker: tracker.close(), tracker)

    def _try(self, call: Callable[[Tracker], None], tracker: Tracker) -> None:
        try:
            call(tracker)
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")

    def _fail(self, what: str) -> None:
        self._failure = self._failure or what

    def _report(self) -> None:
        if self._failure is not None and not self._reported:
            self._reported = True
            message = (
                f"tracker {self.name}: {self._failure}. Training goes on; metrics.jsonl is whole"
            )
            warnings.warn(message, WatchWarning, stacklevel=4)


_KNOWN: dict[str, tuple[Callable[[Origin], Tracker], str, str]] = {
    "tensorboard": (TensorBoard, "tensorboard", "pip install tensorboard"),
    "wandb": (WandB, "wandb", "pip install 'assay[wandb]'"),
    "trackio": (Trackio, "trackio", "pip install 'assay[trackio]'"),
}


def opened(trackers: Sequence[str | Tracker] | None, origin: Origin) -> list[Background]:
    """Start trackers; ``None``: TensorBoard, where it is installed.

    Raises:
        ImportError: one that was asked for by name is not installed.
        ValueError: there is none of that name.
    """
    if trackers is None:
        trackers = ["tensorboard"] if importlib.util.find_spec("tensorboard") else []
    makes = [_maker(tracker, origin) for tracker in trackers]  # complain before any has started
    return [Background(name, make) for name, make in makes]


def require_trackers(trackers: Sequence[str | Tracker] | None) -> None:
    """See that trackers are there, before a model is loaded.

    Raises:
        ImportError: one that was asked for by name is not installed.
        ValueError: there is none of that name.
    """
    for tracker in trackers or ():
        _maker(tracker, Origin(Path(), {}))


def as_markdown(group: Mapping[str, Any]) -> str:
    """A sample group as text whose markup is only our own."""
    lines = [_indented(group["prompt"])]
    for reply in group["replies"]:
        reward = "no reward" if reply["reward"] is None else f"reward {reply['reward']:.3g}"
        lines.append(f"**{reward}, {reply['status']}**\n\n{_indented(reply['text'])}")
    return "\n\n".join(lines)


def _maker(tracker: str | Tracker, origin: Origin) -> tuple[str, Callable[[], Tracker]]:
    if not isinstance(tracker, str):
        return type(tracker).__name__, lambda: tracker
    if tracker not in _KNOWN:
        raise ValueError(f"there is no tracker {tracker!r}: expected one of {', '.join(_KNOWN)}")
    make, package, remedy = _KNOWN[tracker]
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"the tracker {tracker!r} is not installed: {remedy}")
    return tracker, lambda: make(origin)


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    return {k: v for k, v in row.items() if k != "step" and isinstance(v, int | float)}


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in visible(text).split("\n"))
