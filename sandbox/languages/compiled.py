"""Programs in other languages than Python, seen from the host: compiled once, run many times."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from ..backends.slot import Reply, Request
from ..errors import LanguageUnavailable
from ..grading.outcome import run_result, text
from ..limits import Limits
from ..pool.dispatch import Answer, send
from ..pool.pool import Pool
from ..result import Result, RunStatus
from .language import ProgrammingLanguage

CACHE_BYTES = 256 << 20
"""Compiled programs that a sandbox keeps."""

_ENTRY_BYTES = 512  # what an entry costs beside its content
_KEPT_MESSAGE = 1 << 16  # bytes of a compiler's messages
_MISSING = ("missing", 127)  # what guest/commands.py reports, and exits with
_OUT_OF_MEMORY = (
    b"std::bad_alloc",
    b"JavaScript heap out of memory",
    b"Array buffer allocation failed",
    b"Cannot allocate memory",
    b"cannot allocate memory",
    b"memory allocation of",
    b"runtime: out of memory",
    b"virtual memory exhausted",
    b"out of memory allocating",
)

_RAISED = re.compile(  # what runtimes print before, not after, the trace of calls
    r"^(?:(?:Uncaught )?[\w.]*(?:Error|Exception)\b|panic: |thread '[^']*' panicked ).*",
    re.MULTILINE,
)

_FAULT = re.compile(r"error|undefined reference|multiple definition", re.IGNORECASE)

Built = bytes | Result
"""A compiled program, or how its compilation ended."""


class Compiler:
    """Keeps what was compiled, and compiles what is not there, in slots of their own.

    A compiler reads what a candidate wrote, so it runs as a candidate does, with limits of its
    own. Its output can only become the program of that same source: the key is a hash of it.

    Args:
        cache_bytes: what may be kept; what was not used for longest goes first.
    """

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._most = cache_bytes
        self._kept: OrderedDict[str, Built] = OrderedDict()
        self._size = 0
        self._new_locks()

    def _new_locks(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._running: dict[str, threading.Lock] = {}

    def build(self, source: bytes, language: ProgrammingLanguage, pool: Pool) -> Built:
        """Compile this source, once: who asks meanwhile waits for it.

        Raises:
            SandboxUnavailable: no slot can be had.
            LanguageUnavailable: the compiler is not in the image.
        """
        if self._process != os.getpid():
            self._new_locks()  # a thread that holds one of these is not in this fork
        key = _key(source, language, pool.backend.image)
        with self._lock:
            turn = self._running.setdefault(key, threading.Lock())
        try:
            with turn:
                found = self._find(key)
                if found is None:
                    found, lasting = _compile(pool, source, language)
                    if lasting:
                        self._keep(key, found)
        finally:
            with self._lock:
                self._running.pop(key, None)
        return found

    def _find(self, key: str) -> Built | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: str, built: Built) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = built
            self._size += _size(built)
            while self._size > self._most:
                self._size -= _size(self._kept.popitem(last=False)[1])


def run_compiled_or_script(
    code: bytes,
    stdin: bytes,
    language: ProgrammingLanguage,
    limits: Limits,
    compiler: Compiler,
    compile_slots: Callable[[Limits], Pool],
    ask: Callable[[Request], Answer],
) -> Result:
    """Run a program that is not Python, and say how it, or its compilation, ended.

    Raises:
        SandboxUnavailable: no slot can be had.
        LanguageUnavailable: its tools are not in the image.
    """
    if language.compile:
        built = compiler.build(code, language, compile_slots(language.compile_limits))
        if isinstance(built, Result):
            return _cut(built, limits)
        code = built
    work = {
        "command": [
            part.replace("{memory_mib}", str(limits.memory_mib)) for part in language.command
        ],
        "file": language.program if language.compile else language.source,
        "reserves": language.reserves,
    }
    answer = ask(Request("run", code, stdin, limits, work=work))
    _refuse_missing(answer, language, language.command)
    reply = answer.reply
    return answer.result(None if reply is None else _run_result(reply, limits))


def _key(source: bytes, language: ProgrammingLanguage, image: str) -> str:
    found = hashlib.sha256(repr((image, language)).encode())
    found.update(source)
    return found.hexdigest()


def _size(built: Built) -> int:
    content = built if isinstance(built, bytes) else built.stdout + built.stderr
    return len(content) + _ENTRY_BYTES


def _compile(pool: Pool, source: bytes, language: ProgrammingLanguage) -> tuple[Built, bool]:
    """Compile a source; return the result, and whether the next try would end alike."""
    limits = language.compile_limits
    work = {
        "command": list(language.compile),
        "file": language.source,
        "program": language.program,
        "reserves": language.reserves,
    }
    answer = send(pool, Request("compile", source, b"", limits, work=work))
    reply = answer.reply
    if reply is None:
        return answer.result(None), False
    _refuse_missing(answer, language, language.compile)
    ended = run_result(reply, limits)
    if ended.status is RunStatus.OK and reply.outputs[2]:
        return reply.outputs[2], True
    result = replace(
        ended,
        status=RunStatus.COMPILE_ERROR,
        stdout=text(reply.outputs[0][:_KEPT_MESSAGE]),
        stderr=text(reply.outputs[1][:_KEPT_MESSAGE]),
        stdout_truncated=ended.stdout_truncated or len(reply.outputs[0]) > _KEPT_MESSAGE,
        stderr_truncated=ended.stderr_truncated or len(reply.outputs[1]) > _KEPT_MESSAGE,
        reason=_compile_reason(reply, limits, ended.status, ended.reason),
    )
    return answer.result(result), ended.status in (RunStatus.OK, RunStatus.RUNTIME_ERROR)


def _compile_reason(reply: Reply, limits: Limits, status: RunStatus, reason: str) -> str:
    """Return the compiler's first error, or the limit that it reached."""
    if status is RunStatus.OK:
        return "the compiler made nothing"
    if status is RunStatus.OUTPUT_LIMIT and len(reply.outputs[2]) == limits.output_bytes:
        return f"the compiled program has more than {limits.output_bytes} bytes"
    if status is not RunStatus.RUNTIME_ERROR:
        return f"the compiler was stopped: {reason}"
    if any(sign in reply.outputs[1] for sign in _OUT_OF_MEMORY):
        return f"the compiler was stopped: it used more than {limits.memory_mib} MiB"
    lines = text(reply.outputs[1][:_KEPT_MESSAGE] + reply.outputs[0][:_KEPT_MESSAGE]).splitlines()
    said = [line.strip() for line in lines if line.strip() and line[0] != "#"]  # Go's headings
    return next(filter(_FAULT.search, said), said[0] if said else reason)[:300]


