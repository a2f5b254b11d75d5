"""The guest's ends: the host's stream, and pipes whose content is kept in memory files."""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
from collections.abc import Callable
from typing import Any, NoReturn

from .child import write_all

CHUNK = 1 << 16


class Capture:
    """A pipe whose content is kept in a memory file, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.fchmod(self.writer, 0o622)  # so that the program's user may open /dev/stdout
        self.file = os.memfd_create("capture")
        self.limit = limit
        self.size = 0
        self.ended = False

    def move(self) -> bool:
        """Keep what is in the pipe; say whether there may be more."""
        try:
            moved = os.splice(self.reader, self.file, CHUNK)
        except BlockingIOError:
            return False
        self.size += moved
        self.ended = moved == 0
        return moved > 0

    @property
    def over(self) -> bool:
        """More came than may be kept."""
        return self.size > self.limit

    @property
    def kept(self) -> int:
        """Bytes that may be kept."""
        return min(self.size, self.limit)

    def head(self) -> bytes:
        """Return the first bytes: a program's note to the guest."""
        return os.pread(self.file, 16, 0)

    def close(self) -> None:
        """Free the pipe and the file."""
        os.close(self.reader)
        os.close(self.file)


class Host:
    """The other end of the guest's stdin and stdout."""

    def __init__(self) -> None:
        self.reader, self.writer = os.dup(0), os.dup(1)
        self.splices = stat.S_ISFIFO(os.fstat(self.reader).st_mode)  # bwrap has a socket here
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)
        self.before_end: Callable[[], object] = int
        """Called where the sandbox does not end with this process."""

    def gone(self) -> NoReturn:
        """End, and the sandbox with us: nobody is left who wants a result."""
        self.before_end()
        os._exit(0)

    def read(self, size: int) -> bytes:
        """Read exactly this much. Where the host is gone, end."""
        data = bytearray()
        while len(data) < size:
            piece = os.read(self.reader, size - len(data))
            if not piece:
                self.gone()
            data += piece
        return bytes(data)

    def read_request(self) -> dict[str, Any]:
        """Read the JSON of one request."""
        (size,) = struct.unpack(">I", self.read(4))
        request: dict[str, Any] = json.loads(self.read(size))
        return request

    def read_blob(self, size: int) -> int:
        """Read into a memory file without passing through the heap; return its descriptor."""
        file = os.memfd_create("blob")
        if self.splices:
            done = 0
            while done < size:  # at an offset: the file's own position stays at its start
                moved = os.splice(self.reader, file, size - done, offset_dst=done)
                if not moved:
                    self.gone()
                done += moved
        elif size:
            self._read_mapped(file, size)
        return file

    def _read_mapped(self, file: int, size: int) -> None:
        os.ftruncate(file, size)
        with mmap.mmap(file, size) as memory, memoryview(memory) as view:
            done = 0
            while done < size:
                with view[done:] as rest:
                    read = os.readv(self.reader, [rest])
                if not read:
                    self.gone()
                done += read

    def write_frame(self, value: object) -> None:
        """Write a length and the JSON of a value."""
        data = json.dumps(value).encode()
        write_all(self.writer, struct.pack(">I", len(data)) + data)

    def send_file(self, file: int, size: int) -> None:
        """Send a memory file without passing through the heap."""
        offset = 0
        while offset < size:
            offset += os.sendfile(self.writer, file, offset, size - offset)
