"""Where an audit's copies of a verifier come from: a process that has imported all, and forks.

A new interpreter imports for most of a second, and an audit wants two, and one more for each reply
that never ends. A fork is there at once, and has run nothing either.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle

_START_S = 120.0
"""Wall-clock seconds that it may take to start; the usual figure is below one."""


class Nursery:
    """Forks processes that run :func:`~assay.envs.audit.worker.serve`, and tells how they end.

    Safe to use from many threads. It ends with this process.

    Args:
        hash_seed: Python's; another one gives sets and dicts of text another order.
    """

    def __init__(self, hash_seed: int) -> None:
        self._lock = threading.Lock()
        self._hash_seed = hash_seed
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=self._environment(),
            start_new_session=True,  # Ctrl-C is for us
        )
        theirs.close()

    def fork(self, pipe: Connection) -> int:
        """A process with the other end of a pipe, in the folder and environment that are ours now.

        Returns:
            Its number, which is no other's until :meth:`reap`.

        Raises:
            OSError, EOFError: this nursery is gone.
        """
        place = {"path": _path(), "folder": os.getcwd(), "env": self._environment()}
        with self._lock:
            self._send(place)
            send_handle(self._pipe, pipe.fileno(), self._process.pid)
            return self._answer(_START_S)

    def reap(self, pid: int, within_s: float) -> int:
        """How a process that ends now ended; one that does not within a while is killed.

        Raises:
            OSError, EOFError: as :meth:`fork` does.
        """
        with self._lock:
            self._send([pid, within_s])
            return self._answer(within_s + _START_S)

    def close(self) -> None:
        """End it. Processes that it has forked end with their own pipes."""
        self._pipe.close()
        self._process.kill()
        self._process.wait()

    def _environment(self) -> dict[str, str]:
        """Ours as it is now, with what a process here needs."""
        needed = {"PYTHONHASHSEED": str(self._hash_seed), "PYTHONPATH": os.pathsep.join(_path())}
        return {**os.environ, **needed}

    def _send(self, what: object) -> None:
        self._pipe.send_bytes(json.dumps(what).encode("ascii"))

    def _answer(self, within_s: float) -> int:
        if not self._pipe.poll(within_s):
            self._process.kill()
            raise EOFError("it shows no sign of life")
        return int(self._pipe.recv_bytes())


_kept: dict[int, Nursery] = {}


def nursery(hash_seed: int) -> Nursery:
    """The nursery of this process, started when it is first wanted and then kept."""
    if hash_seed not in _kept:
        _kept[hash_seed] = Nursery(hash_seed)
    return _kept[hash_seed]


def forked(hash_seed: int, pipe: Connection) -> tuple[Nursery, int]:
    """A process by :meth:`Nursery.fork`, from a new nursery where the kept one has died.

    Raises:
        OSError, EOFError: the new one dies too.
    """
    try:
        found = nursery(hash_seed)
        return found, found.fork(pipe)
    except (EOFError, OSError):
        if hash_seed in _kept:
            _kept.pop(hash_seed).close()
        found = nursery(hash_seed)
        return found, found.fork(pipe)


@atexit.register
def _close_all() -> None:
    while _kept:
        _kept.popitem()[1].close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_kept.clear)  # they are the parent's


def _path() -> list[str]:
    """Where modules are found, also from another folder."""
    return [path or os.getcwd() for path in sys.path]


# -- the other side ------------------------------------------------------------------------------


def _serve(descriptor: int) -> None:
    """Fork and reap as asked, until nobody can ask any more."""
    from .worker import serve  # beside the rest: this process alone judges

    pipe = Connection(descriptor)
    while True:
        try:
            asked = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        if isinstance(asked, list):
            pipe.send_bytes(b"%d" % _reaped(*asked))
            continue
        handle = recv_handle(pipe)
        pid = os.fork()
        if pid == 0:
            pipe.close()
            _settle(**asked)
            serve(handle)
            return
        os.close(handle)
        pipe.send_bytes(b"%d" % pid)


def _settle(path: list[str], folder: str, env: dict[str, str]) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:] = path


def _reaped(pid: int, within_s: float) -> int:
    """The exit code of a child; negative for the signal that ended it."""
    deadline = time.monotonic() + within_s
    pause_s = 0.0005
    ended, status = os.waitpid(pid, os.WNOHANG)
    while not ended and time.monotonic() < deadline:
        time.sleep(pause_s)
        pause_s = min(0.05, 2 * pause_s)
        ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
