"""A copy of a verifier in a fresh process: it judges what it is sent, until it is killed.

The other end is :class:`~assay.envs.audit.harness.Twin`. Requests come pickled from our own
process; what goes back is JSON, since it was made beside hostile text.
"""

from __future__ import annotations

import json
import os
import pickle
import time
from multiprocessing.connection import Connection
from typing import Any

from ...verifiers import Verdict, Verifier


def serve(descriptor: int) -> None:
    """Answer requests until the other end is gone."""
    os.dup2(2, 1)  # what a verifier prints is no answer
    pipe = Connection(descriptor)
    try:
        verifier: Verifier = pickle.loads(pipe.recv_bytes())  # noqa: S301  # our own parent's
    except Exception as error:
        _send(pipe, {"ready": False, "reason": f"{type(error).__name__}: {error}"})
        return
    _send(pipe, {"ready": True})
    try:
        while True:
            what, *rows = pickle.loads(pipe.recv_bytes())  # noqa: S301  # our own parent's
            _send(pipe, _judged(verifier, *rows) if what == "judge" else _faults(verifier, *rows))
    except (EOFError, OSError):
        pass
    finally:
        verifier.close()


def _judged(verifier: Verifier, replies: list[str], references: list[Any]) -> dict[str, Any]:
    """Verdicts, CPU seconds of this process, and by how many MiB its memory grew on the way."""
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
    return {"verdicts": rows, "cpu_s": spent, "mib": max(0.0, _memory("VmHWM") - before)}


def _faults(verifier: Verifier, references: list[Any]) -> dict[str, Any]:
    """What is wrong with each reference."""
    found: list[str | None] = []
    for reference in references:
        try:
            found.append(verifier.check_reference(reference))
        except Exception as error:
            found.append(f"check_reference raised {type(error).__name__}: {error}")
    return {"faults": found}


def _send(pipe: Connection, value: dict[str, Any]) -> None:
    pipe.send_bytes(json.dumps(value).encode("ascii"))


def _reset_peak() -> float:
    """Memory now, in MiB, from which the peak starts anew."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass  # no such thing on this system: then the peak of a lifetime is what there is
    return _memory("VmRSS")


def _memory(name: str) -> float:
    """A figure of ``/proc/self/status`` in MiB; 0 on systems without one."""
    try:
        with open("/proc/self/status") as file:
            return next(float(x.split()[1]) / 1024 for x in file if x.startswith(f"{name}:"))
    except (OSError, StopIteration):
        return 0.0
