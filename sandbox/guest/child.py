"""What the guest's forked child does: give up all rights, then be a Python program."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what signal is made of; no stub
import atexit
import contextlib
import functools
import gc
import io
import linecache
import os
import resource
import struct
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .fork_hooks import give_hooks

REPORT_FD = 3
"""Where a program's process reports to the guest, or, if it is graded, to the host."""

PEER_FD = 4
"""The socket between a candidate and its tests."""

SHARED_FOLDER = "work"
"""The working directory in the temporary folder, if tests look at a program's files."""

_TMP = "/tmp"  # noqa: S108 - the sandbox's own

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
}


def become_program(
    descriptors: Sequence[int | None],
    limits: dict[str, Any],
    uid: int | None,
    *,
    secret: bool = False,
) -> None:
    """Turn this process into one with nothing but its own descriptors and its own user.

    Args:
        descriptors: those that become 0, 1, 2, ...; all others are closed. ``None``: the null
            device, opened anew, since a lock or a flag on an open file is all of its holders'.
        limits: the request's limits, and those that the guest adds.
        uid: the user to become; ``None`` if the sandbox has only one.
        secret: keep other processes of the run from reading this one's memory.
    """
    os.setsid()
    # Moved up first, so that no dup2 below overwrites one that is still wanted.
    moved = [
        os.dup2(os.open(os.devnull, os.O_RDWR) if fd is None else fd, 100 + i)
        for i, fd in enumerate(descriptors)
    ]
    for target, fd in enumerate(moved):
        os.dup2(fd, target)
    os.closerange(len(moved), 4096)
    # Not signal.signal: it makes enums of its arguments, which costs more than all of the above.
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    try:
        file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(file, b"1000")
        os.close(file)
    except OSError:
        pass
    _limit(limits)
    if uid is not None:
        become_user(uid, reads_all=limits["reads_all"])
    # Changing user made the process undumpable, and /proc/self/fd unreadable with it.
    set_dumpable(not secret)
    os.chdir(os.environ["TMPDIR"])
    give_hooks()


def set_environment(folder: str = _TMP) -> None:
    """Make the environment what programs see: the guest's, which every fork has for nothing."""
    os.environ.clear()
    os.environ.update(_ENVIRONMENT, HOME=folder, TMPDIR=folder)
    time.tzset()


def set_dumpable(allowed: bool) -> bool:
    """Let, or stop, others of the same user read this process; say whether that was done."""
    try:
        return bool(prctl()(4, int(allowed), 0, 0, 0) == 0)  # PR_SET_DUMPABLE
    except (ImportError, OSError):
        return False


def become_user(uid: int, *, reads_all: bool = False) -> None:
    """Be another user for good.

    Args:
        uid: the user, and the group.
        reads_all: keep root's right to read every file, and no other: for an unsafe slot whose
            Python only root can read.

    Raises:
        OSError: that is not allowed here.
    """
    if reads_all:
        prctl()(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if reads_all:
        import ctypes

        read = 1 << 2  # CAP_DAC_READ_SEARCH
        version_3 = struct.pack("Ii", 0x20080522, 0)
        if ctypes.CDLL(None).capset(version_3, struct.pack("6I", read, read, read, 0, 0, 0)):
            raise PermissionError("cannot keep the right to read")
        prctl()(47, 2, 2, 0, 0)  # PR_CAP_AMBIENT, to raise it: for what the program starts


@functools.cache
def prctl() -> Callable[..., int]:
    """Return the system call. Found once, before any fork: a page that a fork changes is copied."""
    import ctypes

    found: Callable[..., int] = ctypes.CDLL(None).prctl
    return found


def _limit(limits: dict[str, Any]) -> None:
    bounds = {
        resource.RLIMIT_CORE: 1,  # not 0, at which a crash still starts the machine's handler
        resource.RLIMIT_NOFILE: limits["files"],
        # The guest's own check comes first; this one is the kernel's, in whole seconds.
        resource.RLIMIT_CPU: int(limits["cpu_s"]) + 2,
        resource.RLIMIT_FSIZE: limits["tmp_mib"] << 20,
    }
    if limits["address_space"]:
        bounds[resource.RLIMIT_AS] = limits["address_space"]
    if limits["processes"]:
        bounds[resource.RLIMIT_NPROC] = limits["processes"]
    if limits.get("data"):
        bounds[resource.RLIMIT_DATA] = limits["data"]
    if limits.get("stack"):
        bounds[resource.RLIMIT_STACK] = limits["stack"]
    for which, bound in bounds.items():
        soft, hard = resource.getrlimit(which)
        value = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        # Programs ask for an endless stack, which is memory like any other.
        most = hard if which == resource.RLIMIT_STACK else value
        if (soft, hard) != (value, most):
            resource.setrlimit(which, (value, most))


def open_streams() -> None:
    """Make stdin, stdout and stderr what a fresh interpreter makes them.

    Called in the guest, over a file and pipes like those that a program gets, so that forks have
    them for nothing. The guest itself uses none of them.
    """
    kept = [os.dup(fd) for fd in range(3)]
    stdin = os.memfd_create("stdin")
    reader, writer = os.pipe()
    for target, fd in enumerate((stdin, writer, writer)):
        os.dup2(fd, target)
    for fd, name, mode, errors in (
        (0, "stdin", "r", "surrogateescape"),
        (1, "stdout", "w", "surrogateescape"),
        (2, "stderr", "w", "backslashreplace"),
    ):
        raw = io.FileIO(fd, mode, closefd=False)
        raw.name = f"<{name}>"
        buffer = io.BufferedReader(raw) if fd == 0 else io.BufferedWriter(raw)
        stream = io.TextIOWrapper(buffer, "utf-8", errors, line_buffering=fd == 2)
        stream.mode = mode  # type: ignore[misc]  # as io.open does; fast readers look at it
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)  # a program may restore the originals
    sys.argv = ["main.py"]
    sys.orig_argv = ["python3", "main.py"]
    for target, fd in enumerate(kept):
        os.dup2(fd, target)
    for fd in (*kept, stdin, reader, writer):
        os.close(fd)


