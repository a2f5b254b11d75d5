"""Worker processes: each judges replies with its own copy of a verifier, until it is killed.

Requests are pickled here; answers are JSON, because a worker handles hostile text.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # ships no types; Gymnasium brings it

from ...verifiers import Verdict, Verifier
from ...verifiers.maths.worker import cpu_seconds
from .subject import parts

CHUNK = 32
"""Replies judged in one request: what is lost when one of them never ends."""
HASH_SEEDS = (1, 2)
"""Python's hash seeds: of ordinary workers, and of one that must judge the same."""
_START_S = 120.0
"""Wall-clock seconds that a worker may take to start; a fork takes milliseconds."""


class NotCopyable(TypeError):
    """The verifier cannot be copied to another process, so nothing can be tried on it safely."""


class Overrun(Exception):
    """A worker was killed or died. The message says why."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on judging one reply.

    Attributes:
        cpu_s: CPU seconds of the verifier's process.
        wall_s: wall-clock seconds, for a verifier that sleeps or waits.
        memory_mib: growth of the process's memory, MiB.
    """

    cpu_s: float = 10.0
    wall_s: float = 120.0
    memory_mib: float = 1024.0


class Worker:
    """A process with a copy of a verifier.

    Args:
        frozen: the verifier, as :func:`freeze` returns it.
        hash_seed: one of ``HASH_SEEDS``; the other orders sets of text differently.

    Raises:
        NotCopyable: no process starts, or the copy cannot be made there.
    """

    def __init__(self, frozen: bytes, hash_seed: int) -> None:
        try:
            self._fork(frozen, hash_seed)
        except (EOFError, OSError) as error:
            raise NotCopyable(f"there is no process for the copy: {error}") from error
        self.alive = True
        try:
            reason = "the copy shows no sign of life"
            if self._pipe.poll(_START_S):
                reason = json.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            reason = "the copy dies as it starts"
        if reason:
            self.close(within_s=0.0)
            raise NotCopyable(reason)
        self._idle_mib = _memory_mib("VmRSS", self._pid)

    def _fork(self, frozen: bytes, hash_seed: int) -> None:
        job = _Job(frozen, {**os.environ, "PYTHONHASHSEED": str(hash_seed)})
        place = {"sys_path": [path or os.getcwd() for path in sys.path], "dir": os.getcwd()}
        self._pipe, theirs = multiprocessing.Pipe()
        with theirs:
            server = _servers()[hash_seed]
            self._status, start = server.connect_to_new_process([theirs.fileno()])
        try:
            with open(start, "wb") as file:
                file.write(pickle.dumps(place) + pickle.dumps(job))
            self._pid = forkserver.read_signed(self._status)
        except BaseException:
            os.close(self._status)
            raise

    def ask(self, request: tuple[Any, ...], bounds: Bounds, rows: int = 1) -> dict[str, Any]:
        """Send a request about ``rows`` replies and return the answer.

        Raises:
            Overrun: the worker exceeded its limits or died, and is gone.
        """
        cpu_s = bounds.cpu_s * (1 + rows / CHUNK)
        wall_s = bounds.wall_s + rows * bounds.cpu_s
        before, started = cpu_seconds(self._pid) or 0.0, time.monotonic()
        try:
            self._pipe.send_bytes(pickle.dumps(request))
            while not self._pipe.poll(0.05):
                if (cpu_seconds(self._pid) or 0.0) - before > cpu_s:
                    raise Overrun(f"did not end within {cpu_s:g} s of CPU time")
                if time.monotonic() - started > wall_s:
                    raise Overrun(f"did not end within {wall_s:g} s")
                if _memory_mib("VmRSS", self._pid) - self._idle_mib > bounds.memory_mib:
                    raise Overrun(f"took more than {bounds.memory_mib:g} MiB of memory")
            return dict(json.loads(self._pipe.recv_bytes()))
        except (EOFError, OSError) as error:
            code = self.close(within_s=1.0)
            raise Overrun(f"ended the verifier's process, exit code {code}") from error
        except BaseException:  # a late answer would be taken for that to the next request
            self.close(within_s=0.0)
            raise

    def close(self, *, within_s: float = 10.0) -> int | None:
        """Ask the process to end, kill it after ``within_s`` seconds, and return its exit code."""
        if not self.alive:
            return None
        self.alive = False
        self._pipe.close()
        try:
            if not wait([self._status], within_s):
                os.kill(self._pid, signal.SIGKILL)
            return int(forkserver.read_signed(self._status))
        except (EOFError, OSError):  # the server is gone, and nobody knows the exit code
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            return None
        finally:
            os.close(self._status)


