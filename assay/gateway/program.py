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
from typing import Protocol

OUTPUT_BYTES = 2**20


class Program(Protocol):
    """A running program, wherever it runs."""

    def poll(self) -> int | None:
        """Return its exit code, -N if signal N ended it; ``None`` while it runs."""
        ...

    def read(self, name: str) -> str | None:
        """Return a file of its working directory as text; ``None`` if it is missing."""
        ...

    def output(self) -> str:
        """Return the end of what it printed."""
        ...

    def close(self) -> None:
        """End it and all that it started, and remove its files."""
        ...


class LocalProgram:
    """A process of this machine, with its files and its network: isolated from nothing.

    It runs in an empty directory of its own.

    Args:
        command: the program and its arguments.
        env: environment variables beside those of this process.
        files: of its working directory, by name.
        stdin: what it may read there.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        files: Mapping[str, str],
        stdin: str,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="assay-agent-"))
        self._work = self._folder / "work"
        self._work.mkdir()
        try:
            for name, text in files.items():
                (self._work / name).write_text(text, encoding="utf-8")
            (self._folder / "stdin").write_text(stdin, encoding="utf-8")
            with (
                (self._folder / "stdin").open("rb") as given,
                (self._folder / "output").open("wb") as printed,
            ):
                self._process = subprocess.Popen(
                    list(command),
                    cwd=self._work,
                    env={**os.environ, **env},
                    stdin=given,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def poll(self) -> int | None:
        """Return its exit code, or ``None`` while it runs."""
        return self._process.poll()

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

    def output(self) -> str:
        """Return the end of what it printed."""
        with (self._folder / "output").open("rb") as printed:
            printed.seek(max(0, printed.seek(0, os.SEEK_END) - 2000))
            return printed.read().decode(errors="replace")

    def close(self) -> None:
        """End its process group, and remove its files."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
