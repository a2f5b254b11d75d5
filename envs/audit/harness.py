"""Where an audit judges replies: in a copy of the verifier that can be killed."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # ships no types; Gymnasium brings it

from ...verifiers import Status, Verdict, Verifier
from ...verifiers.maths.worker import cpu_seconds
from ..task import Task
from .process import forked, nursery
from .report import Failure

_START_S = 120.0
"""Wall-clock seconds that a copy may take to be made."""
_CHUNK = 32
"""Replies judged together: what is lost when one of them never ends."""
_SEED, _OTHER_SEED = 1, 2
"""Python's hash seeds, of the twin and of the one that should judge the same."""
_ENOUGH = 8
"""Twins killed, after which it is plain that replies do not end."""


class CannotCopy(TypeError):
    """The verifier cannot be copied to another process, so nothing can be tried on it safely."""


class TooManyOverruns(RuntimeError):
    """So many replies never ended that trying more would take hours."""


class OutOfOrder(RuntimeError):
    """What judges is not there: a sandbox, a worker. It says nothing of the reply."""


class _Overrun(Exception):
    """A twin was killed; says why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A reply to try on a task.

    Attributes:
        task: whose reference it is judged against.
        reply: the reply.
        what: what kind of reply it is, in a few words.
    """

    task: Task
    reply: str
    what: str

    def failure(self, found: str) -> Failure:
        """This reply, as one that broke a promise."""
        return Failure(self.task.id, self.what, self.reply, found)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What judging one reply may use.

    Attributes:
        cpu_s: CPU seconds of the verifier's process.
        wall_s: wall-clock seconds, where nothing burns CPU: a verifier that sleeps or waits.
        memory_mib: by how much its memory may grow, MiB.
    """

    cpu_s: float = 10.0
    wall_s: float = 120.0
    memory_mib: float = 1024.0


class Twin:
    """A copy of a verifier in a fresh Python process.

    Args:
        frozen: the verifier, as :func:`frozen` makes it.
        hash_seed: Python's; another one gives sets and dicts of text another order.

    Raises:
        CannotCopy: no process can be had.
    """

    def __init__(self, frozen: bytes, hash_seed: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        try:
            self._nursery, self._pid = forked(hash_seed, theirs)
        except (EOFError, OSError) as error:
            self._pipe.close()
            raise CannotCopy(f"there is no process for the copy: {error}") from error
        finally:
            theirs.close()
        self._frozen, self._idle_mib = frozen, 0.0

    def wait(self) -> None:
        """Have it ready.

        Raises:
            CannotCopy: the copy cannot be made there.
        """
        if not self._frozen:
            return
        try:
            self._pipe.send_bytes(self._frozen)
            self._frozen = b""
            if not self._pipe.poll(_START_S):
                raise CannotCopy("the copy shows no sign of life")
            ready = json.loads(self._pipe.recv_bytes())
        except (EOFError, OSError) as error:
            self.kill()
            raise CannotCopy("the copy dies as it starts") from error
        if not ready["ready"]:
            self.kill()
            raise CannotCopy(ready["reason"])
        self._idle_mib = _resident_mib(self._pid)

    def ask(self, request: tuple[Any, ...], bounds: Bounds, rows: int = 1) -> dict[str, Any]:
        """Put a request about so many rows.

        Raises:
            _Overrun: it used more than its share, or died, and was killed.
        """
        self.wait()
        cpu_s = bounds.cpu_s * (1 + rows / _CHUNK)
        wall_s = bounds.wall_s + rows * bounds.cpu_s
        before, started = cpu_seconds(self._pid) or 0.0, time.monotonic()
        try:
            self._pipe.send_bytes(pickle.dumps(request))
            while not self._pipe.poll(0.05):
                if (cpu_seconds(self._pid) or 0.0) - before > cpu_s:
                    raise _Overrun(f"did not end within {cpu_s:g} s of CPU time")
                if time.monotonic() - started > wall_s:
                    raise _Overrun(f"did not end within {wall_s:g} s")
                if _resident_mib(self._pid) - self._idle_mib > bounds.memory_mib:
                    raise _Overrun(f"took more than {bounds.memory_mib:g} MiB of memory")
            return dict(json.loads(self._pipe.recv_bytes()))
        except (EOFError, OSError) as error:
            code = self._end(1.0)
            raise _Overrun(f"ended the verifier's process, exit code {code}") from error
        except BaseException:  # its answer would be taken for that to the next request
            self.kill()
            raise

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._pipe.closed

    def kill(self) -> int:
        """End it at once, and say how it ended."""
        return self._end(0.0)

    def close(self) -> None:
        """End it, and give it a moment to give back its sandboxes."""
        if self.alive:
            self._end(10.0)

    def _end(self, within_s: float) -> int:
        self._pipe.close()
        try:
            return self._nursery.reap(self._pid, within_s)
        except (EOFError, OSError):  # the nursery is gone, and with it whoever could tell
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            return -signal.SIGKILL


class Bench:
    """Judges trials in twins; a reply that never ends costs its twin, and another is started.

    Attributes:
        faults: trials that raised or were left without a score.
        overruns: trials that did not end, or took too much memory.

    Raises:
        CannotCopy: the verifier cannot be copied to another process.
    """

    def __init__(self, verifier: Verifier, bounds: Bounds) -> None:
        self.bounds = bounds
        self.faults: list[Failure] = []
        self.overruns: list[Failure] = []
        self.tried = 0
        self._frozen = frozen(verifier)
        self._twin: Twin | None = None
        self._control: Trial | None = None
        self._endless: set[tuple[str, str]] = set()
        self._kills = 0

    def judge(self, trials: Sequence[Trial], *, together: bool = True) -> list[Verdict | None]:
        """Verdicts, in order; ``None`` where one raised or never ended, which is on record.

        Raises:
            OutOfOrder: replies go without a score that had one before, so it is not their doing.
            TooManyOverruns: too many never ended.
        """
        self.tried += len(trials)
        size = _CHUNK if together else 1
        found: list[Verdict | None] = [None] * len(trials)
        places = [i for i, t in enumerate(trials) if (t.task.id, t.reply) not in self._endless]
        for at in range(0, len(places), size):
            part = places[at : at + size]
            for place, verdict in zip(part, self._chunk([trials[i] for i in part]), strict=True):
                found[place] = verdict
        return found

    def cost(self, trial: Trial) -> tuple[float, float] | None:
        """CPU seconds and MiB that one reply takes; ``None`` where it does not end."""
        self.tried += 1
        try:
            answer = self._asked([trial])
        except _Overrun as overrun:
            self._never_ends(trial, str(overrun))
            return None
        if "raised" in answer:
            self.faults.append(trial.failure(f"raises {answer['raised']}"))
            return None
        self._note(trial, Verdict.from_json(answer["verdicts"][0]))
        return answer["cpu_s"], answer["mib"]

    def reference_faults(self, references: Sequence[Any]) -> list[str | None]:
        """What ``check_reference`` says of each."""
        bounds = Bounds(1e4, 1e4, 1e6)  # references are ours: slow is not wrong here
        return list(self._ready().ask(("check", list(references)), bounds)["faults"])

    def expect_fresh(self) -> None:
        """Start what :meth:`fresh` needs beforehand."""
        nursery(_OTHER_SEED)

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """Judge in another new process for a while, one with another hash seed."""
        kept, self._twin = self._twin, Twin(self._frozen, _OTHER_SEED)
        try:
            yield
        finally:
            if self._twin is not None:
                self._twin.close()
            self._twin = kept

    def close(self) -> None:
        """End the twin."""
        if self._twin is not None:
            self._twin.close()

    def _asked(self, trials: Sequence[Trial]) -> dict[str, Any]:
        request = ("judge", [t.reply for t in trials], [t.task.reference for t in trials])
        if self._kills >= _ENOUGH:
            raise TooManyOverruns("too many replies never end")
        try:
            return self._ready().ask(request, self.bounds, len(trials))
        except _Overrun:
            self._kills += 1
            raise

    def _ready(self) -> Twin:
        if self._twin is None or not self._twin.alive:
            self._twin = Twin(self._frozen, _SEED)
        return self._twin

    def _chunk(self, trials: Sequence[Trial]) -> list[Verdict | None]:
        try:
            answer = self._asked(trials)
            fault = f"raises {answer['raised']}" if "raised" in answer else ""
            overran = False
        except _Overrun as overrun:
            answer, fault, overran = {}, str(overrun), True
        if not fault:
            verdicts = [Verdict.from_json(row) for row in answer["verdicts"]]
            for trial, verdict in zip(trials, verdicts, strict=True):
                self._note(trial, verdict)
            return [*verdicts]
        if len(trials) == 1:
            if overran:
                self._never_ends(trials[0], fault)
            else:
                self.faults.append(trials[0].failure(fault))
            return [None]
        return [self._chunk([trial])[0] for trial in trials]

    def _never_ends(self, trial: Trial, found: str) -> None:
        self.overruns.append(trial.failure(found))
        self._endless.add((trial.task.id, trial.reply))

    def _note(self, trial: Trial, verdict: Verdict) -> None:
        """Put a missing score on record, unless a reply that had one has none now either."""
        if verdict.score is not None:
            self._control = self._control or trial
            return
        again = self._alone(trial)
        if again is not None and again.score is not None:
            return  # it was the machine's doing
        if verdict.status is not Status.BAD_GOLD and self._control is not None:
            control = self._alone(self._control)
            if control is None or control.score is None:
                raise OutOfOrder(verdict.reason)
        self.faults.append(
            trial.failure(f"is left without a score ({verdict.status}: {verdict.reason})")
        )

    def _alone(self, trial: Trial) -> Verdict | None:
        try:
            answer = self._asked([trial])
        except _Overrun:
            return None
        return None if "raised" in answer else Verdict.from_json(answer["verdicts"][0])


def frozen(verifier: Verifier) -> bytes:
    """A verifier as bytes from which another process makes a copy.

    Classes of modules that no path leads to, such as tests and notebooks, travel along.

    Raises:
        CannotCopy: it holds what cannot be copied, such as an open sandbox.
    """
    with contextlib.ExitStack() as stack:
        for name in {part.__module__ for part in _parts(verifier)}:
            module = sys.modules.get(name)
            if module is None or name == "__main__" or name in sys.builtin_module_names:
                continue  # cloudpickle knows what to do with __main__
            top = name.partition(".")[0]
            if any(finder.find_spec(top, None) for finder in sys.meta_path):
                continue
            if name not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return bytes(cloudpickle.dumps(verifier))
        except Exception as error:  # pickling runs the object's own code
            raise CannotCopy(f"{type(error).__name__}: {error}") from error


def _parts(verifier: Verifier) -> Iterator[object]:
    yield verifier
    yield getattr(verifier, "function", verifier)
    for part in getattr(verifier, "parts", {}).values():
        yield from _parts(part)


def _resident_mib(pid: int) -> float:
    """Memory of a process, MiB; 0 on systems that do not tell."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            pages = int(file.read().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