def _run_result(reply: Reply, limits: Limits) -> Result:
    """Return a run's result; runtimes say in their own words that memory ran out."""
    result = run_result(reply, limits)
    status, reason = result.status, result.reason
    if status is RunStatus.RUNTIME_ERROR:
        end_of_stderr = reply.outputs[1][-20_000:]
        if any(sign in end_of_stderr for sign in _OUT_OF_MEMORY):
            status, reason = RunStatus.MEMORY, f"it ran out of its {limits.memory_mib} MiB"
        elif raised := _RAISED.findall(text(end_of_stderr)):
            reason = " ".join(raised[-1].split())[:300]
    return replace(result, status=status, reason=reason)


def _refuse_missing(
    answer: Answer, language: ProgrammingLanguage, command: tuple[str, ...]
) -> None:
    reply = answer.reply
    if reply is None or not command or (reply.note, reply.exits[0]) != _MISSING:
        return
    if answer.origin.image:
        where = f"the image {answer.origin.image}"
        remedy = (
            "`assay sandbox build toolchains` makes one with gcc, g++, node and bash; "
            "for others describe an image and build that"
        )
    else:
        where, remedy = "this machine", "install it under /usr, or use Docker and an image with it"
    raise LanguageUnavailable(
        f"{language.name} needs {command[0]!r}, which {where} lacks: {remedy}. "
        "(No program was judged.)"
    )


def _cut(result: Result, limits: Limits) -> Result:
    """Cut a compiler's outputs to the run's limit."""
    most = limits.output_bytes
    stdout, stderr = result.stdout.encode(), result.stderr.encode()
    return replace(
        result,
        stdout=stdout[:most].decode("utf-8", "ignore"),
        stderr=stderr[:most].decode("utf-8", "ignore"),
        stdout_truncated=result.stdout_truncated or len(stdout) > most,
        stderr_truncated=result.stderr_truncated or len(stderr) > most,
    )
