"""What the benchmarks share: turns, tables, workers in other interpreters, a process's memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track
from rich.table import Table

Found = TypeVar("Found")
console = Console()


def in_turn(contenders: Mapping[str, Callable[[], Found]], rounds: int) -> dict[str, list[Found]]:
    """Call each contender once a round, there and back, so that all see the same machine.

    A bar on stderr shows how far that is.

    Returns:
        What each contender returned, by round.
    """
    found: dict[str, list[Found]] = {name: [] for name in contenders}
    order = list(contenders)
    turns = (name for turn in range(rounds) for name in (order, order[::-1])[turn % 2])
    bar = Console(stderr=True)
    for name in track(turns, "measuring", rounds * len(order), console=bar, transient=True):
        found[name].append(contenders[name]())
    return found


def show(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1
) -> None:
    """Print a table whose first columns are words, and all others numbers."""
    table = Table(title=title)
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="left" if at < words else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def left_out(name: str, why: str) -> None:
    """Say that a contender is not measured, and why."""
    console.print(f"left out: {name}: {why}", markup=False, soft_wrap=True)


@contextlib.contextmanager
def json_worker(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Run a process that answers each line with a line of JSON.

    Yields:
        A function from a line to the answer; it raises RuntimeError with the end of the process's
        stderr if the process has ended.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        to, back = process.stdin, process.stdout

        def ask(line: str) -> dict[str, Any]:
            try:
                to.write(f"{line}\n")
                to.flush()
            except OSError:
                pass  # it has ended: the log says why
            if answer := back.readline():
                return dict(json.loads(answer))
            size = os.fstat(log.fileno()).st_size
            tail = os.pread(log.fileno(), 2000, max(0, size - 2000))
            raise RuntimeError(f"{command[0]} ended: {tail.decode('utf-8', 'replace')}")

        try:
            yield ask
        finally:
            with contextlib.suppress(OSError):
                to.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def last_json(command: Sequence[str]) -> Any:
    """Run a command to its end; the last line that it prints, read as JSON."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def resident_mib(field: str = "VmRSS", pid: int | str = "self") -> float:
    """Return the memory that a process holds (``VmRSS``) or ever held (``VmHWM``), in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return int(status.split(f"{field}:")[1].split()[0]) / 1024
