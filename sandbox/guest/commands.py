"""Programs in other languages than Python: their commands, run in place of an interpreter.

A compiler runs under a process that waits for it and then sends what it made over the report
descriptor. Neither the compiler nor any program has that descriptor, so none can pretend that its
language is missing here, nor hand the host another program than its own.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from typing import Any, NoReturn

from .child import REPORT_FD, write_all

MISSING = b"missing"
"""What the report says where the command's executable is not here."""

EXIT_MISSING = 127
_EXIT_UNUSABLE = 126

_OVERHEAD = 32 << 20  # bytes: the loader, shared libraries and locale of a program
_MFD_EXEC = 0x10  # Linux 6.3; os has no name for it


def bounds(limits: dict[str, Any], request: dict[str, Any], bounded: bool) -> dict[str, Any]:
    """Return the limits of such a program: its memory has no interpreter of the guest.

    Args:
        limits: those of the request.
        request: the request, with its work under ``exec``.
        bounded: a cgroup bounds its memory already.
    """
    memory = 0 if bounded else (limits["memory_mib"] << 20) + _OVERHEAD
    by_data = request["exec"]["reserves"]
    return {
        **limits,
        # RLIMIT_FSIZE bounds memory files as well, and one of them is the program.
        "tmp_mib": max(limits["tmp_mib"], (request["blobs"][0] >> 20) + 1),
        "address_space": 0 if by_data else memory,
        "data": memory if by_data else 0,
    }


def run_program(code: bytes, request: dict[str, Any]) -> NoReturn:
    """Become the program: a script under its interpreter, or a compiled one from memory."""
    work = request["exec"]
    command = work["command"]
    os.set_inheritable(REPORT_FD, False)
    if not command:
        _become(_executable(code), [work["file"]])
    path = _found(command[0])
    _write(work["file"], code)
    _become(path, command)


def compile_program(code: bytes, request: dict[str, Any]) -> NoReturn:
    """Run the compiler, and report the file that it makes."""
    work = request["exec"]
    command = work["command"]
    os.set_inheritable(REPORT_FD, False)
    path = _found(command[0])
    _write(work["file"], code)
    pid = os.fork()
    if pid == 0:
        _become(path, command)
    exit_code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if exit_code < 0:
        _end_likewise(-exit_code)
    if exit_code == 0:
        _report(work["program"])
    os._exit(exit_code or 0)


def _found(name: str) -> str:
    """Return the executable of this name; if there is none, report that to the guest and end."""
    folders = [""] if "/" in name else os.environ["PATH"].split(":")
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    os.write(REPORT_FD, MISSING)
    os._exit(EXIT_MISSING)


def _write(name: str, data: bytes) -> None:
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    write_all(file, data)
    os.close(file)


def _executable(code: bytes) -> int:
    """Return a memory file to execute: /tmp forbids that, and nobody can change this one."""
    try:
        file = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | _MFD_EXEC)
    except OSError:  # an older kernel, where every memory file may be executed
        file = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    write_all(file, code)
    import fcntl

    fcntl.fcntl(
        file,
        fcntl.F_ADD_SEALS,
        fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL,
    )
    return file


def _become(program: str | int, command: list[str]) -> NoReturn:
    # Python ignores these, and what is ignored stays so in the next program.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(ignored, signal.SIG_DFL)
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        # Else malloc reserves 64 MiB for each thread, and the next thread finds no room.
        os.environ["MALLOC_ARENA_MAX"] = "1"
    try:
        os.execve(program, command, os.environ)  # noqa: S606 - this process is sandboxed
    except OSError as error:
        # A program may be made such that no kernel runs it: that is its own doing.
        with contextlib.suppress(OSError):
            os.write(2, f"cannot be executed: {error.strerror}\n".encode())
    os._exit(_EXIT_UNUSABLE)


def _end_likewise(number: int) -> NoReturn:
    """End by the signal that ended the compiler."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(_EXIT_UNUSABLE)


def _report(name: str) -> None:
    """Send a file over the report descriptor. A compiler that made none made nothing."""
    try:
        # What is no plain file is not waited for.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        os.write(2, f"the compiler made no {name}: {error.strerror}\n".encode())
        os._exit(1)
    with open(file, "rb", closefd=True) as made:
        while piece := made.read(1 << 16):
            write_all(REPORT_FD, piece)
