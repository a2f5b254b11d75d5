"""One episode's container: commands, a shell and files."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..errors import SandboxError
from ..result import RunStatus
from . import files
from .bwrap import View
from .channel import AS_USER, NO_STDIN, SHELL, ChannelBroken, Job
from .docker import SessionContainer
from .limits import SessionLimits

Command = str | Sequence[str]
"""A line for /bin/sh, or a program and its arguments."""

_GRACE_S = 30.0
"""What a supervisor may take beyond a command's last moment: killing and sending."""

_KILL_S = 30.0
_TRANSFER_S = 300.0
"""What files may take to come or go: what runs in the session may stop who moves them."""


class SessionEnded(RuntimeError):
    """A limit of the session's, or what ran in it, ended it: no fault of the sandbox.

    Whoever grades may count it against the policy. A fault of infrastructure is a SandboxError.
    """


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended.

    Attributes:
        status: ``ok`` if it exited with 0; ``timeout``, ``memory`` or ``runtime_error`` if not;
            ``broke_sandbox`` if the session's own processes left it no way to run. All are the
            session's doing: faults of infrastructure raise SandboxError.
        returncode: its exit code, negative for a signal; ``None`` if it did not end by itself.
        stdout: what it printed, at most ``SessionLimits.output_bytes`` bytes.
        stderr: likewise.
        stdout_truncated: bytes of stdout that were dropped.
        stderr_truncated: likewise.
        wall_s: seconds it took.
        reason: a short sentence for people.
    """

    status: RunStatus
    returncode: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: int = 0
    stderr_truncated: int = 0
    wall_s: float = 0.0
    reason: str = ""

    @property
    def timed_out(self) -> bool:
        """Whether its time was over."""
        return self.status is RunStatus.TIMEOUT

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.status is RunStatus.OK

    @property
    def text(self) -> str:
        """Stdout as text, with undecodable bytes escaped."""
        return self.stdout.decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Origin:
    """What commands of a session have in common: variables, first folder and user."""

    limits: SessionLimits
    environment: Mapping[str, str]
    folder: str
    user: str


class Session:
    """A container of its own for one episode. :meth:`Sandbox.session` opens it.

    Any thread may call it. It ends with its ``with`` block, with :meth:`close`, and with the
    process that opened it, however that dies.
    """

    def __init__(
        self,
        place: SessionContainer | View,
        origin: Origin,
        image: str,
        again: Callable[[str], Session],
        saved: Callable[[str | None, str], None],
    ) -> None:
        self._place = place
        self._origin = origin
        self._again = again
        self._saved = saved
        self._channel = place.channel
        self._lock = threading.Lock()
        self._closed = False
        self._ended_by = ""
        self.image = image
        """What it started from."""
        self.folder = origin.folder
        """In which commands start."""
        self._watcher: threading.Thread | None = None

    # -- commands ------------------------------------------------------------------------------

    def exec(
        self,
        command: Command,
        *,
        timeout_s: float | None = 60.0,
        user: str | int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes = b"",
    ) -> ExecResult:
        """Run a command to its end.

        What it leaves in the background lives on, unless the command runs out of time: then all
        of its processes are killed.

        Args:
            command: a line for /bin/sh, or a program and its arguments.
            timeout_s: seconds, or ``None``.
            user: a name or number in the image, or ``"uid:gid"``. Default: the session's.
            env: more variables.
            cwd: folder. Default: the session's.
            stdin: its input.

        Raises:
            SandboxError: the container was lost.
            SessionEnded: its idle or total limit, or its own processes, ended it.
        """
        began = time.monotonic()
        job = self._job("x", command, user, env, cwd, NO_STDIN if not stdin else 0, timeout_s)
        try:
            if stdin:
                with self._faults():
                    self._channel.write(job, stdin, last=True)
            return self._result(job, began, timeout_s)
        finally:
            self._channel.forget(job)

    def start(
        self,
        command: Command,
        *,
        user: str | int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bool = False,
    ) -> Process:
        """Start a command in the background. The arguments are those of :meth:`exec`.

        With ``stdin`` it has one, for :meth:`Process.exchange`.

        Raises:
            SandboxError, SessionEnded: as :meth:`exec` does.
        """
        flags = 0 if stdin else NO_STDIN
        return Process(self, self._job("x", command, user, env, cwd, flags, None))

    def shell(
        self, *, user: str | int | None = None, env: Mapping[str, str] | None = None
    ) -> Shell:
        """Open a shell that keeps its folder, variables and jobs between commands.

        It is bash if the image has it, else /bin/sh.

        Raises:
            SandboxError, SessionEnded: as :meth:`exec` does.
        """
        return Shell(self, user, env)

    def kill_all(self) -> None:
        """Kill every process of the session. Its files stay.

        Raises:
            SandboxError: something is left, or the container was lost.
        """
        with self._faults():
            left = self._channel.kill_all(_KILL_S)
        if left:
            raise SandboxError(f"{left} processes of a session do not die")

    # -- files ---------------------------------------------------------------------------------

    def put(
        self,
        path: str,
        content: bytes | str | Path,
        *,
        mode: int | None = None,
        user: str | int | None = None,
        as_user: bool = False,
    ) -> None:
        """Write a file or a folder of this machine, with its modes.

        A file replaces what has its name. Folders on the way are made. No symbolic link on the
        way is followed, and none is sent. Root writes, whoever is the owner.

        Args:
            path: absolute path in the session.
            content: bytes or text of a file, or a path here.
            mode: of the file. Default: 0644, or what it has here.
            user: the owner, as for :meth:`exec`. Default: the session's user.
            as_user: write with the owner's rights, not with root's.

        Raises:
            OSError: it cannot be written there.
            ValueError: the folder here holds links or special files, or the path is relative.
            SandboxError, SessionEnded: as :meth:`exec` does.
        """
        flags = AS_USER if as_user else 0
        job = self._job("p", [_absolute(path)], user, None, "/", flags, _TRANSFER_S)
        try:
            with self._faults():
                for piece in files.pack(content, mode):
                    self._channel.write(job, piece, last=False)
                self._channel.write(job, b"", last=True)
            self._transferred(job, path)
        finally:
            self._channel.forget(job)

    def get(self, path: str, *, limit_mib: float = 64.0, user: str | int | None = None) -> bytes:
        """Return a file's bytes.

        Args:
            path: absolute path in the session.
            limit_mib: how large it may be.
            user: who reads, as for :meth:`exec`. Default: root.

        Raises:
            OSError: there is none, it is no plain file, a symbolic link is on the way, or it is
                larger than the limit.
            SandboxError, SessionEnded: as :meth:`exec` does, or if this machine's disk is full.
        """
        with files.Parcel(limit_mib) as parcel:
            self._fetch("g", path, parcel, user)
            return parcel.file(path)

    def get_dir(self, path: str, into: Path | str, *, limit_mib: float = 256.0) -> list[str]:
        """Copy what a folder holds into a folder here, with modes, and return what was left out.

        Left out are symbolic links, special files, what cannot be read, and names that this
        machine cannot have.

        Args:
            path: absolute path of a folder in the session.
            into: a folder, which is made if it is not there.
            limit_mib: of all files together.

        Raises:
            OSError: it is no folder, a symbolic link is on the way, it is larger than the limit,
                or ``into`` has such names already.
            SandboxError, SessionEnded: as :meth:`exec` does, or if this machine's disk is full.
        """
        with files.Parcel(limit_mib) as parcel:
            self._fetch("G", path, parcel)
            return parcel.unpack(path, Path(into))

    def _fetch(
        self, kind: str, path: str, parcel: files.Parcel, user: str | int | None = None
    ) -> None:
        user = 0 if user is None else user
        line, most = [_absolute(path)], parcel.most
        job = self._job(kind, line, user, None, "/", NO_STDIN, _TRANSFER_S, most, parcel.stream)
        try:
            self._transferred(job, path)
            parcel.whole = not job.cut[0]
        finally:
            self._channel.forget(job)

    def _transferred(self, job: Job, path: str) -> None:
        """Raise if files did not come or go."""
        with self._faults():
            self._await(job, _TRANSFER_S)
        if (job.how == "x" and job.code == 0) or job.cut[0]:
            return
        if job.timed_out:
            raise OSError(errno.ETIMEDOUT, f"it was not moved in {_TRANSFER_S:g} s", path)
        code = job.code if job.how == "x" else 0
        said = _written(job, 1).decode("utf-8", "backslashreplace").partition(": ")[0]
        raise OSError(code or 5, f"{os.strerror(code or 5)} at {said or 'its transfer'!r}", path)

    # -- branching -----------------------------------------------------------------------------

    def snapshot(self, name: str | None = None) -> str:
        """Save the session's files as an image, and return what :meth:`Sandbox.session` takes.

        Processes are not saved. The image goes with the sandbox unless it has a name.

        Raises:
            SandboxError: it cannot be saved.
        """
        self._check_open()
        image = self._place.snapshot(name)
        self._saved(name, image)
        return image

    def fork(self) -> Session:
        """Open a session with a copy of this one's files, and nothing of its processes.

        Raises:
            SandboxError: as :meth:`snapshot` does.
        """
        return self._again(self.snapshot())

    # -- its end -------------------------------------------------------------------------------

    def close(self) -> None:
        """End the session and remove it. Calling it twice does no harm."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._place.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else self._channel.ended or "open"
        return f"Session({self.image[:19]!r}, {state})"

    def _watch_disk(self) -> None:
        """End the session if it has written more than it may."""
        channel = self._channel
        while channel.disk_grew.wait() and not channel.ended:
            channel.disk_grew.clear()
            with contextlib.suppress(SandboxError):  # the next command finds it out
                self._ended_by = self._place.over_quota(self._origin.limits.disk_mib)
            if self._ended_by:
                self._place.end()
                return

    # -- jobs ----------------------------------------------------------------------------------

    def _job(
        self,
        kind: str,
        command: Command,
        user: str | int | None,
        env: Mapping[str, str] | None,
        cwd: str | None,
        flags: int,
        timeout_s: float | None,
        output_bytes: int | None = None,
        into: Any = None,
    ) -> Job:
        self._check_open()
        with self._lock:
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch_disk, daemon=True)
                self._watcher.start()
        line = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        if not line:
            raise ValueError("a command needs at least a program")
        _check_timeout(timeout_s)
        limits = self._origin.limits
        with self._faults():
            return self._channel.start(
                kind,
                line,
                {**self._origin.environment, **checked_environment(env)},
                user=self._origin.user if user is None else str(user),
                folder=cwd or self._origin.folder,
                flags=flags,
                timeout_s=timeout_s,
                output_bytes=limits.output_bytes if output_bytes is None else output_bytes,
                file_bytes=limits.disk_mib << 20,
                into=into,
            )

    def _await(
        self,
        job: Job,
        timeout_s: float | None,
        done: Callable[[Job], bool] = lambda job: bool(job.how),
    ) -> None:
        """Wait for the supervisor's word, and no longer than it can take.

        Raises:
            ChannelBroken: it did not come.
        """
        if not job.wait(done, None if timeout_s is None else timeout_s + _GRACE_S):
            raise ChannelBroken("the supervisor did not report in time")
        if job.how == "lost":
            raise ChannelBroken(self._channel.ended)

    def _result(self, job: Job, began: float, timeout_s: float | None) -> ExecResult:
        with self._faults():
            self._await(job, timeout_s)
        status, reason = RunStatus.RUNTIME_ERROR, ""
        code: int | None = job.code if job.how == "x" else -job.code
        if job.timed_out:
            status, reason, code = RunStatus.TIMEOUT, f"it did not end in {timeout_s:g} s", None
        elif job.how == "f":
            status, code = RunStatus.BROKE_SANDBOX, None
            reason = "the session's processes leave no room for another"
        elif job.oom and (job.how == "s" or job.code == 137):
            status, reason = RunStatus.MEMORY, "the kernel killed it for the session's memory"
        elif job.how == "x" and job.code == 0:
            status = RunStatus.OK
        else:
            reason = f"exit code {job.code}" if job.how == "x" else f"signal {job.code}"
        return _exec_result(job, status, code, began, reason)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the session is closed: open a new one")
        if self._ended_by:
            raise SessionEnded(self._ended_by)

    @contextlib.contextmanager
    def _faults(self) -> Any:
        """Turn a supervisor that is gone into the error of whoever ended it."""
        try:
            yield
        except ChannelBroken as error:
            if self._channel.expired:
                limit = getattr(self._origin.limits, f"{self._channel.expired}_s")
                self._ended_by = f"it ended after {limit:g} s, its limit {self._channel.expired}_s"
            if self._closed:
                raise ValueError("the session is closed: open a new one") from error
            why = "" if self._ended_by else self._place.infrastructure_failure()
            if not why:  # other threads find it lost by the line after
                self._ended_by = self._ended_by or f"its own processes ended it: {error}"
            self._place.end()
            if why:
                raise SandboxError(f"the session was lost: {why}") from error
            raise SessionEnded(self._ended_by) from error


