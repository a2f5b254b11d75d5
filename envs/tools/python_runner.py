"""Run the cells of a Python session, one after the other, inside the sandbox.

It runs from source that the host sends, with what it has to do on stdin: standard library only.
Every cell but the last has run before, in an earlier program that has ended; run
again in the same order it leaves the same names and files. What it prints is not shown again.

The last cell's output goes to stdout. On stderr, where nothing else is written, it reports to the
host whether the cell raised, and the current files. The cell could write there itself:
it would deceive nobody but its own session.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import importlib
import json
import linecache
import os
import stat
import sys
import traceback
import types
from typing import Any, TextIO


def main() -> None:
    """Do what stdin says, and end without waiting for threads that cells left behind."""
    work = json.loads(sys.stdin.read())
    pid, out, err = os.getpid(), os.dup(1), os.dup(2)
    home = os.getcwd()  # where the files are, wherever cells may go
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.path.insert(0, "")
    sys.dont_write_bytecode = True  # it would be taken for the same file, mended or not
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    raised = False
    for number, (kind, *what) in enumerate(work["events"], 1):
        if kind == "write":
            _write(os.path.join(home, what[0]), what[1])
        else:
            if number == len(work["events"]):
                _flush()
                os.dup2(out, 1)
                os.dup2(out, 2)
            # Anew, as a cell may have closed them; by lines, so that these keep their order.
            sys.stdout, sys.stderr = _stream(1), _stream(2)
            raised = _run(what[0], what[1], module.__dict__)
            if os.getpid() != pid:  # the cell forked, and its child has come this far
                os._exit(0)
    _flush()
    report = {"raised": raised, "files": _files(home, work["most_bytes"], work["most_files"])}
    with open(err, "w", encoding="ascii") as stream:
        json.dump(report, stream)
    os._exit(0)


def _stream(number: int) -> TextIO:
    return open(number, "w", buffering=1, errors="backslashreplace", closefd=False)


def _write(path: str, content: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))
    except OSError:  # a cell has put something else in its place
        return
    importlib.invalidate_caches()
    for name, module in list(sys.modules.items()):  # what was mended is imported anew
        if getattr(module, "__file__", None) == path:
            del sys.modules[name]


def _run(number: int, code: str, names: dict[str, Any]) -> bool:
    """Run a cell; show the value of an expression at its end. Whether it raised."""
    place = f"<cell {number}>"
    linecache.cache[place] = (len(code), None, code.splitlines(keepends=True), place)
    try:
        tree = ast.parse(code, place)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, place, "exec"), names)  # noqa: S102  # what a sandbox is for
        if isinstance(last, ast.Expr):
            shown = compile(ast.Expression(last.value), place, "eval")
            value = eval(shown, names)  # noqa: S307  # the same: this file runs in the sandbox only
            if value is not None:
                names["_"] = value
                print(repr(value))  # noqa: T201
    except BaseException as error:  # SystemExit too: the session goes on
        _flush()
        _show(error, place)
        return True
    _flush()
    return False


def _show(error: BaseException, place: str) -> None:
    """Format the traceback without the frames of this file and of the parser."""
    trace = error.__traceback__
    if isinstance(error, SyntaxError) and error.filename == place:
        trace = None
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:  # an exception whose text raises
        text = f"{type(error).__name__}\n"
    data = text.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(1, data) :]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed or replaced by a cell
            stream.flush()


def _files(home: str, most_bytes: int, most_files: int) -> dict[str, str | None]:
    """Return the regular files at home in base64; none if they are too many or too large."""
    found: dict[str, str | None] = {}
    most = 2 * most_files
    for folder, folders, names in os.walk(home):
        folders.sort()
        for name in sorted(names):
            place = os.path.join(folder, name)
            path = os.path.relpath(place, home)
            if "__pycache__" in path:
                continue
            if len(found) >= most:
                return found
            content = _content(place, most_bytes) if most_files else None
            if content is None:
                found[path] = None
                continue
            found[path] = base64.b64encode(content).decode()
            most_bytes -= len(content)
            most_files -= 1
    return found


def _content(path: str, most_bytes: int) -> bytes | None:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode) or os.lstat(path).st_size > most_bytes:
            return None
        with open(path, "rb") as file:
            return file.read(most_bytes)
    except OSError:
        return None


if __name__ == "__main__":
    main()
