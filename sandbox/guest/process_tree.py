"""What the guest does where it is not process 1: an unsafe slot, a process of the host itself.

There ``kill(-1)`` would end all that the user runs, and /tmp and /proc are everybody's. So the
guest adopts the orphans among its descendants, looks for all of these and for nothing else, and
gives programs a folder of their own in the place of /tmp.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from .child import prctl

_NO_NEW_PRIVS, _SUBREAPER = 38, 36

_Process = tuple[int, int]
"""Its number, and its start, which tells it from a later one of the same number."""


class ProcessTree:
    """This process's descendants."""

    def __init__(self) -> None:
        for option in (_NO_NEW_PRIVS, _SUBREAPER):
            if prctl()(option, 1, 0, 0, 0):
                sys.exit("guest: cannot adopt the orphans of programs, so could not end them")

    def members(self) -> list[int]:
        """Return the numbers of all descendants."""
        return [pid for pid, _ in _descendants()]

    def kill(self) -> None:
        """Kill those that are there now. Stopped first, a fork bomb does not grow meanwhile."""
        stopped: set[_Process] = set()
        while found := set(_descendants()) - stopped:
            for process in found:
                _send(process, signal.SIGSTOP)
            stopped |= found
        for process in stopped:
            _send(process, signal.SIGKILL)


def _descendants() -> list[_Process]:
    children: dict[int, list[_Process]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            children.setdefault(int(fields[1]), []).append((int(name), int(fields[19])))
    found = list(children.get(os.getpid(), ()))
    for pid, _ in found:  # it grows while it is read
        found += children.get(pid, ())
    return found


def _stat(pid: int) -> list[bytes]:
    """Return the fields of a process's stat after its name, or none if it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return []


def _send(process: _Process, number: int) -> None:
    """Signal this very process, never a stranger who got its number meanwhile."""
    pid, started = process
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            fields = _stat(pid)
            if fields and int(fields[19]) == started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def tasks_of_user() -> int:
    """Count processes and threads of this user, all of which count against RLIMIT_NPROC."""
    tasks, uid = 0, os.getuid()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                tasks += int((_stat(int(name)) or [b"0"] * 18)[17])
    return tasks
