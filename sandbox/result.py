"""What became of a program, and what became of its tests."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal


class RunStatus(StrEnum):
    """How a program ended.

    All but the last are the program's doing. ``ok`` says that it ended by itself with exit
    code 0, never that it is right: ``os._exit(0)`` is ok too.
    """

    OK = "ok"
    RUNTIME_ERROR = "runtime_error"
    COMPILE_ERROR = "compile_error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"
    BROKE_SANDBOX = "broke_sandbox"
    SANDBOX_ERROR = "sandbox_error"


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one program.

    Attributes:
        status: how it ended.
        stdout: what it printed, at most ``Limits.output_bytes`` bytes, undecodable bytes escaped.
        stderr: likewise.
        exit_code: its exit code; ``None`` if a signal or the sandbox ended it.
        signal: the number of the signal that ended it, or ``None``.
        cpu_s: CPU seconds it used.
        wall_s: wall-clock seconds it took.
        memory_mib: peak resident memory of its largest process, MiB.
        orphans: processes it left behind, all killed.
        attempts: runs it took to get this result; more than one after a fault of the sandbox,
            none if the program's text is larger than half of its memory.
        backend: ``docker`` or ``bwrap``, or ``process (UNSAFE)``.
        image: digest of the image it ran in; empty under bwrap, which shows the host's Python.
        host: the daemon's address where the sandbox has several; else empty.
        reason: a short sentence for people.
        stdout_truncated: it printed more than was kept.
        stderr_truncated: likewise.
    """

    status: RunStatus
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    signal: int | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    memory_mib: float = 0.0
    orphans: int = 0
    attempts: int = 1
    backend: str = ""
    image: str = ""
    host: str = ""
    reason: str = ""
    stdout_truncated: bool = False
    stderr_truncated: bool = False

    @property
    def strays(self) -> int:
        """``orphans`` under its name of 0.2."""
        message = "Result.strays is called orphans; the former name goes with the next version"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.orphans

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Check:
    """One program held against its tests.

    Attributes:
        status: how the program ended over all of them. ``ok`` means that it ended properly,
            whether or not the answers were right.
        passed: tests that it passed.
        total: tests that there are.
        reason: the first failure, in a short sentence; empty where all passed.
        stdout: what the program printed in the run that decided.
        stderr: likewise.
        failed: number of the first case or test that it failed, from 0; ``None`` if it passed
            all.
    """

    status: RunStatus
    passed: int
    total: int
    reason: str = ""
    stdout: str = ""
    stderr: str = ""
    failed: int | None = None

    @property
    def solved(self) -> bool:
        """Every test passed, and there was at least one."""
        return self.status is RunStatus.OK and self.total > 0 and self.passed == self.total

    @property
    def share(self) -> float:
        """Tests passed, as a share of all: from 0.0 to 1.0, and 0.0 where there were none."""
        return self.passed / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing looked at.

    Attributes:
        name: what should be the case.
        ok: whether it is, at least so far that hostile programs are held.
        detail: what was seen.
        remedy: what to do about what is missing; empty where nothing is.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""

    @property
    def level(self) -> Literal["ok", "warning", "no"]:
        """``warning``: it holds, but not as well as it could."""
        if not self.ok:
            return "no"
        return "warning" if self.remedy else "ok"
