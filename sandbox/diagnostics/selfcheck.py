"""Check the isolation of a sandbox by programs that try to break it (``programs.toml``)."""

from __future__ import annotations

import functools
import importlib.resources
import platform
import tomllib
from dataclasses import replace
from typing import Protocol

from ..errors import SandboxError
from ..limits import Limits
from ..result import CheckResult, Result, RunStatus


class ProgramRunner(Protocol):
    """The part of a Sandbox that is checked."""

    limits: Limits

    def run(self, code: str, stdin: str = "", *, limits: Limits | None = None) -> Result:
        """Run one program."""


_NUMBERS = {"x86_64": (272, 101, 250, 323), "aarch64": (97, 117, 219, 282)}
_BROKEN = "Run no untrusted program here. Use Docker, and report this with the output of --json."
_HANDLER = (
    "sysctl -w kernel.core_pattern=core, or start the sandbox where the hard limit of core files "
    "(ulimit -H -c) is not 0: a crash starts this handler as root of the machine."
)
_LARGE_BUFFERS = (
    "sysctl -w net.core.rmem_default=212992 net.core.wmem_default=212992: kernels that do not "
    "count this as the program's memory give it on top, for each socket."
)
_OWN_USER = "Run as root, or use Docker: then every run is a user of its own."
_WHOLE_MEMORY = (
    "Use Docker; or run as root, or below systemd-run --user --scope -p Delegate=yes, so that a "
    "control group can be made; or set memory_mib times pids with that in mind."
)
_NO_FILTER = (
    "bubblewrap has a filter for x86_64 and aarch64 only: use Docker, which has one for every "
    "machine. If this is Docker, run no untrusted program here, and report this."
)


def self_check(sandbox: ProgramRunner) -> list[CheckResult]:
    """Run programs that try to break the isolation, and report each attempt.

    A sandbox that cannot run at all is one result, named ``runs programs``.
    """
    # A busy machine makes the same work take several times the CPU time.
    limits = Limits(
        cpu_s=5.0,
        wall_s=20.0,
        memory_mib=min(64, sandbox.limits.memory_mib),
        pids=sandbox.limits.pids,
    )

    def silent(name: str, code: str, *bad: str, remedy: str = _BROKEN) -> CheckResult:
        """Check that a program ends properly and prints none of these words."""
        result = sandbox.run(code, limits=limits)
        fine = result.status is RunStatus.OK and not any(w in result.stdout for w in bad)
        return CheckResult(name, fine, _said(result), "" if fine else remedy)

    def stopped(name: str, code: str, status: RunStatus, limits: Limits = limits) -> CheckResult:
        result = sandbox.run(code, limits=limits)
        fine = result.status is status
        return CheckResult(name, fine, result.reason or _said(result), "" if fine else _BROKEN)

    try:
        first = sandbox.run("import sys; print(sys.version.split()[0], 6 * 7)")
    except SandboxError as error:
        return [CheckResult("runs programs", False, str(error), "See the lines above.")]
    if not first.stdout.endswith(" 42\n"):
        remedy = "The image needs Python 3.11 or later as python3."
        return [CheckResult("runs programs", False, _said(first), remedy)]
    numbers, calls = _NUMBERS.get(platform.machine()), _program("calls")
    filtered = f"NUMBERS = {numbers}\n{calls}"
    return [
        CheckResult("runs programs", True, f"Python {first.stdout.split()[0]}"),
        _users(sandbox),
        silent("no rights", _program("rights"), "HOLDS", "GAINS"),
        *([silent("system calls", filtered, "ALLOWED", remedy=_NO_FILTER)] if numbers else []),
        silent("no network", _program("network"), "CONNECTED"),
        silent("files", _program("write"), "WROTE"),
        silent("other processes", _program("see"), "SEES", "READS"),
        stopped("CPU time", "while True: pass", RunStatus.TIMEOUT, replace(limits, cpu_s=1.0)),
        stopped("output", "while True: print('x' * 9999)", RunStatus.OUTPUT_LIMIT),
        stopped("memory, one process", f"x = b'x' * ({limits.memory_mib} << 21)", RunStatus.MEMORY),
        _whole_memory(sandbox),
        stopped("sockets", _program("sockets"), RunStatus.MEMORY),
        _buffers(sandbox),
        _crashes(sandbox),
        _processes(sandbox, limits),
        _left_behind(sandbox, limits),
    ]


@functools.cache
def _program(name: str) -> str:
    file = importlib.resources.files(__package__) / "programs.toml"
    return str(tomllib.loads(file.read_text("utf-8"))[name])


def _said(result: Result) -> str:
    said = " ".join(result.stdout.split())
    if result.status is RunStatus.OK and said:
        return said[:200]
    return f"{result.status.value}: {result.reason or said}"[:200].rstrip(": ")


def _users(sandbox: ProgramRunner) -> CheckResult:
    """Check that each run has a user of its own, and none is root."""
    first, second = (sandbox.run(_program("user")).stdout.split() for _ in range(2))
    if "ROOT" in first or not first or first[0] == "0":
        return CheckResult("users", False, f"programs are root: {first}", _BROKEN)
    if first == second:
        said = f"all programs of a slot are user {first[0]}; checks between runs part them"
        return CheckResult("users", True, said, _OWN_USER)
    return CheckResult("users", True, "each run is a user of its own, and none is root")


def _whole_memory(sandbox: ProgramRunner) -> CheckResult:
    """Run eight processes that together want twice the memory."""
    most = sandbox.limits.memory_mib
    limits = replace(sandbox.limits, cpu_s=5.0, wall_s=10.0)  # more time than any machine needs
    result = sandbox.run(_program("many"), str((most << 20) // 4), limits=limits)
    name = "memory, whole program"
    if result.stdout != "8\n":
        return CheckResult(name, True, f"eight processes share {most} MiB")
    said = f"each process may have {most} MiB, up to {sandbox.limits.pids} processes"
    return CheckResult(name, True, said, _WHOLE_MEMORY)


def _buffers(sandbox: ProgramRunner) -> CheckResult:
    """Check how much the kernel keeps for one socket: the machine's setting, not ours."""
    kib = _said(sandbox.run(_program("buffers")))
    said = f"{kib} KiB for each of {sandbox.limits.files} sockets"
    small = kib.isdigit() and int(kib) <= 1024
    return CheckResult("socket buffers", True, said, "" if small else _LARGE_BUFFERS)


def _crashes(sandbox: ProgramRunner) -> CheckResult:
    """Check what the kernel starts if a program crashes."""
    said = _said(sandbox.run(_program("crash")))
    return CheckResult("crashes", True, said, "" if said == "a crash starts nothing" else _HANDLER)


def _processes(sandbox: ProgramRunner, limits: Limits) -> CheckResult:
    result = sandbox.run(_program("forks"), limits=limits)
    made = result.stdout.strip()
    fine = made.isdigit() and int(made) <= limits.pids + 2
    said = f"at most {limits.pids}" if fine else f"it made {made or _said(result)}"
    return CheckResult("processes", fine, said, "" if fine else _BROKEN)


def _left_behind(sandbox: ProgramRunner, limits: Limits) -> CheckResult:
    left = sandbox.run(_program("leave"), limits=limits)
    seen = sandbox.run(_program("look"), limits=limits)
    fine = seen.stdout == "[]\n[]\n" and left.status is RunStatus.OK and left.orphans == 1
    said = "no file, and no process: the one that was left was killed" if fine else _said(seen)
    return CheckResult("left behind", fine, said, "" if fine else _BROKEN)
