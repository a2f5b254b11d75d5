"""Thousands of requests at once: none is lost, none is judged wrongly, and nothing is left.

ASSAY_LOAD_PROGRAMS sets how many are under way at one time (default 1,000); -s prints figures.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.sandbox import Limits, Result, RunStatus, Sandbox, SandboxUnavailable

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

COUNT = int(os.environ.get("ASSAY_LOAD_PROGRAMS", "1000"))
LIMITS = Limits(cpu_s=5.0, wall_s=60.0, memory_mib=128)
Request = tuple[str, str, RunStatus, str]
"""Program, input, and how it must end."""


def request(number: int) -> Request:
    """Most echo their number; some fail, and must be seen to."""
    if number % 10 == 9:
        return f"print({number}); raise SystemExit(3)", "", RunStatus.RUNTIME_ERROR, f"{number}\n"
    return "print(input())", str(number), RunStatus.OK, f"{number}\n"


REQUESTS = [request(number) for number in range(COUNT)]


def by_threads(box: Sandbox, found: dict[int, Result] | None = None) -> list[Result]:
    """Run all from as many threads as there are programs; ``found`` is filled as they end."""
    found = {} if found is None else found

    def body(number: int) -> None:
        code, stdin, _, _ = REQUESTS[number]
        try:
            found[number] = box.run(code, stdin)
        except SandboxUnavailable as error:
            found[number] = Result(RunStatus.SANDBOX_ERROR, reason=str(error))

    threads = [threading.Thread(target=body, args=(number,)) for number in range(COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(COUNT)]


def by_asyncio(box: Sandbox) -> list[Result]:
    """Await all at one time."""

    async def all_of_them() -> list[Result]:
        return await asyncio.gather(*(box.arun(code, stdin) for code, stdin, _, _ in REQUESTS))

    return asyncio.run(all_of_them())


def judge(found: list[Result]) -> int:
    """See that each ended as it must, or honestly has no result; count those."""
    none = 0
    for result, (_, _, status, output) in zip(found, REQUESTS, strict=True):
        none += result.status is RunStatus.SANDBOX_ERROR
        if result.status is not RunStatus.SANDBOX_ERROR:
            assert (result.status, result.stdout) == (status, output), result
    return none


def memory_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def test_thousands_at_once_in_one_box(make_box, backend_name: str) -> None:
    used: list[float] = []
    with make_box(slots=2, limits=LIMITS) as box:
        ways: tuple[Callable[[Sandbox], list[Result]], ...] = (by_threads, by_asyncio)
        for way in (*ways, by_threads):
            started = time.monotonic()
            assert judge(way(box)) == 0
            seconds = time.monotonic() - started
            used.append(memory_mib())
            figures = f"{COUNT} at once {way.__name__}: {COUNT / seconds:.0f}/s, {used[-1]:.0f} MiB"
            print(f"{backend_name}, {figures}")  # noqa: T201 - the figures, with -s
    assert used[2] - max(used[:2]) < 16  # the second time needs no more than the first
