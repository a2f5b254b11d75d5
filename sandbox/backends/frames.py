"""Docker's frames, which carry stdout and stderr of a container over one stream."""

from __future__ import annotations

import struct

_HEADER = struct.Struct(">BxxxI")
_STDERR_KEPT = 4096  # bytes of what process 1 says of its own failure


class Frames:
    """Takes frames apart, in pieces of any size.

    Attributes:
        stderr: the last bytes that came of it.
    """

    def __init__(self) -> None:
        self.stderr = bytearray()
        self._header = bytearray()
        self._source = 0
        self._left = 0

    @property
    def inside(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._header or self._left)

    def stdout_of(self, piece: bytes) -> bytes:
        """Return what a piece has of stdout, and keep what it has of stderr.

        Raises:
            ValueError: it has another stream.
        """
        found = bytearray()
        view = memoryview(piece)
        while view:
            if self._left:
                part, view = view[: self._left], view[self._left :]
                self._left -= len(part)
                if self._source == 1:
                    found += part
                else:
                    self.stderr = (self.stderr + part)[-_STDERR_KEPT:]
                continue
            missing = _HEADER.size - len(self._header)
            self._header += view[:missing]
            view = view[missing:]
            if len(self._header) == _HEADER.size:
                self._source, self._left = _HEADER.unpack(self._header)
                self._header.clear()
                if self._source not in (1, 2):
                    raise ValueError(f"a frame for stream {self._source}")
        return bytes(found)
