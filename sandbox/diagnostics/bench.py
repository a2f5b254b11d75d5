"""How fast programs run: designs in turn, in one run, each program's output checked."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..errors import SandboxError
from ..sandbox import Sandbox

PROGRAM = "print(sum(range(1000)))"
"""A program that does nearly nothing: what it takes is what running it takes."""

OUTPUT = "499500\n"

BARE = "bare python -I"
"""The design that others are held against."""

_CANDIDATE = "def total(n):\n    return sum(range(n))"
_TESTS = "assert total(1000) == 499500"


@dataclass(frozen=True, slots=True)
class Design:
    """A way to run a program.

    Attributes:
        name: what to call it.
        run: runs :data:`PROGRAM` once and returns its output; called from many threads.
        most: programs that it runs at one time.
    """

    name: str
    run: Callable[[], str]
    most: int = sys.maxsize


@dataclass(slots=True)
class Figure:
    """What was measured of one design at one concurrency."""

    name: str
    concurrency: int
    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """Programs in a second."""
        return len(self.times) / self.seconds

    @property
    def median_ms(self) -> float:
        """Median milliseconds of a program, the wait for a core included."""
        return 1e3 * statistics.median(self.times)

    @property
    def p99_ms(self) -> float:
        """Milliseconds within which 99 of 100 programs end; of fewer than 100, the largest."""
        return 1e3 * sorted(self.times)[int(0.99 * (len(self.times) - 1) + 0.5)]

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {
            "name": self.name,
            "concurrency": self.concurrency,
            "programs": len(self.times),
            "seconds": self.seconds,
            "per_s": self.per_s,
            "median_ms": self.median_ms,
            "p99_ms": self.p99_ms,
        }


def single(name: str, sandbox: Sandbox) -> Design:
    """Return a program by itself in this sandbox."""
    return Design(name, lambda: sandbox.run(PROGRAM).stdout, sandbox.slots)


def two_party(name: str, sandbox: Sandbox) -> Design:
    """Return a program and its tests, in two processes of this sandbox."""

    def run() -> str:
        check = sandbox.check_tests(_CANDIDATE, _TESTS)
        return OUTPUT if check.solved else f"{check.status}: {check.reason}"

    return Design(name, run, sandbox.slots)


@contextlib.contextmanager
def bare() -> Iterator[list[Design]]:
    """Start new interpreters on this machine, without isolation: the baseline.

    The first is ``python -I`` in an empty virtual environment. Outside of one, an interpreter also
    runs what packages put into ``.pth`` files, which may take ten times as long as the program
    and would flatter whatever is compared. The second, ``python -I -S``, reads no site at all.
    """
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        venv.create(folder, with_pip=False, symlinks=True)
        python = os.path.join(folder, "bin", "python")
        yield [_interpreter(BARE, python, "-I"), _interpreter(f"{BARE} -S", python, "-I", "-S")]


def _interpreter(name: str, *command: str) -> Design:
    def run() -> str:
        # In a session of its own, as each program of a slot is: Linux shares busy cores out by
        # session, and all these interpreters together would get the share of one program.
        return subprocess.run(
            [*command, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        ).stdout

    return Design(name, run)


def measure(
    designs: Sequence[Design],
    concurrency: int,
    *,
    seconds: float = 1.0,
    rounds: int = 3,
    on_turn: Callable[[str], None] = lambda name: None,
) -> list[Figure]:
    """Time designs one after the other, several rounds long, so that all see the same machine.

    Args:
        designs: those that run fewer programs at one time are left out.
        concurrency: programs at one time.
        seconds: for which each design starts programs in each round.
        rounds: times that each design's turn comes; it begins with one round that is not counted,
            of one program for each thread.
        on_turn: called with the name of a design when its turn begins.

    Raises:
        SandboxError: a program did not print what it should.
    """
    found = [Figure(d.name, concurrency) for d in designs if d.most >= concurrency]
    chosen = [d for d in designs if d.most >= concurrency]
    with ThreadPoolExecutor(concurrency, "assay-bench") as threads:
        for design in chosen:
            _turn(threads, design, concurrency, 0.0)
        for _ in range(rounds):
            for design, figure in zip(chosen, found, strict=True):
                on_turn(design.name)
                took, times = _turn(threads, design, concurrency, seconds)
                figure.seconds += took
                figure.times += times
    return found


def _turn(
    threads: ThreadPoolExecutor, design: Design, concurrency: int, seconds: float
) -> tuple[float, list[float]]:
    """Return wall-clock seconds until the last program ended, and those of each program."""
    together = threading.Barrier(concurrency + 1)
    begun = [0.0]

    def work() -> list[float]:
        times: list[float] = []
        together.wait()
        while not times or time.perf_counter() < begun[0] + seconds:
            started = time.perf_counter()
            output = design.run()
            times.append(time.perf_counter() - started)
            if output != OUTPUT:
                raise SandboxError(f"{design.name} printed {output!r:.300}, expected {OUTPUT!r}")
        return times

    futures = [threads.submit(work) for _ in range(concurrency)]
    begun[0] = time.perf_counter()
    together.wait()
    times = [t for future in futures for t in future.result()]
    return time.perf_counter() - begun[0], times
