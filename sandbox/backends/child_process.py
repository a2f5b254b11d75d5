"""A guest that is a child process of this one, spoken to over a socket pair."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence

from .slot import Origin, Slot, SlotBroken, no_failure


class ChildProcess:
    """Starts a command whose stdin and stdout are one end of a socket pair.

    Args:
        command: what to start.
        environment: all that it sees of ours.
        inherited: descriptors that it keeps.
        own_session: no Ctrl-C or hang-up of the terminal reaches it.

    Attributes:
        stream: our end.

    Raises:
        SlotBroken: it does not start.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        inherited: Sequence[int] = (),
        own_session: bool = False,
    ) -> None:
        self.stream, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=inherited,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._errors.fileno(),
                env=environment,
                cwd="/",
                start_new_session=own_session,
            )
        except OSError as error:
            self.stream.close()
            self._errors.close()
            raise SlotBroken(f"{command[0]} does not start: {error}") from error
        finally:
            theirs.close()

    def slot(
        self,
        origin: Origin,
        end: Callable[[], None],
        infrastructure_failure: Callable[[bool], str] = no_failure,
    ) -> Slot:
        """Return the slot that it is, once its guest has greeted.

        Args:
            origin: where it runs.
            end: gives back what it holds; called when the stream is closed.
            infrastructure_failure: as for :class:`Slot`.

        Raises:
            SlotBroken: the guest did not greet.
        """
        return Slot(
            self.stream,
            origin,
            multiplexed=False,
            end=end,
            said=self.said,
            infrastructure_failure=infrastructure_failure,
        )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def exit_code(self, timeout_s: float) -> int | None:
        """Return its exit code, or ``None`` if it still runs after so many seconds."""
        self.wait(timeout_s)
        return self._process.poll()

    def said(self) -> str:
        """Return what it wrote to stderr."""
        try:
            return os.pread(self._errors.fileno(), 500, 0).decode("utf-8", "replace").strip()
        except (OSError, ValueError):  # closed by another thread
            return ""

    def wait(self, timeout_s: float) -> None:
        """Let it end by itself, for so many seconds at most."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        # At exit two threads may close it at one time, and the slower one finds it closed.
        with contextlib.suppress(ValueError):
            self._errors.close()
