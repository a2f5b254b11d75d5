"""One warm sandbox, seen from the host: send a request, read the reply."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from .limits import Limits

Mode = Literal["program", "calls", "tests", "run", "compile"]

GRACE_S = 15.0
"""What a reply may take beyond the run's last moment: killing, wiping and sending."""

_LARGEST_HEADER = 1 << 20


class SlotBroken(Exception):
    """The slot died or answered oddly, and must not be used again.

    Attributes:
        excuse: how it died while it started, where neither it nor its host is to blame.
    """

    def __init__(self, cause: str, excuse: str = "") -> None:
        super().__init__(f"{excuse} ({cause})" if excuse else cause)
        self.excuse = excuse


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a slot runs; the fields are those of Result."""

    backend: str = ""
    image: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """What a slot is asked to run.

    Attributes:
        mode: a program by itself; a program whose function is called; a program and its tests;
            a program in another language than Python; a source to compile.
        code: the program.
        data: its stdin, the calls, or the tests.
        limits: bounds on it.
        less_memory: it may use less memory than the slot has.
        work: how to run or compile what is no Python program, for ``agent_exec``.
    """

    mode: Mode
    code: bytes
    data: bytes
    limits: Limits
    less_memory: bool = False
    work: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """How it ended: facts from the kernel, and what it wrote.

    Attributes:
        end: ``exit``, or what ended it: ``wall``, ``cpu`` or ``output``.
        exits: exit code of each process of the run (negative for a signal); ``None`` for one
            that the agent killed.
        note: what the program says of its own end; it can only harm itself by lying.
        oom: the kernel killed one of its processes for memory.
        clean: nothing of it is left, so the slot may be used again.
        outputs: stdout, stderr, report.
        cut: which of them were longer than what was kept.
    """

    end: str
    exits: tuple[int | None, ...]
    note: str
    wall_s: float
    cpu_s: float
    memory_mib: float
    oom: bool
    strays: int
    clean: bool
    outputs: tuple[bytes, bytes, bytes]
    cut: tuple[bool, bool, bool] = (False, False, False)


def _no_excuse(hung_up: bool) -> str:
    """Nobody can be asked."""
    return ""


class Slot:
    """A stream to an agent.

    Args:
        stream: connected to the agent's stdin and stdout.
        origin: where it runs.
        multiplexed: Docker's frames of stdout and stderr, told apart by an 8-byte header.
        end: gives back what holds the agent.
        said: what went to stderr by another way than the stream.
        excuse: asked by :meth:`excuse`, with whether the stream has ended.
        start_s: seconds the agent may take to greet.

    Raises:
        SlotBroken: the agent did not greet.
    """

    def __init__(
        self,
        stream: socket.socket,
        origin: Origin,
        *,
        multiplexed: bool,
        end: Callable[[], None],
        said: Callable[[], str] = str,
        excuse: Callable[[bool], str] = _no_excuse,
        start_s: float = 60.0,
    ) -> None:
        self._stream = stream
        self._multiplexed = multiplexed
        self._end = end
        self._said = said
        self._excuse = excuse
        self._hung_up = False
        self._raw = bytearray()
        self._data = bytearray()
        self._stderr = bytearray()
        self._number = 0
        self.origin = origin
        self.runs = 0
        self._deadline = time.monotonic() + start_s
        try:
            greeting = self._read_frame()
            if greeting.get("ready") != 1:
                raise SlotBroken(f"the agent greeted with {greeting!r:.100}")
        except SlotBroken as error:
            why = self.excuse()
            self.close()
            raise SlotBroken(str(error), why) from error
        self.python: str = greeting["python"]
        self.switches: bool = greeting["switches"]

    def run(self, request: Request) -> Reply:
        """Run one program.

        Raises:
            SlotBroken: no reply, or none that makes sense.
        """
        self.runs += 1
        self._number += 1
        bounds = request.limits
        self._deadline = time.monotonic() + bounds.ceiling_seconds + GRACE_S
        limits = {
            **bounds.to_json(),
            "wall_s": bounds.wall_seconds,
            "ceiling_s": bounds.ceiling_seconds,
        }
        header = {
            "id": self._number,
            "mode": request.mode,
            "limits": limits,
            "less_memory": request.less_memory,
            "blobs": [len(request.code), len(request.data)],
            **({} if request.work is None else {"exec": request.work}),
        }
        data = json.dumps(header).encode()
        self._send(b"".join([struct.pack(">I", len(data)), data, request.code, request.data]))
        return self._read_reply(request.limits.output_bytes)

    def _read_reply(self, output_bytes: int) -> Reply:
        facts = self._read_frame()
        try:
            if facts["id"] != self._number:
                raise SlotBroken(f"a reply to {facts['id']!r}, expected {self._number}")
            sizes = facts["sizes"]
            if len(sizes) != 3 or not all(0 <= size <= output_bytes for size in sizes):
                raise SlotBroken(f"outputs of {sizes!r} bytes")
            out_cut, err_cut, report_cut = (over is True for over in facts["cut"])
            out, err, report = (self._read(size) for size in sizes)
            return Reply(
                end=str(facts["end"]),
                exits=tuple(facts["exits"]),
                note=str(facts["note"]),
                wall_s=float(facts["wall_s"]),
                cpu_s=float(facts["cpu_s"]),
                memory_mib=facts["rss_kib"] / 1024,
                oom=bool(facts["oom"]),
                strays=int(facts["strays"]),
                clean=facts["clean"] is True,
                outputs=(out, err, report),
                cut=(out_cut, err_cut, report_cut),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SlotBroken(f"an odd reply: {error!r}") from error

    def excuse(self) -> str:
        """How the sandbox broke, where that was not its program's doing; else empty.

        To be asked before the slot is closed.
        """
        return self._excuse(self._hung_up)

    def close(self) -> None:
        """End the agent. Its end of the stream closes, and the sandbox with it."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for a reply
        with contextlib.suppress(OSError):
            self._stream.close()
        self._end()

    def abandon(self) -> None:
        """Close our copy of the stream in a forked child, and leave the agent to the parent."""
        with contextlib.suppress(OSError):
            self._stream.close()

    def _send(self, data: bytes) -> None:
        try:
            self._stream.settimeout(self._left())
            self._stream.sendall(data)
        except OSError as error:
            self._hung_up = not isinstance(error, TimeoutError)
            raise SlotBroken(self._cause(error)) from error

    def _left(self) -> float:
        return max(0.001, self._deadline - time.monotonic())

    def _cause(self, error: object) -> str:
        said = self._stderr[-500:].decode("utf-8", "replace").strip() or self._said()
        return f"{error}; the agent said: {said}" if said else str(error)

    def _read_frame(self) -> dict[str, Any]:
        (size,) = struct.unpack(">I", self._read(4))
        if size > _LARGEST_HEADER:
            raise SlotBroken(f"a header of {size} bytes")
        try:
            facts = json.loads(self._read(size))
        except ValueError as error:
            raise SlotBroken("a header that is not JSON") from error
        if not isinstance(facts, dict):
            raise SlotBroken("a header that is not an object")
        return facts

    def _read(self, size: int) -> bytes:
        while len(self._data) < size:
            self._receive()
        data = bytes(self._data[:size])
        del self._data[:size]
        return data

    def _receive(self) -> None:
        try:
            self._stream.settimeout(self._left())
            piece = self._stream.recv(1 << 18)
        except OSError as error:
            self._hung_up = not isinstance(error, TimeoutError)
            raise SlotBroken(self._cause(error)) from error
        if not piece:
            self._hung_up = True
            raise SlotBroken(self._cause("the agent ended"))
        if not self._multiplexed:
            self._data += piece
            return
        self._raw += piece
        while len(self._raw) >= 8:
            channel, size = struct.unpack_from(">BxxxI", self._raw)
            if len(self._raw) < 8 + size:
                return
            (self._data if channel == 1 else self._stderr).extend(self._raw[8 : 8 + size])
            del self._raw[: 8 + size]
