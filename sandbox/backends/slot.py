"""One warm sandbox, seen from the host: send a request, read the reply."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..limits import Limits
from .frames import Frames

Mode = Literal["program", "calls", "tests", "run", "compile"]

GRACE_S = 15.0
"""What a reply may take beyond the run's last moment: killing, wiping and sending."""

_LARGEST_HEADER = 1 << 20
_LARGEST_COUNT = 1 << 53
_ENDS = frozenset({"exit", "wall", "cpu", "output", "sockets", "inodes", "locks"})


class SlotBroken(Exception):
    """The slot died or answered oddly, and must not be used again.

    Attributes:
        infrastructure_failure: what ended it while it started, if that is neither its own
            fault nor its host's.
    """

    def __init__(self, cause: str, infrastructure_failure: str = "") -> None:
        failure = infrastructure_failure
        super().__init__(f"{failure} ({cause})" if failure else cause)
        self.infrastructure_failure = failure


class Unreachable(SlotBroken):
    """What starts slots does not answer: it may be restarting."""


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
        less_memory: it may use less memory than the slot has; set where it is sent.
        work: how to run or compile what is no Python program, for :mod:`..guest.commands`.
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
        end: ``exit``, or what ended it: ``wall``, ``cpu``, ``output``, ``sockets``,
            ``inodes`` or ``locks``.
        exits: exit code of each process of the run (negative for a signal); ``None`` for one
            that the guest killed.
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
    orphans: int
    clean: bool
    outputs: tuple[bytes, bytes, bytes]
    cut: tuple[bool, bool, bool] = (False, False, False)


def no_failure(hung_up: bool) -> str:
    """Return no cause: nobody can be asked."""
    return ""