def load(code: bytes, name: str, filename: str) -> tuple[types.CodeType, types.ModuleType]:
    """Compile a program and make the module it runs in.

    Raises:
        SyntaxError, ValueError, RecursionError, OverflowError, MemoryError: it does not compile.
    """
    sys.path.insert(0, "")
    sys.setrecursionlimit(1000 + _depth())  # the guest's frames take nothing from a program's
    text = code.decode("utf-8").removeprefix("\ufeff")
    linecache.cache[filename] = (lambda: text,)  # split into lines where a traceback wants them
    compiled = compile(text, filename, "exec", dont_inherit=True)
    module = types.ModuleType(name)
    module.__file__ = filename
    module.__dict__["__builtins__"] = __builtins__
    sys.modules[name] = module
    return compiled, module


def rehearse() -> None:
    """Do in the guest what every program's process does.

    The interpreter's caches, and its adaptive bytecode, are then settled once for all forks.
    """
    path, limit = sys.path[:], sys.getrecursionlimit()
    for _ in range(20):
        compiled, module = load(b"for i in range(2): print(f'{i}', end='')", "rehearsal", "")
        exec(compiled, module.__dict__)  # noqa: S102 - the line above
        flush()
        sys.path[:] = path
    sys.setrecursionlimit(limit)
    del sys.modules["rehearsal"], linecache.cache[""]


def _depth() -> int:
    """Count the frames on the stack, the caller's too: ``exec`` counts as one in its place."""
    frame: types.FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


COMPILE_ERRORS = (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError)


def run_main(code: bytes) -> NoReturn:
    """Run a program as ``__main__`` and end this process as the interpreter would."""
    exit_code = 0
    try:
        compiled, module = load(code, "__main__", "main.py")
    except COMPILE_ERRORS as error:
        note(b"compile")
        show(error, hidden_frames=2)
        os._exit(1)
    try:
        exec(compiled, module.__dict__)  # noqa: S102 - this process is the sandboxed program
    except SystemExit as error:
        exit_code = exit_code_of(error)
    except BaseException as error:  # whatever a program raises ends it, as in an interpreter
        if isinstance(error, MemoryError):
            note(b"memory")
        show(error, hidden_frames=1)
        exit_code = 1
    del compiled, module
    finish(exit_code)


def finish(exit_code: int) -> NoReturn:
    """Wait for threads, call atexit functions, free the program's objects, flush, end."""
    for last in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        try:  # noqa: SIM105 - contextlib.suppress costs twice as much, in every run
            last()
        except BaseException:  # noqa: S110 - it would print this and go on
            pass
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException:  # an interpreter gives 120 as well
            exit_code = exit_code or 120
    _drop_program()
    gc.collect()  # calls ``__del__`` of what is left
    if sys.__stdout__ is not None:
        with contextlib.suppress(BaseException):
            sys.__stdout__.flush()  # a program that has replaced sys.stdout may write to it at exit
    os._exit(exit_code)


def _drop_program() -> None:
    """Flush files that a program did not close, such as ``open(1, "w")``, and let go of it."""
    program = sys.modules.pop("__main__", None)
    for value in list(vars(program).values()) if type(program) is types.ModuleType else ():
        file = value.__self__ if type(value) is types.BuiltinMethodType else value
        if isinstance(file, io.TextIOWrapper | io.BufferedWriter):
            with contextlib.suppress(BaseException):
                file.flush()


def flush() -> None:
    """Bring out what was printed, before a process that may be killed at any time goes on."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()


def exit_code_of(error: SystemExit) -> int:
    """Return the exit code that ``sys.exit`` asked for; a message goes to stderr."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 255
    with contextlib.suppress(BaseException):
        print(error.code, file=sys.stderr)  # noqa: T201 - what sys.exit("text") does
    return 1


def show(error: BaseException, *, hidden_frames: int = 0) -> None:
    """Print a traceback, without the guest's own frames, through the program's excepthook."""
    trace = error.__traceback__
    for _ in range(hidden_frames):
        trace = trace.tb_next if trace is not None else None
    with contextlib.suppress(BaseException):
        if sys.excepthook is sys.__excepthook__:
            # The built-in hook looks for main.py on disk; this one knows its lines.
            traceback.print_exception(type(error), error, trace)
        else:
            sys.excepthook(type(error), error, trace)


def sentence(error: BaseException) -> str:
    """Return an exception's class and text; one that the program wrote may not even have a text."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # also an integer of more digits than Python prints
        return type(error).__name__


def write_all(file: int, data: bytes) -> None:
    """Write to a descriptor, in as many pieces as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def note(word: bytes) -> None:
    """Tell the guest why the program ends. A program may forge it, and only harm itself."""
    with contextlib.suppress(OSError):
        os.write(REPORT_FD, word)
