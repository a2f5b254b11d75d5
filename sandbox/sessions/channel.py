"""Frames to and from a session's supervisor, and the jobs that it runs.

A frame is a length, a type, the number of a job and a payload, big-endian, as in supervisor.c. A
thread reads for each session. Whatever the supervisor sends is bounded there; what is odd all the
same ends the session.
"""

from __future__ import annotations

import contextlib
import io
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from ..backends.forks import call_after_fork
from ..backends.frames import Frames

_LARGEST_FRAME = 1 << 17
_LARGEST_COMMAND = 1 << 23
_PIECE = 1 << 16
_IN_FLIGHT = 1 << 20
"""Bytes of stdin that a supervisor holds for a command that does not read."""

NO_STDIN, SHELL, AS_USER = 1, 2, 4


class ChannelBroken(Exception):
    """The supervisor does not answer, or answers oddly."""


@dataclass
class Job:
    """A command, or a transfer of files, that a supervisor runs.

    Attributes:
        outputs: stdout and stderr.
        cut: bytes of each that were not kept.
        how: ``x`` if it exited, ``s`` if a signal ended it, ``f`` if it could not start; empty
            while it runs.
        code: the exit code or signal.
        oom: the kernel killed a process of the session for memory while it ran.
        report: what a shell says of its last command.
    """

    number: int
    outputs: tuple[BinaryIO, BinaryIO]
    cut: list[int] = field(default_factory=lambda: [0, 0])
    how: str = ""
    code: int = 0
    timed_out: bool = False
    oom: bool = False
    report: bytes = b""
    in_flight: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait(self, done: Callable[[Job], bool], timeout_s: float | None) -> bool:
        """Wait until something holds of the job, and return whether it does."""
        with self.changed:
            return self.changed.wait_for(lambda: done(self), timeout_s)