class Process:
    """A command that runs in the background of a session."""

    def __init__(self, session: Session, job: Job) -> None:
        self._session = session
        self._job = job
        self._began = time.monotonic()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self._job.how

    def log(self) -> bytes:
        """Return what it has printed so far, stdout first, then stderr."""
        return _written(self._job, 0) + _written(self._job, 1)

    def exchange(self, data: bytes, take: Callable[[bytes], bool], *, timeout_s: float) -> bool:
        """Write to its stdin, and read lines that it prints until one is taken.

        What it printed before is dropped: ``SessionLimits.output_bytes`` bounds each exchange.

        Args:
            data: the input. It must have been started with ``stdin``.
            take: called with each whole line; True for the last one that is wanted.
            timeout_s: seconds for all.

        Returns:
            Whether a line was taken. If not it ended, ran out of time, or printed too much.

        Raises:
            SandboxError, SessionEnded: as :meth:`Session.exec` does.
        """
        job, session = self._job, self._session
        position, rest, taken = 0, bytearray(), False

        def heard(job: Job) -> bool:
            nonlocal position, rest, taken
            output = job.outputs[0]
            output.seek(position)
            new = output.read()
            position += len(new)
            rest += new
            if b"\n" in new:
                *lines, last = bytes(rest).split(b"\n")
                rest, taken = bytearray(last), taken or any(map(take, lines))
            return taken or bool(job.how) or position >= session._origin.limits.output_bytes

        session._check_open()
        if job.how and job.how != "lost":
            return False
        with session._faults():
            session._channel.next_command(job, None)
            session._channel.write(job, data, last=False)
            job.wait(heard, timeout_s)
            if job.how == "lost":
                raise ChannelBroken(session._channel.ended)
        return taken

    def wait(self, *, timeout_s: float | None = None) -> ExecResult:
        """Wait for its end.

        Raises:
            TimeoutError: it still runs.
            SandboxError, SessionEnded: as :meth:`Session.exec` does.
        """
        if not self._job.wait(lambda job: bool(job.how), timeout_s):
            raise TimeoutError(f"it has not ended in {timeout_s:g} s")
        return self._session._result(self._job, self._began, None)

    def kill(self) -> ExecResult:
        """Kill it and all that it started.

        Raises:
            SandboxError, SessionEnded: as :meth:`Session.exec` does.
        """
        with self._session._faults():
            self._session._channel.kill(self._job)
            self._session._await(self._job, _KILL_S)
        return self.wait()