def freeze(verifier: Verifier) -> bytes:
    """Pickle a verifier. Classes of modules that cannot be imported (tests, notebooks) go along.

    Raises:
        NotCopyable: it holds what cannot be copied, such as an open sandbox.
    """
    made_of = [thing for p in parts(verifier) for thing in (p, getattr(p, "function", p))]
    with contextlib.ExitStack() as stack:
        for name in {thing.__module__ for thing in made_of}:
            module = sys.modules.get(name)
            if module is None or name == "__main__" or name in sys.builtin_module_names:
                continue  # cloudpickle pickles classes of __main__ by value already
            top = name.partition(".")[0]
            if any(finder.find_spec(top, None) for finder in sys.meta_path):
                continue
            if name not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return bytes(cloudpickle.dumps(verifier))
        except Exception as error:  # pickling runs the object's own code
            raise NotCopyable(f"{type(error).__name__}: {error}") from error


# -- servers that have imported everything: a fork takes milliseconds, an import a second ----------

_kept: dict[int, dict[int, forkserver.ForkServer]] = {}
_lock = threading.Lock()


def _servers() -> dict[int, forkserver.ForkServer]:
    """Return this process's fork servers by hash seed, started side by side.

    ``multiprocessing.Process`` knows one server, with the hash seed of this process, and runs the
    caller's script again in the child. So workers take their own servers.
    """
    with _lock:
        servers = _kept.setdefault(os.getpid(), {s: forkserver.ForkServer() for s in HASH_SEEDS})
        for seed, server in servers.items():
            server.set_forkserver_preload([__name__])
            with _environment(PYTHONHASHSEED=str(seed), PYTHONSAFEPATH="1"):
                server.ensure_running()
        return servers


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables for processes that start meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


# -- in the worker -------------------------------------------------------------------------------


@dataclass
class _Job:
    """The job that ``multiprocessing.spawn`` unpickles and runs in a fork server's child."""

    frozen: bytes
    environment: dict[str, str]

    def _bootstrap(self, parent_sentinel: int) -> int:
        descriptor: int = (forkserver.get_inherited_fds() or [])[0]
        os.setsid()  # Ctrl-C is for the parent
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(null, stream)
        os.environ.clear()
        os.environ.update(self.environment)
        _serve(Connection(descriptor), self.frozen)
        atexit._run_exitfuncs()  # a fork server leaves them out
        return 0


def _serve(pipe: Connection, frozen: bytes) -> None:
    """Answer requests until the parent closes the pipe."""
    try:
        verifier: Verifier = pickle.loads(frozen)  # noqa: S301  # our own parent's
    except Exception as error:
        _send(pipe, f"{type(error).__name__}: {error}")
        return
    _send(pipe, "")
    try:
        while True:
            what, *rows = pickle.loads(pipe.recv_bytes())  # noqa: S301  # our own parent's
            _send(pipe, _judged(verifier, *rows) if what == "judge" else _faults(verifier, *rows))
    except (EOFError, OSError):
        pass
    finally:
        verifier.close()


def _send(pipe: Connection, value: object) -> None:
    pipe.send_bytes(json.dumps(value).encode("ascii"))


def _judged(verifier: Verifier, replies: list[str], references: list[Any]) -> dict[str, Any]:
    """Return the verdicts, CPU seconds of this process, and the growth of its memory, MiB."""
    before = _reset_peak()
    started = time.process_time()
    try:
        verdicts = verifier.verify_many(replies, references)
        spent = time.process_time() - started
        if len(verdicts) != len(replies) or not all(isinstance(v, Verdict) for v in verdicts):
            raise TypeError(f"{len(replies)} replies were given, and this came: {verdicts!r:.200}")
        rows = [v.to_json() for v in verdicts]
    except Exception as error:  # what no verifier should let out
        return {"raised": f"{type(error).__name__}: {error}"}
    return {"verdicts": rows, "cpu_s": spent, "mib": max(0.0, _memory_mib("VmHWM") - before)}


def _faults(verifier: Verifier, references: list[Any]) -> dict[str, Any]:
    """Return what is wrong with each reference."""
    found: list[str | None] = []
    for reference in references:
        try:
            found.append(verifier.check_reference(reference))
        except Exception as error:
            found.append(f"check_reference raised {type(error).__name__}: {error}")
    return {"faults": found}


def _reset_peak() -> float:
    """Reset this process's peak memory and return its memory in MiB."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _memory_mib("VmRSS")


def _memory_mib(name: str, pid: int | str = "self") -> float:
    """Return a figure of ``/proc/PID/status``; 0 on systems without one."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next(float(x.split()[1]) / 1024 for x in file if x.startswith(f"{name}:"))
    except (OSError, StopIteration):
        return 0.0