class Slot:
    """A stream to a guest.

    Args:
        stream: connected to the guest's stdin and stdout.
        origin: where it runs.
        multiplexed: Docker's frames of stdout and stderr, separated by an 8-byte header.
        end: gives back what holds the guest.
        said: what went to stderr by another way than the stream.
        infrastructure_failure: asked by the method of that name, with whether the stream has
            ended.
        start_s: seconds the guest may take to greet.

    Raises:
        SlotBroken: the guest did not greet.
    """

    def __init__(
        self,
        stream: socket.socket,
        origin: Origin,
        *,
        multiplexed: bool,
        end: Callable[[], None],
        said: Callable[[], str] = str,
        infrastructure_failure: Callable[[bool], str] = no_failure,
        start_s: float = 60.0,
    ) -> None:
        self._stream = stream
        self._talking = threading.RLock()
        self._frames = Frames() if multiplexed else None
        self._end = end
        self._said = said
        self._infrastructure_failure = infrastructure_failure
        self._hung_up = False
        self._data = bytearray()
        self._number = 0
        self.origin = origin
        self.runs = 0
        self._deadline = time.monotonic() + start_s
        try:
            greeting = self._read_frame()
            facts = (greeting.get("ready"), greeting.get("python"), greeting.get("switches"))
            if facts[0] != 1 or type(facts[1]) is not str or type(facts[2]) is not bool:
                raise SlotBroken(f"the guest greeted with {greeting!r:.100}")
        except SlotBroken as error:
            why = self.infrastructure_failure()
            self.close()
            raise SlotBroken(str(error), why) from error
        self.python: str = greeting["python"]
        self.switches: bool = greeting["switches"]

    def run(self, request: Request) -> Reply:
        """Run one program.

        Raises:
            SlotBroken: no reply, or none that makes sense.
        """
        with self._talking:
            return self._run(request)

    def _run(self, request: Request) -> Reply:
        self.runs += 1
        self._number += 1
        if self._data or (self._frames is not None and self._frames.inside):
            raise SlotBroken("the guest spoke before it was asked")
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
        reply = self._read_reply(request)
        if self._data:
            raise SlotBroken("the guest said more than its reply")
        return reply

    def _read_reply(self, request: Request) -> Reply:
        facts = self._read_frame()
        try:
            if facts["id"] != self._number:
                raise SlotBroken(f"a reply to {facts['id']!r:.100}, expected {self._number}")
            sizes = [_count(size, request.limits.output_bytes) for size in facts["sizes"]]
            if len(sizes) != 3:
                raise ValueError(f"{len(sizes)} outputs")
            # What the facts say is looked at before anything that they announce is read.
            reply = Reply(
                end=_one_of(_ENDS, facts["end"]),
                exits=_exits(facts["exits"], 2 if request.mode == "tests" else 1),
                note=str(facts["note"])[:100],
                wall_s=_seconds(facts["wall_s"]),
                cpu_s=_seconds(facts["cpu_s"]),
                memory_mib=_count(facts["rss_kib"]) / 1024,
                oom=facts["oom"] is True,
                orphans=_count(facts["orphans"]),
                clean=facts["clean"] is True,
                outputs=(b"", b"", b""),
                cut=_flags(facts["cut"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SlotBroken(f"an odd reply: {error!r:.300}") from error
        out, err, report = (self._read(size) for size in sizes)
        return replace(reply, outputs=(out, err, report))

    def infrastructure_failure(self) -> str:
        """Return what broke the sandbox if that was not its program; else empty.

        Call it before the slot is closed: closing removes the evidence.
        """
        return self._infrastructure_failure(self._hung_up)

    def close(self) -> None:
        """End the guest. Its end of the stream closes, and the sandbox with it."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for a reply
        # Not before it has left: the next file gets our number, and it would wait on that one.
        with self._talking, contextlib.suppress(OSError):
            self._stream.close()
        self._end()

    def abandon(self) -> None:
        """Close our copy of the stream in a forked child, and leave the guest to the parent."""
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
        left = self._deadline - time.monotonic()
        if left <= 0:  # else one that sends a byte at a time would be listened to for ever
            raise SlotBroken(self._cause("no reply in time"))
        return left

    def _cause(self, error: object) -> str:
        stderr = self._frames.stderr[-500:] if self._frames is not None else b""
        said = stderr.decode("utf-8", "replace").strip() or self._said()
        return f"{error}; the guest said: {said}" if said else str(error)

    def _read_frame(self) -> dict[str, Any]:
        (size,) = struct.unpack(">I", self._read(4))
        if size > _LARGEST_HEADER:
            raise SlotBroken(f"a header of {size} bytes")
        try:
            facts = json.loads(self._read(size))
        except (ValueError, RecursionError) as error:
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
            raise SlotBroken(self._cause("the guest ended"))
        if self._frames is not None:
            try:
                piece = self._frames.stdout_of(piece)
            except ValueError as error:
                raise SlotBroken(str(error)) from error
        self._data += piece


def _count(value: Any, most: int = _LARGEST_COUNT) -> int:
    """Check a count. The facts come from a guest that a program may control."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r:.100} is no count of at most {most}")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _LARGEST_COUNT:  # nan too is refused
        raise ValueError(f"{value!r:.100} is no time")
    return float(value)


def _one_of(words: frozenset[str], value: Any) -> str:
    if type(value) is not str or value not in words:
        raise ValueError(f"{value!r:.100} is none of {sorted(words)}")
    return value


def _flags(values: Any) -> tuple[bool, bool, bool]:
    if type(values) is not list or not all(type(value) is bool for value in values):
        raise ValueError(f"{values!r:.100} are no flags")
    out, err, report = values
    return out, err, report


def _exits(values: Any, number: int) -> tuple[int | None, ...]:
    if type(values) is not list or len(values) != number:
        raise ValueError(f"{values!r:.100} are not {number} exit codes")
    for value in values:
        if value is not None and (type(value) is not int or not -128 <= value <= 255):
            raise ValueError(f"{value!r:.100} is no exit code")
    return tuple(values)
