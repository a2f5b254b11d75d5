"""The end of a worker's program: it answers questions in lines of JSON over its stdin and stdout.

:mod:`~assay.verifiers.maths.worker` hands a fresh interpreter the text of a program, which defines
``start``, and then this. The first line is the worker's setup, for ``start``, which returns what
answers. Each later one is a question, and is answered by ``{"finding": ..., "reason": ...}``.

It must not import the rest of the package, so that it starts quickly.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def limit_cpu(seconds: float) -> None:
    """Let the kernel end this process if it uses that much more CPU time.

    The parent watches more closely; this stops a worker whose parent is gone.
    """
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(time.process_time() + 2 * seconds) + 2
    soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def serve(start: Callable[[Any], Callable[[Any], tuple[str, str]]]) -> None:
    """Answer questions until the stream ends. Stdout is kept for answers, whatever prints."""
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    setup = json.loads(sys.stdin.readline())
    try:
        answer = start(setup)
        memory = setup["memory_mib"] << 20
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        print(json.dumps({"ready": False, "reason": reason}), file=stdout, flush=True)
        return
    print(json.dumps({"ready": True}), file=stdout, flush=True)
    for question in sys.stdin:
        limit_cpu(setup["cpu_s"])
        finding, reason = answer(json.loads(question))
        print(json.dumps({"finding": finding, "reason": reason}), file=stdout, flush=True)


if __name__ == "__main__":
    serve(globals()["start"])  # of the program whose text precedes this