class Channel:
    """The host's end of a supervisor's stdin and stdout.

    Args:
        stream: connected to both.
        multiplexed: Docker's frames separate stdout from stderr.
        start_s: seconds that the supervisor may take to greet.

    Raises:
        ChannelBroken: it did not greet.
    """

    def __init__(self, stream: socket.socket, *, multiplexed: bool, start_s: float = 60.0) -> None:
        self._stream = stream
        self._frames = Frames() if multiplexed else None
        self._data = bytearray()
        self._sending = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._killed: dict[int, int] = {}
        self._answered = threading.Condition()
        self._greeted = False
        self.ended = ""
        self.expired = ""
        self.disk_grew = threading.Event()
        call_after_fork(self, "abandon")
        self._thread = threading.Thread(target=self._read, name="assay-session", daemon=True)
        self._thread.start()
        with self._answered:
            self._answered.wait_for(lambda: self._greeted or self.ended, start_s)
        if not self._greeted:
            self.close()
            raise ChannelBroken(self.ended or "the supervisor did not greet in time")

    # -- requests ------------------------------------------------------------------------------

    def configure(
        self, idle_s: float | None, wall_s: float | None, watched_bytes: int, port: int
    ) -> None:
        """Set when the session ends by itself, and what its supervisor looks after.

        Args:
            idle_s: ends it when no command has run for so long.
            wall_s: ends it in any case.
            watched_bytes: from what size on its disk is watched; 0 for never.
            port: on which connections are taken, as jobs of kind ``n``; 0 for none.
        """
        self._send("C", 0, struct.pack(">IIQH", _ms(idle_s), _ms(wall_s), watched_bytes, port))

    def start(
        self,
        kind: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        user: str,
        folder: str,
        flags: int,
        timeout_s: float | None,
        output_bytes: int,
        file_bytes: int,
        into: BinaryIO | None = None,
    ) -> Job:
        """Start a job: a command (``x``), or files to put (``p``) or get (``g``, ``G``).

        Or the next connection to the supervisor's port (``n``).

        Raises:
            ValueError: a text holds a zero byte or half of a surrogate pair, or all are too long.
            ChannelBroken: the supervisor is gone.
        """
        variables = [f"{name}={value}" for name, value in environment.items()]
        head = struct.pack(">BBIQQ", ord(kind), flags, _ms(timeout_s), output_bytes, file_bytes)
        asked = head + _text(user) + _text(folder) + _texts(arguments) + _texts(variables)
        if len(asked) > _LARGEST_COMMAND:  # which no supervisor takes, and no system runs
            raise ValueError(
                f"a command has at most {_LARGEST_COMMAND:,} bytes, not {len(asked):,}"
            )
        with self._lock:
            self._number += 1
            job = Job(self._number, (into or io.BytesIO(), io.BytesIO()))
            self._jobs[job.number] = job
        self._send("J", job.number, asked)
        return job

    def write(self, job: Job, data: bytes | memoryview, *, last: bool) -> None:
        """Send stdin, no faster than the command takes it."""
        view = memoryview(data)
        while view:
            piece, view = view[:_PIECE], view[_PIECE:]
            job.wait(lambda job: bool(job.how) or job.in_flight < _IN_FLIGHT, None)
            if job.how:
                return
            with job.changed:
                job.in_flight += len(piece)
            self._send("I", job.number, piece)
        if last:
            self._send("I", job.number, b"")

    def next_command(self, job: Job, timeout_s: float | None) -> None:
        """Begin a shell's next command: its output and time count from here."""
        with job.changed:
            job.report, job.timed_out = b"", False
            for output in job.outputs:
                output.seek(0)
                output.truncate()
        self._send("R", job.number, struct.pack(">I", _ms(timeout_s)))

    def kill(self, job: Job) -> None:
        """Kill a job's processes, and those that left it."""
        self._send("K", job.number)

    def kill_all(self, timeout_s: float) -> int:
        """Kill every process but the supervisor, and return how many are left: 0.

        Raises:
            ChannelBroken: no answer in time.
        """
        with self._lock:
            self._number += 1
            number = self._number
        self._send("A", number)
        with self._answered:
            self._answered.wait_for(lambda: number in self._killed or self.ended, timeout_s)
            if number not in self._killed:
                raise ChannelBroken(self.ended or "no answer in time")
            return self._killed.pop(number)

    def forget(self, job: Job) -> None:
        """Keep a job no longer, once its end is known."""
        with self._lock:
            self._jobs.pop(job.number, None)

    def close(self) -> None:
        """Hang up: the supervisor exits, and every process of the session with it."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        with contextlib.suppress(OSError):
            self._stream.close()

    def abandon(self) -> None:
        """Close our copy of the stream in a forked child."""
        with contextlib.suppress(OSError):
            self._stream.close()

    def _send(self, kind: str, number: int, payload: bytes | memoryview = b"") -> None:
        head = struct.pack(">IBI", 5 + len(payload), ord(kind), number)
        try:
            with self._sending:
                self._stream.sendall(head + bytes(payload))
        except OSError as error:
            raise ChannelBroken(self.ended or str(error)) from error
        if self.ended:
            raise ChannelBroken(self.ended)

    # -- replies -------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            while True:
                size, kind, number = struct.unpack(">IBI", self._take(9))
                if not 5 <= size <= _LARGEST_FRAME:
                    raise ChannelBroken(f"a frame of {size} bytes")
                self._handle(chr(kind), number, self._take(size - 5))
        except (ChannelBroken, OSError, struct.error, ValueError) as error:
            stderr = self._frames.stderr if self._frames is not None else b""
            said = stderr.decode("utf-8", "replace").strip()
            self._end(f"{error}; the supervisor said: {said}" if said else str(error) or "closed")

    def _handle(self, kind: str, number: int, data: bytes) -> None:
        if kind == "D":
            self.disk_grew.set()
            return
        if kind in "HAX":
            with self._answered:
                if kind == "H":
                    self._greeted = True
                elif kind == "A":
                    (self._killed[number],) = struct.unpack(">I", data)
                else:
                    self.expired = data.decode("ascii", "replace")
                self._answered.notify_all()
            return
        with self._lock:
            job = self._jobs.get(number)
        if job is None:
            return
        with job.changed:
            if kind == "O":
                job.outputs[1 if data[0] else 0].write(data[1:])
            elif kind == "W":
                job.in_flight -= struct.unpack(">I", data)[0]
            elif kind == "S":
                job.timed_out, *job.cut = struct.unpack(">?QQ", data[:17])
                job.report += data[17:]
            elif kind == "E":
                how, job.code, job.timed_out, job.oom, *job.cut = struct.unpack(">cB??QQ", data)
                job.how = how.decode("ascii")
            else:
                raise ChannelBroken(f"a frame of type {kind!r}")
            job.changed.notify_all()

    def _end(self, cause: str) -> None:
        with self._lock:
            jobs = list(self._jobs.values())
        with self._answered:
            self.ended = cause
            self._answered.notify_all()
        self.disk_grew.set()
        for job in jobs:
            with job.changed:
                job.how = job.how or "lost"
                job.changed.notify_all()

    def _take(self, size: int) -> bytes:
        while len(self._data) < size:
            piece = self._stream.recv(_PIECE)
            if not piece:
                raise ChannelBroken("the supervisor ended")
            self._data += piece if self._frames is None else self._frames.stdout_of(piece)
        found = bytes(self._data[:size])
        del self._data[:size]
        return found


def _ms(seconds: float | None) -> int:
    return 0 if seconds is None else max(1, min(int(seconds * 1000), 0xFFFFFFFF))


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ValueError(f"a command, name or variable holds a zero byte: {text!r:.60}")
    return struct.pack(">I", len(data)) + data


def _texts(texts: Sequence[str]) -> bytes:
    return struct.pack(">I", len(texts)) + b"".join(map(_text, texts))
