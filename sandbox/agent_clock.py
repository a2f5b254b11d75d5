"""Time that a program used, and time that it waited for a core and must not be charged with.

Runs inside the sandbox, from source that the host sends: standard library only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of_all() -> float:
    """CPU seconds of every process but this one, its waited-for children included."""
    ticks = 0
    for name in _others():
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            # The name, in brackets, may hold anything, brackets and spaces too.
            fields = file.read().rpartition(b")")[2].split()
            ticks += sum(int(n) for n in fields[11:15])
    return ticks / _TICKS


def delay_of_run(processes: list[int]) -> float:
    """Seconds for which a run was ready to go on and others had the cores.

    The sum over the processes of the run, which take turns; or that of the one thread that waited
    longest, where a program has more. Zero where the kernel does not count it.
    """
    longest = 0.0
    for name in _others():
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{name}/task"):
                longest = max(longest, _delay(f"/proc/{name}/task/{thread}/schedstat"))
    return max(longest, sum(_delay(f"/proc/{pid}/schedstat") for pid in processes))


def _delay(path: str) -> float:
    try:
        with open(path, "rb") as file:
            return int(file.read().split()[1]) / 1e9  # on the core, waiting for it, turns
    except (OSError, IndexError, ValueError):
        return 0.0


def _others() -> Iterator[str]:
    return (name for name in os.listdir("/proc") if name.isdigit() and name != "1")
