"""A problem: what a program is held against, as one plain dict.

It has exactly one of these; null is the same as no value, as a table of several kinds has it.

- ``tests``: Python source that asserts; with it ``entry_point`` (the function that a
  ``check(candidate)`` among the tests is called with), ``setup`` (source that runs before the
  tests) and ``prompt`` (the beginning of the program: one that does not define
  ``entry_point`` itself continues it, one that does gets what stands before it there; its
  functions that the tests use are the tests' own);
- ``stdio``: ``[[stdin, stdout], ...]``; with it ``tolerance``, and ``language`` (a name in
  :data:`~assay.sandbox.LANGUAGES`; without it, Python);
- ``calls``: ``{"function": name or "Class.method", "cases": [[arguments, result], ...]}``; with
  it ``tolerance``, and ``prompt`` (what every program begins with, such as imports). The results
  are JSON, so the list ``[1, 2]`` is also the tuple.
"""

from __future__ import annotations

import codeop
import functools
import warnings
from collections.abc import Mapping
from typing import Any

from ..guest.suite import Suite
from ..languages.language import PYTHON, ProgrammingLanguage, find_language
from ..limits import Limits
from ..pool.dispatch import input_fault
from .checks import calls_data, tests_data
from .prompt import join_lines, prompt_helpers

_KINDS = ("tests", "stdio", "calls")
_BESIDE = {
    "tests": ("entry_point", "prompt", "setup"),
    "stdio": ("tolerance", "language"),
    "calls": ("tolerance", "prompt"),
}


def tests_of(problem: Mapping[str, Any]) -> tuple[str, str]:
    """Return a problem's tests, and what runs before them: its setup, and helpers of its prompt."""
    prompt, entry_point = problem.get("prompt") or "", problem.get("entry_point")
    setup = problem.get("setup") or ""
    if prompt and entry_point is not None:
        setup = join_lines(prompt_helpers(prompt, entry_point, problem["tests"]), setup)
    return problem["tests"], setup


def size_fault(problem: Mapping[str, Any], limits: Limits) -> str:
    """Say that a valid problem has an input or an output beyond the limits; empty if none has."""
    kinds = problem_kinds(problem)
    if "stdio" in kinds:
        if problem.get("tolerance") is None:  # else a number may be written shorter
            printed = max(
                len("".join(wanted.split()).encode("utf-8", "surrogatepass"))
                for _, wanted in problem["stdio"]
            )
            if printed > limits.output_bytes:
                return (
                    f"a case expects {printed} bytes, and output_bytes={limits.output_bytes} "
                    "is what a program may write"
                )
        size = max(len(given.encode("utf-8", "surrogatepass")) for given, _ in problem["stdio"])
    elif "calls" in kinds:
        try:
            size = len(calls_data(problem["calls"]["function"], problem["calls"]["cases"]))
        except ValueError as error:  # values that nest too deep
            return str(error)
    else:
        size = len(tests_data(problem["tests"], problem.get("setup") or "", None))
    return input_fault(size, limits)


def problem_language(problem: Mapping[str, Any]) -> ProgrammingLanguage:
    """Return the language that a problem asks for.

    Raises:
        ValueError: there is none of that name.
    """
    name = problem.get("language")
    return PYTHON if name is None else find_language(name)


def problem_kinds(problem: Mapping[str, Any]) -> list[str]:
    """Return which of ``tests``, ``stdio`` and ``calls`` a problem has: one, if it is valid."""
    return [kind for kind in _KINDS if problem.get(kind) is not None]


def problem_fault(problem: Any) -> str:
    """Return what is wrong with a problem, or an empty string. Tests are compiled, never run."""
    if not isinstance(problem, Mapping):
        return f"a reference must be a dict, got {type(problem).__name__}"
    kinds = problem_kinds(problem)
    if len(kinds) != 1:
        have = ", ".join(map(repr, problem)) or "nothing"
        return f"a reference needs exactly one of 'tests', 'stdio' and 'calls', got {have}"
    kind = kinds[0]
    known = {kind, *_BESIDE[kind]}
    unknown = [key for key, value in problem.items() if value is not None and key not in known]
    if unknown:
        return f"a reference with {kind!r} has no key {unknown[0]!r}"
    prompt = problem.get("prompt")
    fault = _tolerance_fault(problem.get("tolerance"))
    fault = fault or (_prompt_fault(prompt) if isinstance(prompt, str) else "")
    return fault or {"tests": _tests_fault, "stdio": _stdio_fault, "calls": _calls_fault}[kind](
        problem
    )


