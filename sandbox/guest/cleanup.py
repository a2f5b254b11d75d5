"""What the guest does after each run: end every process, delete every file, look again."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import sys
import time
from typing import Any, NoReturn

from .child import become_user
from .clock import delay_of
from .process_tree import ProcessTree
from .tester import CANDIDATE_GONE

_WRITABLE = ("/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own
_QUEUES = "/dev/mqueue"  # Docker mounts it; its files are no inodes that statvfs counts


class Files:
    """The places where a program can write, and how they are when clean."""

    def __init__(self) -> None:
        self.clean = {path: _state(path) for path in _WRITABLE if os.path.ismount(path)}

    def wipe(self, uids: list[int | None]) -> bool:
        """Delete what these users left, and say whether nothing is left."""
        for uid in uids:
            dirty = self.dirty()
            if not dirty:
                return True
            pid = os.fork()
            if pid == 0:
                _wipe_and_exit(dirty, uid)
            deadline = time.monotonic() + 2
            while os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    return False
                time.sleep(0.0005)
        return not self.dirty()

    def dirty(self) -> list[str | int]:
        """Return the places that are not as they were: paths, or descriptors of folders."""
        used: list[str | int] = [
            path for path, state in self.clean.items() if _state(path) != state
        ]
        return [*used, _QUEUES] if os.path.isdir(_QUEUES) and os.listdir(_QUEUES) else used


class OwnFolder(Files):
    """The folder that an unsafe slot's programs have in the place of /tmp.

    A program may move it away and put a link in its place, so it is emptied by descriptor.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self.status = os.fstat(self.directory)

    def wipe(self, uids: list[int | None]) -> bool:
        """Delete what these users left, and say whether nothing is left, and the folder there."""
        return super().wipe(uids) and os.path.samestat(os.lstat(self.path), self.status)

    def dirty(self) -> list[str | int]:
        """Return the folder, where it is not empty."""
        return [self.directory] if os.listdir(self.directory) else []

    def remove(self) -> None:
        """Delete it with all that is in it."""
        with contextlib.suppress(OSError):
            _empty(self.directory)
            os.rmdir(self.path)


def _state(path: str) -> tuple[int, int]:
    """Return how many files are in a place, and who may write there, which its owner may change."""
    usage = os.statvfs(path)
    return usage.f_files - usage.f_ffree, os.stat(path).st_mode


def settle(processes: list[int], end: str) -> None:
    """Give a candidate that closed its socket the moment it needs to have an exit status."""
    if end == "exit" and len(processes) > 1:
        status = os.waitid(os.P_PID, processes[0], os.WEXITED | os.WNOWAIT)
        if status is not None and status.si_status == CANDIDATE_GONE:
            candidate = os.pidfd_open(processes[1])
            started = time.monotonic()
            while not select.select([candidate], [], [], 0.2)[0]:
                if time.monotonic() - started - delay_of(processes) >= 1.0:
                    break
            os.close(candidate)


def kill_all(
    exits: dict[int, int],
    usage: dict[str, Any],
    processes: list[int],
    tree: ProcessTree | None = None,
) -> int:
    """Kill and reap every process but this one; say how many were orphans.

    One signal reaches them all at once, so a fork bomb cannot outrun it. The exit codes of
    ``processes`` go to ``exits``, their CPU seconds and largest resident KiB to ``usage``.
    In an unsafe slot it is the guest's tree that is killed, as often as it takes.
    """
    # What ended by itself is not counted as killed here.
    ended = {pid for pid in processes if _has_ended(pid)}
    if tree is None:
        _kill_everything()
    orphans = 0
    while True:
        try:
            pid, status, used = os.wait4(-1, 0 if tree is None else os.WNOHANG)
        except ChildProcessError:
            return orphans
        if pid == 0 and tree is not None:
            tree.kill()
            time.sleep(0.0005)
            continue
        usage["cpu"] += used.ru_utime + used.ru_stime
        usage["rss"] = max(usage["rss"], used.ru_maxrss)
        if pid in ended:
            exits[pid] = os.waitstatus_to_exitcode(status)
        elif pid not in processes and os.WIFSIGNALED(status):
            orphans += 1  # one that had ended, and that nobody waited for, is none


def _kill_everything() -> None:
    if os.getpid() != 1:
        raise RuntimeError("kill(-1) outside a pid namespace would end all that the user runs")
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def _has_ended(pid: int) -> bool:
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, flags) is not None


def _wipe_and_exit(paths: list[str | int], uid: int | None) -> NoReturn:
    """Delete everything in these directories with the rights of the run, never with more."""
    try:
        if uid is not None:
            become_user(uid)
        sys.setrecursionlimit(100_000)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # a folder in a folder in a ...
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        for path in paths:
            if isinstance(path, str):
                path = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            _empty(path)
            os.close(path)
    finally:
        os._exit(0)


def _empty(directory: int) -> None:
    """Delete what is in an open directory: no link is followed, no path can be too long."""
    for name in os.listdir(directory):
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=directory)
            continue
        with contextlib.suppress(OSError, RecursionError):
            with contextlib.suppress(OSError):
                os.chmod(name, 0o700, dir_fd=directory)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            try:
                _empty(inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=directory)
