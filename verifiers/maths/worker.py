"""A killable process for what cannot be bounded otherwise: algebra or SQL of hostile text.

Neither a thread nor an alarm stops sympy raising nine to the power of 9^9: only killing the
process does. A worker starts when it is first needed, with pipes and a plain command line, so it
works from the main thread, other threads, event loops, data loader workers, and children made by
fork or spawn alike. :mod:`~assay.verifiers.pool` shares some among a process's threads.

CPU time is the limit that decides, and wall time only a backstop, so a busy machine does not
turn right answers into timeouts.
"""

from __future__ import annotations

import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

SYMBOLIC = "maths/symbolic.py"
"""The program of a worker for algebra, as a file of the package ``assay.verifiers``."""
_GUEST = "maths/worker_guest.py"
"""Follows every program, and serves it."""

_READY_S = 120.0
"""Wall-clock seconds that a worker may take to start; the usual figure is half a second."""


class WorkerError(RuntimeError):
    """The worker cannot be started or has been starved of CPU: nothing was judged."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Bounds on one question to the worker.

    Attributes:
        cpu_s: CPU seconds; decides.
        wall_s: wall-clock seconds, after which the machine is taken to be overloaded.
        memory_mib: address space of the worker, MiB.
    """

    cpu_s: float = 3.0
    wall_s: float = 60.0
    memory_mib: int = 1024


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """The worker's answer.

    Attributes:
        kind: ``same``, ``different``, ``bad_gold``, ``unparseable``, ``timeout``, ``memory`` or
            ``crash``.
        reason: a few words.
    """

    kind: str
    reason: str = ""


class Worker:
    """One process that answers one question at a time.

    Args:
        limits: for every question.
        program: what it runs, a file of the package ``assay.verifiers`` that defines ``start``.

    It restarts by itself after it was killed. Threads may share it; they take turns.
    """

    def __init__(self, limits: WorkerLimits | None = None, program: str = SYMBOLIC) -> None:
        self.limits = limits or WorkerLimits()
        self.program = program
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: dict[str, Any]) -> WorkerReply:
        """Put one question. One that kills two workers in a row is to blame for it.

        Raises:
            WorkerError: no worker can be had, or it got no CPU time to answer in.
        """
        with self._lock:
            first = self._asked(question)
            return self._asked(question) if first.kind == "crash" else first

    def _asked(self, question: dict[str, Any]) -> WorkerReply:
        process = self._started()
        before = cpu_seconds(process.pid)
        try:
            _send(process, question)
            reply = self._awaited(process, before)
        except _OverrunError as overrun:
            self._kill()
            return WorkerReply("timeout", str(overrun))
        except (OSError, EOFError):
            code = self._kill()
            if code == -signal.SIGXCPU:  # the kernel saw it before we did
                return WorkerReply("timeout", f"more than {self.limits.cpu_s:g} s of CPU time")
            return WorkerReply("crash", f"the worker died, exit code {code}")
        except BaseException:  # Ctrl-C: its answer would be taken for that to the next question
            self._kill()
            raise
        if reply["finding"] == "memory":
            self._kill()
        return WorkerReply(reply["finding"], reply["reason"])

    def close(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            self._kill()

    def abandon(self) -> None:
        """Forget the process without ending it: after a fork it is the parent's."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # keeps the destructor from waiting for another's child
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._kill()
        source = b""
        for name in (self.program, _GUEST):
            text = pkgutil.get_data(__package__.rpartition(".")[0], name)
            if text is None:
                raise WorkerError(f"cannot read {name} of the package; reinstall it")
            source += text + b"\n"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", source.decode()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for us; the worker ends with our pipe
                env={**os.environ, "PYTHONHASHSEED": "0"},  # sympy's order of terms hangs on it
            )
            process = self._process
            setup = {"path": [p for p in sys.path if p], "cpu_s": self.limits.cpu_s}
            _send(process, setup | {"memory_mib": self.limits.memory_mib})
            ready = _receive(process, time.monotonic() + _READY_S)
        except (OSError, EOFError) as error:
            self._kill()
            raise WorkerError(f"the worker does not start: {error}") from error
        if ready is None or not ready["ready"]:
            self._kill()
            cause = "no sign of life" if ready is None else ready["reason"]
            raise WorkerError(f"the worker does not start: {cause}")
        return process

    def _awaited(self, process: subprocess.Popen[bytes], before: float | None) -> dict[str, Any]:
        limits, started = self.limits, time.monotonic()
        while True:
            reply = _receive(process, min(time.monotonic() + 0.1, started + limits.wall_s))
            if reply is not None:
                return reply
            now = cpu_seconds(process.pid)
            if now is not None and before is not None and now - before > limits.cpu_s:
                raise _OverrunError(f"more than {limits.cpu_s:g} s of CPU time")
            if time.monotonic() - started > limits.wall_s:
                self._kill()
                if now is None or before is None:  # no /proc here: wall time is all there is
                    raise _OverrunError(f"more than {limits.wall_s:g} s")
                raise WorkerError(
                    f"the worker got only {now - before:.1f} s of CPU time in "
                    f"{limits.wall_s:g} s: the machine is overloaded"
                )

    def _kill(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return code


class _OverrunError(Exception):
    """A question has used up its time; says how much."""


def _send(process: subprocess.Popen[bytes], value: dict[str, Any]) -> None:
    assert process.stdin is not None  # noqa: S101  # made with PIPE
    data = memoryview(json.dumps(value).encode() + b"\n")
    while data:
        data = data[process.stdin.write(data) :]


def _receive(process: subprocess.Popen[bytes], deadline: float) -> dict[str, Any] | None:
    """Read the next line, or ``None`` if none has begun by the deadline."""
    assert process.stdout is not None  # noqa: S101  # made with PIPE
    waiting = select.poll()  # select() itself knows no descriptor above 1023
    waiting.register(process.stdout, select.POLLIN | select.POLLHUP)
    if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
        return None
    line = process.stdout.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return dict(json.loads(line))


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU seconds of a process so far, or ``None`` if they are not available."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
