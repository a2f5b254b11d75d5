"""A program under way: started for one episode, watched, read and ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..sandbox import RunStatus, Session, SessionEnded
from ..sandbox.trees import remove_tree
from ..verifiers import Status, Verdict
from ..verifiers.visible import one_line

OUTPUT_BYTES = 2**20
WORK = "/episode"
"""The working directory of programs in a sandbox."""
_PROMPT = "prompt.txt"
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def fill(folder: Path, files: Mapping[str, str], copied: Sequence[Path], prompt: str) -> None:
    """Write a program's working directory."""
    for path in copied:
        copy = shutil.copytree if path.is_dir() else shutil.copy2
        copy(path, folder / path.resolve().name)
    for name, text in {**files, _PROMPT: prompt}.items():
        (folder / name).write_text(text, encoding="utf-8")


class LocalProgram:
    """A process of this machine, with its files and its network: isolated from nothing.

    Args:
        folder: that it owns and removes; its working directory is ``work`` in it.
        command: the program and its arguments.
        env: environment variables beside those of this process.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, folder: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._folder, self._work = folder, folder / "work"
        direct = ",".join(filter(None, [os.environ.get("NO_PROXY"), env["NO_PROXY"]]))
        with (
            (self._work / _PROMPT).open("rb") as given,
            (folder / "output").open("wb") as printed,
        ):
            self._process = subprocess.Popen(
                list(command),
                cwd=self._work,
                env={**os.environ, **env, "NO_PROXY": direct, "no_proxy": direct},
                stdin=given,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def running(self) -> bool:
        """Return whether it has not ended."""
        return self._process.poll() is None

    def fault(self) -> Verdict | None:
        """Return what its own end is worth: ``None`` if it ended well."""
        code = self._process.wait()
        killed = -code if code < 0 else code - 128
        if killed in _FROM_OUTSIDE:
            why = f"the program was killed from outside (signal {killed})"
            return Verdict.fault(Status.SANDBOX_ERROR, why)
        with (self._folder / "output").open("rb") as printed:
            printed.seek(max(0, printed.seek(0, os.SEEK_END) - 2000))
            return _failed(str(code), printed.read()) if code else None

    def stop(self) -> None:
        """End its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def read(self, name: str) -> str | None:
        """Return the beginning of a file; links are not followed, nor are pipes waited for."""
        try:
            file = os.open(self._work / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(file, "rb") as opened:
            try:
                return opened.read(OUTPUT_BYTES).decode(errors="replace")
            except OSError:
                return None

    def close(self) -> None:
        """End its process group, and remove its files."""
        self.stop()
        remove_tree(self._folder)


class SandboxProgram:
    """A program in a session of the sandbox, which reaches the gateway and nothing else.

    Args:
        session: that it owns and closes.
        files: what its working directory holds.
        command: the program and its arguments.
        env: environment variables.
        user: who runs it; by default the session's.

    Raises:
        SandboxError: the session was lost.
    """

    def __init__(
        self,
        session: Session,
        files: Path,
        command: Sequence[str],
        env: Mapping[str, str],
        user: str | int | None = None,
    ) -> None:
        self.session = session
        with tempfile.TemporaryDirectory() as root:
            shutil.copytree(files, root + WORK)
            session.put("/", Path(root), user=user)
        line = ["/bin/sh", "-c", f'exec "$@" <{_PROMPT}', "sh", *command]
        self._process = session.start(line, env=env, cwd=WORK, user=user)

    def running(self) -> bool:
        """Return whether it has not ended."""
        return self._process.running

    def fault(self) -> Verdict | None:
        """Return what its end is worth: whatever ends it in there is its own doing."""
        try:
            end = self._process.wait()
        except SessionEnded as error:
            return Verdict.wrong(str(error), status=Status.BROKE_SANDBOX)
        if end.status in (RunStatus.OK, RunStatus.RUNTIME_ERROR):
            return None if end.ok else _failed(str(end.returncode), end.stdout + end.stderr)
        return Verdict.wrong(end.reason, status=Status(end.status.value))

    def stop(self) -> None:
        """End its processes."""
        with contextlib.suppress(SessionEnded):
            self.session.kill_all()

    def read(self, name: str) -> str | None:
        """Return a file of at most 1 MiB; a path begins at the working directory, or with /."""
        try:
            path = name if name.startswith("/") else f"{WORK}/{name}"
            return self.session.get(path, limit_mib=1).decode(errors="replace")
        except (OSError, SessionEnded):
            return None

    def close(self) -> None:
        """End the session."""
        self.session.close()


Program = LocalProgram | SandboxProgram
"""A running program, wherever it runs."""


def _failed(code: str, printed: bytes) -> Verdict:
    shown = one_line(printed[-300:].decode(errors="replace"))
    return Verdict.wrong(f"the program failed ({code}): {shown}", status=Status.RUNTIME_ERROR)
