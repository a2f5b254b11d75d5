"""The end of a worker's program: it answers questions in frames over its stdin and stdout.

:mod:`~assay.verifiers.maths.worker` hands a fresh interpreter the text of a program, which defines
``start``, and then this. A frame is four bytes of length, big-endian, then JSON. The first one is
the worker's setup, for ``start``, which returns what answers. Each later one is a question, and is
answered by ``{"finding": ..., "reason": ...}``.

It must not import the rest of the package: it is to start quickly and know nothing else.
"""

import json
import os
import resource
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO


def read_frame(stream: BinaryIO) -> Any:
    """Read the next frame, or ``None`` at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    return json.loads(stream.read(struct.unpack(">I", head)[0]))


def write_frame(stream: BinaryIO, value: Any) -> None:
    """Write one frame."""
    body = json.dumps(value).encode()
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


def limit_cpu(seconds: float) -> None:
    """Let the kernel end this process if it uses that much more CPU time.

    The parent watches more closely; this stops a worker whose parent is gone.
    """
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(time.process_time() + 2 * seconds) + 2
    soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def serve(start: Callable[[Any], Callable[[Any], tuple[str, str]]]) -> None:
    """Answer questions until the stream ends. Stdout is kept for frames, whatever prints."""
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    setup = read_frame(stdin)
    try:
        answer = start(setup)
        memory = setup["memory_mib"] << 20
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except Exception as error:
        write_frame(stdout, {"ready": False, "reason": f"{type(error).__name__}: {error}"})
        return
    write_frame(stdout, {"ready": True})
    while (question := read_frame(stdin)) is not None:
        limit_cpu(setup["cpu_s"])
        finding, reason = answer(question)
        write_frame(stdout, {"finding": finding, "reason": reason})


if __name__ == "__main__":
    serve(globals()["start"])  # of the program whose text precedes this
