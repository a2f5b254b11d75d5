"""Time that a program used, and time that it waited for a core and must not be charged with."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence

_TICKS = os.sysconf("SC_CLK_TCK")
_GROUP_FILES = ("/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpuacct/cpuacct.usage")


class GroupClock:
    """CPU time of a run by the sandbox's control group, where that can be seen.

    The kernel forgets the time of children whose parent ignores SIGCHLD; only their group has it.

    Args:
        usable: the group holds this sandbox and nothing else.
    """

    def __init__(self, *, usable: bool) -> None:
        self._file: int | None = None
        for path in _GROUP_FILES if usable else ():
            with contextlib.suppress(OSError):
                self._file = os.open(path, os.O_RDONLY)
                break
        self._before = 0.0

    def start(self) -> None:
        """Begin a run."""
        self._before = self._read()

    def used(self) -> float:
        """Return CPU seconds since then, without this process's; zero without a group."""
        return self._read() - self._before

    def _read(self) -> float:
        if self._file is None:
            return 0.0
        data = os.pread(self._file, 4096, 0).split()
        # Version 2 begins with "usage_usec N"; version 1 is nanoseconds only.
        seconds = int(data[1]) / 1e6 if data[0] == b"usage_usec" else int(data[0]) / 1e9
        return seconds - time.process_time()


def cpu_of(members: Iterable[int]) -> float:
    """Return CPU seconds of these processes, their waited-for children included."""
    ticks = 0
    for pid in members:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in brackets, may hold anything, brackets and spaces too.
            fields = file.read().rpartition(b")")[2].split()
            ticks += sum(int(n) for n in fields[11:15])
    return ticks / _TICKS


def delay_of(processes: Sequence[int], members: Iterable[int] = ()) -> float:
    """Return seconds for which a run was ready to go on and others had the cores.

    Args:
        processes: those that the run began with. They take turns, so their delays add up.
        members: all that it has now. The thread of them that waited longest counts, if that is
            more: only the run's own, since a stranger's delay is no reason to wait longer.

    Returns:
        Zero where the kernel does not count it.
    """
    longest = 0.0
    for pid in members:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                longest = max(longest, _delay(f"/proc/{pid}/task/{thread}/schedstat"))
    return max(longest, sum(_delay(f"/proc/{pid}/schedstat") for pid in processes))


def _delay(path: str) -> float:
    try:
        with open(path, "rb") as file:
            return int(file.read().split()[1]) / 1e9  # on the core, waiting for it, turns
    except (OSError, IndexError, ValueError):
        return 0.0