# The command's own stdin is empty: the shell's holds the commands. Descriptor 9 carries how it
# ended, and no program inherits it.
_LINE = "{ eval %s; } </dev/null 9>&-; echo $? >&9\n"
_START = ["/bin/sh", "-c", "command -v bash >/dev/null && exec bash --norc --noprofile; exec sh"]


class Shell:
    """A shell that stays: its folder, variables, functions and jobs are there for the next line.

    A line that runs out of time is killed with all that it started; the shell and earlier jobs
    go on. If the shell itself ends, by ``exit`` or otherwise, the next line starts a new one.
    """

    def __init__(
        self, session: Session, user: str | int | None, env: Mapping[str, str] | None
    ) -> None:
        self._session = session
        self._user = user
        self._env = checked_environment(env)
        self._lock = threading.Lock()
        self._job = self._open()

    def _open(self) -> Job:
        return self._session._job("x", _START, self._user, self._env, None, SHELL, None)

    def run(self, line: str, *, timeout_s: float | None = 60.0) -> ExecResult:
        """Run a line, or several, in the shell. One thread at a time.

        Raises:
            SandboxError, SessionEnded: as :meth:`Session.exec` does.
        """
        session, channel = self._session, self._session._channel
        if "\0" in line:
            raise ValueError("a command holds a zero byte")
        _check_timeout(timeout_s)
        quoted = "'" + line.replace("'", "'\\''") + "'"
        data = (_LINE % quoted).encode("utf-8", "surrogateescape")
        with self._lock:
            session._check_open()
            if self._job.how and self._job.how != "lost":
                channel.forget(self._job)
                self._job = self._open()
            job, began = self._job, time.monotonic()
            with session._faults():
                channel.next_command(job, timeout_s)
                channel.write(job, data, last=False)
                session._await(
                    job, timeout_s, lambda job: bool(job.how) or job.report.endswith(b"\n")
                )
            if job.how:
                return session._result(job, began, timeout_s)
            return _shell_result(job, began, timeout_s)


