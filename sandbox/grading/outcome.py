"""From the kernel's facts to a status."""

from __future__ import annotations

import signal

from ..backends.slot import Reply
from ..limits import Limits
from ..result import Result, RunStatus


def run_result(reply: Reply, limits: Limits) -> Result:
    """Return the result of a program that ran by itself."""
    code = reply.exits[0]
    status, reason = ended(reply, limits, code)
    return Result(
        status,
        stdout=text(reply.outputs[0]),
        stderr=text(reply.outputs[1]),
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        cpu_s=reply.cpu_s,
        wall_s=reply.wall_s,
        memory_mib=reply.memory_mib,
        orphans=reply.orphans,
        reason=reason,
        stdout_truncated=reply.cut[0],
        stderr_truncated=reply.cut[1],
    )


def ended(reply: Reply, limits: Limits, code: int | None) -> tuple[RunStatus, str]:
    """Return the status of a run whose main process ended with this code, and a reason."""
    if reply.oom and code != 0:
        return RunStatus.MEMORY, f"it used more than {limits.memory_mib} MiB"
    if reply.end == "wall":
        return RunStatus.TIMEOUT, f"it took more than {limits.wall_seconds:g} s"
    killed_for_time = code is not None and code in (-signal.SIGXCPU, -signal.SIGKILL)
    if reply.end == "cpu" or (killed_for_time and reply.cpu_s >= limits.cpu_s):
        return RunStatus.TIMEOUT, f"it used more than {limits.cpu_s:g} s of CPU time"
    if reply.end == "output":
        return RunStatus.OUTPUT_LIMIT, f"it wrote more than {limits.output_bytes} bytes"
    excess = {
        "sockets": f"{limits.files} sockets",
        "inodes": "4096 files",
        "locks": "a thousand file locks",
    }.get(reply.end)
    if excess is not None:
        return RunStatus.MEMORY, f"it had more than {excess}"
    if code == 0:
        return RunStatus.OK, ""
    if reply.note == "memory":
        return RunStatus.MEMORY, "it ended with a MemoryError"
    if reply.note == "compile":
        return RunStatus.COMPILE_ERROR, _last_line(reply.outputs[1])
    if code is not None and code < 0:
        return RunStatus.RUNTIME_ERROR, f"signal {-code} ended it"
    return RunStatus.RUNTIME_ERROR, _last_line(reply.outputs[1]) or f"it exited with code {code}"


def text(data: bytes) -> str:
    """Decode what a program wrote, escaping undecodable bytes."""
    return data.decode("utf-8", "backslashreplace")


def _last_line(data: bytes) -> str:
    lines = text(data[-2000:]).strip().splitlines()
    return lines[-1][:300] if lines else ""
