"""Bounds on what a program makes the kernel keep that no control group of memory counts.

For each socket that may be some 200 KiB: errors, time stamps, what waits to be accepted. File
locks are 200 bytes each, and may be of any number; files a kilobyte, with nothing in them.

Names that were looked up, of files that exist and that do not, are counted by the group and stay in
the kernel's caches after the program: the next one would have less memory, and pay for freeing it.
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
_CACHES = 8 << 20  # bytes of the kernel's that a run may leave
_GROUP_FILES = (  # cgroup v1, v2, and v2 before Linux 5.18
    ("/sys/fs/cgroup/memory/memory.kmem.usage_in_bytes", b""),
    ("/sys/fs/cgroup/memory.stat", b"\nkernel "),
    ("/sys/fs/cgroup/memory.stat", b"\nslab "),
)
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
        self._sockets = opened("/proc/net/sockstat") if usable else None
        self._memory = opened("/proc/meminfo") if usable else None
        self._places = [path for path in _PLACES if usable and os.path.ismount(path)]
        self._idle = number_after(self._sockets, b"used")
        self._group: tuple[int | None, bytes] = (None, b"")
        for path, word in _GROUP_FILES if usable else ():
            group = opened(path)
            if number_after(group, word):
                self._group = group, word
                break
        self._idle_group = number_after(*self._group)
        self.start()

    def start(self) -> None:
        """Begin a run."""
        self._least = 1 << 60

    def excess(self, sockets: int) -> str:
        """Return ``sockets``, ``inodes`` or ``locks`` if there are too many, else an empty string.

        Args:
            sockets: how many there may be, those included that no process has open.
        """
        if number_after(self._sockets, b"used") > sockets:
            return "sockets"
        if any(_files(place) > _FILES for place in self._places):
            return "inodes"
        kept = number_after(self._memory, b"SUnreclaim:")
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

        The kernel frees sockets, and most of its memory, a moment after the last process that held
        them. Ports stay taken for a minute after their connections: those are not waited for.
        """
        deadline = time.monotonic() + _RELEASE_S
        while (
            number_after(self._sockets, b"used") > self._idle
            or number_after(*self._group) > self._idle_group + _CACHES
        ):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return not number_after(self._sockets, b" tw")


def opened(path: str) -> int | None:
    """Return a descriptor of a file, or ``None`` if it cannot be read."""
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDONLY)
    return None


def _files(place: str) -> int:
    usage = os.statvfs(place)
    return usage.f_files - usage.f_ffree


def number_after(file: int | None, word: bytes) -> int:
    """Return the number after a word of a file, or its first; zero without either."""
    text = b"" if file is None else os.pread(file, 4096, 0)
    found = text.partition(word)[2] if word else text
    return int(found.split(None, 1)[0]) if found else 0
