"""Docker daemons behind SSH: one child ``ssh`` for each host forwards the daemon's socket."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from typing import IO
from urllib.parse import urlsplit

from ..errors import SandboxUnavailable

START_S = 30.0
_REMOTE = "/var/run/docker.sock"
_OPTIONS = """
BatchMode=yes ConnectTimeout=10 ControlMaster=no ControlPath=none ExitOnForwardFailure=yes
PermitLocalCommand=no ServerAliveInterval=5 ServerAliveCountMax=3
StreamLocalBindMask=0177
"""

# ssh alone would outlive us: this ends it when our end of its stdin closes, however we end.
_WATCH = """
exec 3<&0
folder=$1; shift
"$@" <&3 3<&- & ssh=$!
{ read -r _ <&3; kill $ssh; } 2>/dev/null & watch=$!
exec 3<&-
wait $ssh; status=$?
kill $watch 2>/dev/null
rm -f "$folder/docker.sock"; rmdir "$folder"
exit $status
"""


def ssh_fault(address: str) -> str | None:
    """Return what is wrong with an ``ssh://`` address, or ``None``."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        return str(error)
    # A leading hyphen would make it an option of ssh.
    if not re.fullmatch(r"[A-Za-z0-9_.:][A-Za-z0-9_.:-]*", parts.hostname or ""):
        return "it needs a host name"
    if parts.username is not None and not re.fullmatch(r"[\w.][\w.@+-]*", parts.username):
        return "its user name has characters that no user name has"
    if parts.password is not None:
        return "it holds a password: ssh needs a key"
    if parts.query or parts.fragment or re.search(r"[^\w./+-]", parts.path):
        return "after the host comes nothing, or the path of the daemon's socket there"
    return None


class Tunnel:
    """One ``ssh`` that forwards a socket of its own to the daemon's on the other machine.

    ssh asks nothing (BatchMode): it needs a key, a known host key, and an account that may run
    ``cat``. Its configuration and agent are the user's own.

    Raises:
        SandboxUnavailable: ssh cannot log in; the message quotes it.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.owner = os.getpid()
        self._folder = tempfile.mkdtemp(prefix="assay-ssh-")
        self._socket = f"{self._folder}/docker.sock"
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as ssh
        try:
            if len(self._socket) > 100:
                raise SandboxUnavailable(
                    f"TMPDIR is too long a path for a socket: {self._socket} (at most 100 bytes)"
                )
            self._process = subprocess.Popen(
                ["sh", "-c", _WATCH, "assay-tunnel", self._folder, *self._command()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors.fileno(),
                start_new_session=True,  # Ctrl-C is for us to handle
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._errors.close()
            raise
        try:
            self._wait()
        except BaseException:
            self.end()
            raise

    @property
    def url(self) -> str:
        """URL of the daemon on this machine."""
        return f"unix://{self._socket}"

    @property
    def works(self) -> bool:
        """Return whether ssh still runs and listens."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self._socket)
                return True
        return False

    def end(self) -> None:
        """End ssh, and remove its socket."""
        if self.owner != os.getpid():
            return  # the parent uses it
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)
        self._errors.close()

    def _command(self) -> list[str]:
        remote = urlsplit(self.address).path.rstrip("/") or _REMOTE
        options = [part for option in _OPTIONS.split() for part in ("-o", option)]
        forward = f"{self._socket}:{remote}"
        # With a command, sshd sends each reply at once; with -N alone it waits for more to send,
        # and a run takes three times as long.
        return ["ssh", "-T", "-L", forward, *options, *self._target(), "cat"]

    def _target(self) -> list[str]:
        parts = urlsplit(self.address)
        user = [] if parts.username is None else ["-l", parts.username]
        port = [] if parts.port is None else ["-p", str(parts.port)]
        return [*user, *port, "--", parts.hostname or ""]

    def _wait(self) -> None:
        """Wait until the socket exists: ssh makes it once it is logged in."""
        deadline = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < deadline:
            if self.works:
                return
            time.sleep(0.02)
        said = os.pread(self._errors.fileno(), 600, 0).decode("utf-8", "replace").strip()
        said = said.rstrip(".") or f"nothing in {START_S:g} s"
        raise SandboxUnavailable(
            f"cannot reach Docker at {self.address}: ssh said: {said}. "
            f"`{' '.join(['ssh', *self._target()])}` must get in without a question."
        )


_lock = threading.Lock()
_opening: dict[str, threading.Lock] = {}
_tunnels: dict[str, Tunnel] = {}


def forward(address: str) -> str:
    """Return a local URL of the daemon at an ``ssh://`` address; the tunnel lives as we do.

    Raises:
        SandboxUnavailable: ssh cannot log in.
    """
    with _lock:
        opening = _opening.setdefault(address, threading.Lock())
    with opening:
        tunnel = _tunnels.get(address)
        if tunnel is not None and not tunnel.works:
            tunnel.end()
            tunnel = None
        if tunnel is None:
            tunnel = _tunnels[address] = Tunnel(address)
        return tunnel.url


def end_tunnels() -> None:
    """End every tunnel of this process; one that is wanted again is made again."""
    while _tunnels:
        _tunnels.popitem()[1].end()


def _forget() -> None:
    """Leave the tunnels to the parent after a fork, with its locks, which may be held for ever."""
    global _lock
    _lock = threading.Lock()
    _opening.clear()
    _tunnels.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(end_tunnels)
