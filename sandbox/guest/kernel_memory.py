"""Bounds on what a program makes the kernel keep that no control group of memory counts.

For each socket that may be some 200 KiB: errors, time stamps, what waits to be accepted. File
locks are 200 bytes each, and may be of any number; files a kilobyte, with nothing in them.

Runs inside the sandbox, from source that the host sends: standard library only.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time

_STEP = 8 << 10  # KiB by which the kernel's memory grows before anybody looks at the locks
_LOCKS = 1000
_FILES = 4096
_RELEASE_S = 0.5
_PLACES = ("/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own


class KernelMemory:
    """Counts sockets, file locks and files of this sandbox.

    Args:
        settings: values of /proc/sys to write first, if this user may.
        usable: nothing but the sandbox is in its network and pid namespaces.
    """

    def __init__(self, settings: dict[str, str], *, usable: bool) -> None:
        for name, value in settings.items():
            with (
                contextlib.suppress(OSError),
                open(f"/proc/sys/{name.replace('.', '/')}", "w") as file,
            ):
                file.write(value)
        self._sockets = _open("/proc/net/sockstat") if usable else None
        self._memory = _open("/proc/meminfo") if usable else None
        self._places = [path for path in _PLACES if usable and os.path.ismount(path)]
        self._idle = _number(self._sockets, b"used")
        self.start()

    def start(self) -> None:
        """Begin a run."""
        self._least = 1 << 60

    def excess(self, sockets: int) -> str:
        """Return ``sockets``, ``inodes`` or ``locks`` if there are too many, else an empty string.

        Args:
            sockets: how many there may be, those included that no process has open.
        """
        if _number(self._sockets, b"used") > sockets:
            return "sockets"
        if any(_files(place) > _FILES for place in self._places):
            return "inodes"
        kept = _number(self._memory, b"SUnreclaim:")
        self._least = min(self._least, kept)
        if kept > self._least + _STEP:
            self._least = kept
            # Only now, since reading them holds up every lock of the machine.
            with contextlib.suppress(OSError), open("/proc/locks", "rb") as file:
                own = (line for line in file if b"OFDLCK" not in line)  # the filter refuses those
                if next(itertools.islice(own, _LOCKS, None), None):
                    return "locks"
        return ""

    def is_released(self) -> bool:
        """Return whether nothing of an ended program is left that counts against the next one.

        The kernel frees sockets a moment after the last process that held them. Ports stay taken
        for a minute after their connections: those are not waited for.
        """
        deadline = time.monotonic() + _RELEASE_S
        while _number(self._sockets, b"used") > self._idle:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return not _number(self._sockets, b" tw")


def _open(path: str) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDONLY)
    return None


def _files(place: str) -> int:
    usage = os.statvfs(place)
    return usage.f_files - usage.f_ffree


def _number(file: int | None, word: bytes) -> int:
    """Return the number after a word of a file, or zero without either."""
    found = b"" if file is None else os.pread(file, 4096, 0).partition(word)[2]
    return int(found.split(None, 1)[0]) if found else 0
