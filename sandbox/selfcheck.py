"""Does the sandbox hold here? A short list of programs that try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .errors import SandboxError
from .limits import Limits
from .result import Result, RunStatus


class Runner(Protocol):
    """What of a Sandbox is looked at."""

    def run(self, code: str, stdin: str = "", *, limits: Limits | None = None) -> Result:
        """Run one program."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at.

    Attributes:
        name: what should be the case.
        ok: whether it is.
        detail: what was seen.
    """

    name: str
    ok: bool
    detail: str


_NETWORK = """
import socket
for address in (("1.1.1.1", 53), ("8.8.8.8", 443)):
    try:
        socket.create_connection(address, 2)
    except OSError as error:
        print("no network:", error)
    else:
        print("CONNECTED")
"""
_WRITE = """
for path in ("/", "/etc", "/usr", "/dev"):
    try:
        open(path + "/assay-check", "w")
    except OSError as error:
        print(path, "no:", error.strerror)
    else:
        print("WROTE", path)
"""
_LEAVE = """
import os, sys, time
open("/tmp/left", "w").write("secret")
os.path.isdir("/dev/shm") and open("/dev/shm/left", "w").write("secret")
if os.fork() == 0:
    os.setsid()
    time.sleep(60)
"""
_LOOK = """
import os
print([n for p in ("/tmp", "/dev/shm") if os.path.isdir(p) for n in os.listdir(p)])
print(sorted(int(n) for n in os.listdir("/proc") if n.isdigit() and int(n) not in (1, os.getpid())))
"""
_SECONDS = Limits(cpu_s=1.0, wall_s=10.0, memory_mib=64)


def self_check(box: Runner) -> list[Finding]:
    """Run a few programs that try to get out, and say what became of each.

    A sandbox that cannot run at all is one finding, named ``available``.
    """
    try:
        box.run("")
    except SandboxError as error:
        return [Finding("available", False, str(error))]
    return [
        _look(box, "runs a program", "print(6 * 7)", lambda r: r.stdout == "42\n"),
        _look(box, "no network", _NETWORK, lambda r: "CONNECTED" not in r.stdout),
        _look(box, "file system is read-only", _WRITE, lambda r: "WROTE" not in r.stdout),
        _look(
            box,
            "is not root",
            "import os; print(os.getuid()); os.setuid(0)",
            lambda r: r.status is RunStatus.RUNTIME_ERROR and r.stdout != "0\n",
        ),
        _look(box, "a loop is stopped", "while True: pass", _ends(RunStatus.TIMEOUT)),
        _look(box, "memory is bounded", "x = bytearray(1 << 30)", _ends(RunStatus.MEMORY)),
        _look(box, "output is bounded", "while True: print('x' * 9999)", _ends("output_limit")),
        _left_behind(box),
    ]


def _ends(status: str) -> Callable[[Result], bool]:
    return lambda result: result.status == status


def _look(box: Runner, name: str, code: str, is_fine: Callable[[Result], bool]) -> Finding:
    result = box.run(code, limits=_SECONDS)
    said = " ".join((result.reason or result.stdout).split())
    return Finding(name, is_fine(result), f"{result.status.value}: {said[:120]}".rstrip(": "))


def _left_behind(box: Runner) -> Finding:
    left = box.run(_LEAVE, limits=_SECONDS)
    seen = box.run(_LOOK, limits=_SECONDS)
    fine = seen.stdout == "[]\n[]\n" and left.status is RunStatus.OK
    return Finding("nothing is left behind", fine, " ".join(seen.stdout.split()) or seen.reason)