@functools.lru_cache(maxsize=4096)
def _prompt_fault(prompt: str) -> str:
    """Return why no program can begin with a prompt, or an empty string."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            codeop.compile_command(prompt, symbol="exec")  # None if it is not complete
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        return f"'prompt' is not the beginning of a Python program: {error}"
    return ""


def _tolerance_fault(tolerance: Any) -> str:
    if tolerance is None or (type(tolerance) in (int, float) and 0 <= tolerance < 1):
        return ""
    return f"'tolerance' must be a number from 0 up to, but not including, 1, got {tolerance!r:.60}"


def _tests_fault(problem: Mapping[str, Any]) -> str:
    for key in ("tests", *_BESIDE["tests"]):
        value = problem.get(key)
        if not isinstance(value, str) and (key == "tests" or value is not None):
            return f"{key!r} must be a string, got {type(value).__name__}"
    entry_point = problem.get("entry_point")
    if entry_point is not None and not entry_point.isidentifier():
        return f"'entry_point' must be the name of a function, got {entry_point!r}"
    if not problem["tests"].strip():
        return "'tests' is empty, so every program would pass"
    return _source_fault(problem.get("setup") or "", problem["tests"], entry_point)


@functools.lru_cache(maxsize=4096)
def _source_fault(setup: str, tests: str, entry_point: str | None) -> str:
    """Return what is wrong with tests, by the code that the sandbox itself checks them with."""
    try:
        with warnings.catch_warnings():  # an odd escape is no fault
            warnings.simplefilter("ignore")
            Suite(setup, tests, entry_point)
    except SyntaxError as error:
        key = "setup" if error.filename == "setup.py" else "tests"
        return f"{key!r} is not Python: {error}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"'tests' cannot be used: {error}"
    return ""


def _stdio_fault(problem: Mapping[str, Any]) -> str:
    try:
        problem_language(problem)
    except ValueError as error:
        return str(error)
    fault = _pairs_fault("stdio", problem["stdio"], (str, str), "[stdin, stdout]")
    if not fault and not any(expected.split() for _, expected in problem["stdio"]):
        return "no case of 'stdio' expects any output, so a program that does nothing would pass"
    return fault


def _calls_fault(problem: Mapping[str, Any]) -> str:
    calls, prompt = problem["calls"], problem.get("prompt")
    if prompt is not None and not isinstance(prompt, str):
        return f"'prompt' must be a string, got {type(prompt).__name__}"
    if not isinstance(calls, Mapping):
        return f"'calls' must be a dict, got {type(calls).__name__}"
    for key in ("function", "cases"):
        if key not in calls:
            return f"'calls' lacks {key!r}"
    function = calls["function"]
    if not isinstance(function, str) or not all(map(str.isidentifier, function.split("."))):
        return f"'function' must be the name of a function, got {function!r}"
    fault = _pairs_fault("cases", calls["cases"], (list, object), "[[argument, ...], result]")
    if not fault and all(result is None for _, result in calls["cases"]):
        return "every case expects None, so a function that does nothing would pass"
    return fault


def _pairs_fault(name: str, pairs: Any, types: tuple[type, type], shape: str) -> str:
    if not isinstance(pairs, list) or not pairs:
        return f"{name!r} must be a list of at least one {shape}"
    for i, pair in enumerate(pairs):
        fits = isinstance(pair, list | tuple) and len(pair) == len(types)
        if not fits or not all(map(isinstance, pair, types)):
            return f"{name}[{i}] must be {shape}, got {str(pair)[:60]!r}"
    return ""
