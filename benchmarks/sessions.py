"""Starts and commands of sessions a second, beside ``docker run`` and ``docker exec``.

    python benchmarks/sessions.py [--image assay-shell:3.11] [--at 1 8 64] [--seconds 2]

All designs take turns on the same image in one run, without network. A start is a session that
has run one command; what was open is closed outside of the clock. ``warm`` takes containers that
were started before, and says how long they took to be there. Every output is checked.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from assay.sandbox import Sandbox, Session, SessionLimits, describe
from assay.sandbox.backends.bwrap import bwrap_fault

T = TypeVar("T")
LIMITS = SessionLimits(memory_mib=128, pids=32)
ECHO = "echo $((6 * 7))"


def docker(*arguments: str) -> str:
    """Run Docker's own client, and return what it prints."""
    command = ["docker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def docker_start(image: str) -> str:
    """Start a container, and run a command in it."""
    name = docker("run", "-d", "--rm", "--network", "none", image, "sleep", "1000")
    assert docker("exec", name, "sh", "-c", ECHO) == "42"
    return name


def starts(at: int, open_one: Callable[[], T], close: Callable[[T], object]) -> float:
    """Starts a second: as many at one time, each by a thread of its own."""
    with ThreadPoolExecutor(at) as threads:
        began = time.perf_counter()
        opened = list(threads.map(lambda _: open_one(), range(at)))
        took = time.perf_counter() - began
        list(threads.map(close, opened))
    return at / took


def commands(at: int, seconds: float, runs: list[Callable[[], object]]) -> float:
    """Commands a second: each of the sessions runs one after the other."""
    end = time.perf_counter() + seconds

    def work(run: Callable[[], object]) -> int:
        for count in itertools.count(1):
            assert run() in ("42", "42\n")
            if time.perf_counter() > end:
                return count
        raise AssertionError

    with ThreadPoolExecutor(at) as threads:
        began = time.perf_counter()
        total = sum(threads.map(work, runs))
        return total / (time.perf_counter() - began)


@contextlib.contextmanager
def warmed(box: Sandbox, count: int) -> Iterator[float]:
    """Have this many containers started, and no more come; yield the seconds that they took."""
    began = time.perf_counter()
    box.warm_sessions(count, limits=LIMITS)
    while box.ready_sessions(limits=LIMITS) < count:
        time.sleep(0.01)
    yield time.perf_counter() - began
    box.warm_sessions(0, limits=LIMITS)


def measure(box: Sandbox, at: int, seconds: float) -> tuple[float, float, float]:
    """Return starts a second, warm starts a second, and commands a second."""

    def begin() -> Session:
        session = box.session(limits=LIMITS)
        assert session.exec(ECHO).text == "42\n"
        return session

    begin().close()
    cold = starts(at, begin, Session.close)
    with warmed(box, at) as took:
        hot = starts(at, begin, Session.close)
    print(f"    ({at} warm ones took {took:.1f} s)")
    sessions = [box.session(limits=LIMITS) for _ in range(at)]
    speed = commands(at, seconds, [lambda s=s: s.exec(ECHO).text for s in sessions])
    for session in sessions:
        session.close()
    return cold, hot, speed


def main() -> None:
    """Measure, and print a block for each number of sessions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--image", default=describe("shell").tag)
    parser.add_argument("--at", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    for at in options.at:
        print(f"{at} sessions at one time")
        names: list[object] = []
        base = starts(at, lambda: docker_start(options.image), names.append)
        base_exec = commands(
            at,
            options.seconds,
            [lambda n=n: docker("exec", str(n), "sh", "-c", ECHO) for n in names],
        )
        docker("rm", "-f", *map(str, names))
        print(f"  docker run, docker exec: {base:.1f} starts/s, {base_exec:.1f} commands/s")
        backends = ["docker"] if bwrap_fault() else ["docker", "bwrap"]
        for backend in backends:
            image = options.image if backend == "docker" else None
            with Sandbox(image, backend=backend) as box:  # type: ignore[arg-type]
                cold, hot, speed = measure(box, at, options.seconds)
            print(
                f"  {backend}: {cold:.1f} starts/s ({cold / base:.1f}x), {hot:.1f} warm "
                f"({hot / base:.1f}x), {speed:.1f} commands/s ({speed / base_exec:.1f}x)"
            )


if __name__ == "__main__":
    main()
