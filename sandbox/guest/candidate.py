"""The candidate's process where a program is graded by calls: it answers, and knows no answers."""

from __future__ import annotations

import json
import os
import types
from typing import Any, NoReturn

from .channel import Peer, PeerGone
from .child import COMPILE_ERRORS, PEER_FD, REPORT_FD, SHARED_FOLDER, flush, load, sentence, show
from .wire import LIBRARIES, decode, encode


class LoadFailed(Exception):
    """The program did not get through its own top level: args are the kind and a sentence."""


def load_candidate(code: bytes) -> types.ModuleType:
    """Run a program's top level, as a module named ``candidate``: a main guard does not run.

    Raises:
        LoadFailed: it does not compile, raises, or exits.
    """
    try:
        compiled, module = load(code, "candidate", "main.py")
    except COMPILE_ERRORS as error:
        show(error, hidden_frames=2)
        raise LoadFailed("compile", sentence(error)[:500]) from None
    try:
        exec(compiled, module.__dict__)  # noqa: S102 - this process is the sandboxed program
    except SystemExit:
        raise LoadFailed("error", "the program exited before it could be called") from None
    except BaseException as error:
        show(error, hidden_frames=1)
        kind = "memory" if isinstance(error, MemoryError) else "error"
        raise LoadFailed(kind, sentence(error)[:500]) from None
    return module


def serve(code: bytes, request: dict[str, Any]) -> NoReturn:
    """Load a program and do what the tests' process asks for, until it closes the socket."""
    peer = Peer(PEER_FD, None)
    try:
        # Until then the tests do what needs no program.
        _, libraries, shares_files, peer.reports_changes, *shared = peer.receive()
        LIBRARIES.update(libraries)
        if shares_files:
            os.umask(0)
            os.chdir(SHARED_FOLDER)
    except PeerGone:
        os._exit(0)
    try:
        module = load_candidate(code)
    except LoadFailed as failure:
        flush()
        peer.send(["failed", *failure.args])
        os._exit(1)
    peer.shared = {name: vars(module).get(name) for name in shared}
    peer.find = lambda names: {
        n: encoded(peer, vars(module)[n]) for n in names if n in vars(module)
    }
    peer.send(["ready"])
    answer_requests(peer)


def answer_requests(peer: Peer) -> NoReturn:
    """Do what the tests' process asks for, until it closes the socket."""
    try:
        while True:
            message = peer.receive()
            try:
                peer.answer(message, before_reply=flush)
            except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
                peer.send_error(error)
    except PeerGone:
        os._exit(0)


def encoded(peer: Peer, value: Any) -> Any:
    """Encode a global for the tests; one that cannot be (a list that holds itself) stays here."""
    peer.returned = value
    try:
        return peer.encode(value)
    except Exception:
        return peer.handle(value)


def answer(code: bytes, request: dict[str, Any]) -> NoReturn:
    """Load a program, call its function once for each case, and report each value."""
    with os.fdopen(PEER_FD, "rb") as file:
        file.seek(0)
        work = json.loads(file.read())
    with os.fdopen(os.dup(REPORT_FD), "wb") as report:

        def send(*line: Any) -> None:
            report.write(json.dumps(line).encode() + b"\n")
            report.flush()

        try:
            module = load_candidate(code)
            _find(module, work["function"])
        except LoadFailed as failure:
            flush()
            send("failed", *failure.args)
            os._exit(1)
        for args in work["cases"]:
            try:
                function = _find(module, work["function"])  # LeetCode has an object a case too
                value = encode(function(*decode(args)))
            except BaseException as error:
                show(error, hidden_frames=1)
                kind = "memory" if isinstance(error, MemoryError) else "error"
                send(kind, sentence(error)[:500])
            else:
                send("value", value)
        flush()
    os._exit(0)


def _find(module: types.ModuleType, path: str) -> Any:
    """Find the function of this name; of ``Solution.solve``, the method of a new Solution."""
    # As the judges of APPS and LiveCodeBench, go by whether the program has a class Solution.
    first, *rest = path.split(".")
    if first == "Solution" and rest and not hasattr(module, first):
        first, *rest = rest
    elif not rest and not hasattr(module, first) and hasattr(module, "Solution"):
        first, rest = "Solution", [first]
    try:
        found = getattr(module, first)
        for name in rest:
            found = getattr(found() if isinstance(found, type) else found, name)
    except BaseException as error:
        raise LoadFailed("error", f"no {path}: {sentence(error)[:500]}") from None
    return found