def _shell_result(job: Job, began: float, timeout_s: float | None) -> ExecResult:
    last = job.report.split()[-1:]
    code = int(last[0]) if last and last[0].isdigit() else None  # programs may write there too
    status = RunStatus.OK if code == 0 else RunStatus.RUNTIME_ERROR
    reason = "" if code == 0 else f"exit code {code}"
    if job.timed_out:
        status, code, reason = RunStatus.TIMEOUT, None, f"it did not end in {timeout_s:g} s"
    return _exec_result(job, status, code, began, reason)


def _exec_result(
    job: Job, status: RunStatus, code: int | None, began: float, reason: str
) -> ExecResult:
    out, err = job.cut
    took = time.monotonic() - began
    return ExecResult(status, code, _written(job, 0), _written(job, 1), out, err, took, reason)


def _written(job: Job, which: int) -> bytes:
    with job.changed:
        output = job.outputs[which]
        output.seek(0)
        return output.read()


def _check_timeout(timeout_s: float | None) -> None:
    if timeout_s is not None and not timeout_s > 0:
        raise ValueError(f"timeout_s must be positive, or None, got {timeout_s!r}")


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"a path in a session begins with /, got {path!r}")
    return path


def checked_environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """Check variables, and return a copy.

    Raises:
        ValueError: one has no name that a variable can have.
    """
    for name, value in (env or {}).items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"no variable can be {name!r}={value!r:.60}")
    return dict(env or {})
