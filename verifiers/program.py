"""Code: does the program in a reply pass its tests?"""

from __future__ import annotations

import ast
import json
import re
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from ..sandbox import (
    Check,
    Language,
    Limits,
    RunStatus,
    Sandbox,
    SandboxError,
    SandboxUnavailable,
    find_language,
)
from .fenced import find_program
from .memo import Memo
from .verdict import Status, Verdict
from .verifier import Verifier, same_length


class Judge(Protocol):
    """What is asked of a sandbox."""

    @property
    def slots(self) -> int:
        """Programs it runs at one time."""

    def check_stdio(
        self,
        code: str,
        cases: Sequence[tuple[str, str]],
        *,
        stop_at_first: bool = False,
        language: str | Language = "python",
        limits: Limits | None = None,
    ) -> Check:
        """Hold a program's output against what is expected, case by case."""

    def check_calls(
        self,
        code: str,
        function: str,
        cases: Sequence[tuple[Sequence[Any], Any]],
        *,
        limits: Limits | None = None,
    ) -> Check:
        """Hold a function's results against what is expected, case by case."""

    def check_tests(
        self,
        code: str,
        tests: str,
        *,
        setup: str = "",
        entry_point: str | None = None,
        limits: Limits | None = None,
    ) -> Check:
        """Run a program's tests beside it."""

    def close(self) -> None:
        """End it."""


class Code(Verifier):
    """Runs the program of a reply against tests, in a sandbox.

    The program is the last fenced block of its language after the thought (see
    :func:`~assay.verifiers.fenced.find_program`), or the whole reply where there is no fence. A
    fence that never closes is a reply cut short, and no program.

    A reference is a dict with exactly one of

    - ``tests``: Python source that asserts; with it ``entry_point`` (the function that a
      ``check(candidate)`` among the tests is called with), ``setup`` (source that runs before
      the tests) and ``prompt`` (the beginning of the program: a reply that does not define
      ``entry_point`` itself continues it, one that does gets what stands before it there; its
      functions that the tests use are the tests' own);
    - ``stdio``: ``[[stdin, stdout], ...]``; with it ``language``, a name in
      :data:`~assay.sandbox.LANGUAGES`, where the program is not to be Python;
    - ``calls``: ``{"function": name or "Class.method", "cases": [[arguments, result], ...]}``.

    Args:
        sandbox: where programs run; it stays open. ``None``: one of our own, opened when it is
            first needed and ended by :meth:`close`.
        limits: bounds on each program; ``None`` for the sandbox's own.
        partial: pay the share of tests passed, instead of all or nothing.

    Raises:
        ValueError: no sandbox is given, and ASSAY_SANDBOX names none that there is.

    Example:
        >>> Code().check_reference({"tests": "assert f(1) == 2"}) is None
        True
    """

    def __init__(
        self,
        sandbox: Judge | None = None,
        limits: Limits | None = None,
        *,
        partial: bool = False,
    ) -> None:
        self.sandbox, self.limits, self.partial = sandbox, limits, partial
        self._own: Judge | None = None
        if sandbox is None:
            self._new_sandbox()  # opens nothing, but refuses a wrong ASSAY_SANDBOX at once
        self._faults: Memo[str, str] = Memo(4096)

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge the batch over the sandbox's slots; equal programs with equal tests run once."""
        same_length(replies, references)
        rows = [self._prepared(r, g) for r, g in zip(replies, references, strict=True)]
        work = {key: (code, ref) for key, code, ref in (r for r in rows if isinstance(r, tuple))}
        found: dict[str, Verdict] = {}
        if work:
            batch = _Batch(self, self._sandbox())
            with ThreadPoolExecutor(min(batch.judge.slots, len(work)), "assay-code") as threads:
                found = dict(zip(work, threads.map(batch.run, work.values()), strict=True))
        return [found[row[0]] if isinstance(row, tuple) else row for row in rows]

    def check_reference(self, reference: Any) -> str | None:
        """Name what a reference lacks; its tests are parsed, never run."""
        try:
            text = json.dumps(reference, sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            return f"a reference must be plain JSON: {error}"
        fault = self._faults.get(text)
        return (self._faults.put(text, _fault(reference)) if fault is None else fault) or None

    def close(self) -> None:
        """End the sandbox, if it is our own."""
        own, self._own = self._own, None
        if own is not None:
            own.close()

    def to_json(self) -> dict[str, Any]:
        """The name and the options that scores depend on."""
        limits = None if self.limits is None else self.limits.to_json()
        return {"name": "Code", "partial": self.partial, "limits": limits}

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        limits = options.pop("limits", None)
        return cls(limits=None if limits is None else Limits(**limits), **options)

    def _sandbox(self) -> Judge:
        if self.sandbox is not None:
            return self.sandbox
        if self._own is None:
            self._own = self._new_sandbox()
        return self._own

    def _new_sandbox(self) -> Sandbox:
        return Sandbox() if self.limits is None else Sandbox(limits=self.limits)

    def _prepared(self, reply: str, reference: Any) -> Verdict | tuple[str, str, dict[str, Any]]:
        """A row's verdict where it needs no run, else its key, program and reference."""
        started = time.perf_counter()
        fault = self.check_reference(reference)
        if fault is not None:
            return Verdict.fault(Status.BAD_GOLD, fault)
        code, reason = find_program(reply, find_language(reference.get("language") or "python"))
        if code is None:
            wrong = Verdict.wrong(reason, status=Status.UNPARSEABLE)
            return replace(wrong, seconds=time.perf_counter() - started)
        code = assembled(code, reference.get("prompt") or "", reference.get("entry_point"))
        return json.dumps([code, reference], sort_keys=True), code, reference


class _Batch:
    """The programs of one batch; once the sandbox is gone the rest are not tried."""

    def __init__(self, code: Code, judge: Judge) -> None:
        self.code, self.judge = code, judge
        self._gone = threading.Event()
        self._cause = ""

    def run(self, item: tuple[str, dict[str, Any]]) -> Verdict:
        code, reference = item
        started = time.perf_counter()
        try:
            if self._gone.is_set():
                raise SandboxError(self._cause)
            verdict = self._verdict(code, self._check(code, reference))
        except SandboxError as error:
            if isinstance(error, SandboxUnavailable):
                self._cause = str(error)
                self._gone.set()
            verdict = Verdict.fault(Status.SANDBOX_ERROR, str(error))
        except Exception as error:  # a bug of ours, on one program: the batch goes on
            verdict = Verdict.fault(Status.VERIFIER_ERROR, f"{type(error).__name__}: {error}")
        return replace(verdict, seconds=time.perf_counter() - started)

    def _check(self, code: str, reference: dict[str, Any]) -> Check:
        limits = self.code.limits
        if "stdio" in reference:
            pairs = [(given, expected) for given, expected in reference["stdio"]]
            return self.judge.check_stdio(
                code,
                pairs,
                stop_at_first=not self.code.partial,
                language=reference.get("language") or "python",
                limits=limits,
            )
        if "calls" in reference:
            calls = reference["calls"]
            cases = [(arguments, expected) for arguments, expected in calls["cases"]]
            return self.judge.check_calls(code, calls["function"], cases, limits=limits)
        setup, prompt = reference.get("setup") or "", reference.get("prompt") or ""
        entry_point = reference.get("entry_point")
        if prompt and entry_point is not None:
            setup = _joined(helpers(prompt, entry_point, reference["tests"]), setup)
        return self.judge.check_tests(
            code, reference["tests"], setup=setup, entry_point=entry_point, limits=limits
        )

    def _verdict(self, code: str, check: Check) -> Verdict:
        if check.status is RunStatus.SANDBOX_ERROR:
            return Verdict.fault(Status.SANDBOX_ERROR, check.reason or "the sandbox failed")
        if check.solved:
            return Verdict.correct(f"all {check.total} tests passed", extracted=code)
        status = Status.INCORRECT if check.status is RunStatus.OK else Status(check.status.value)
        share = check.passed / check.total if check.total else 0.0
        # passing every test and then breaking something is not a pass
        owed = self.code.partial and share < 1.0 and status is not Status.BROKE_SANDBOX
        score = share if owed else 0.0
        reason = f"{check.passed} of {check.total} tests passed"
        reason += f": {check.reason}" if check.reason else ""
        return Verdict.wrong(reason, status=status, score=score, extracted=code)


# -- the program -------------------------------------------------------------------------------

_FUTURE = re.compile(r"^from +__future__ +import +(?:\([^)]{0,999}\)|[^\n(]*)\n?", re.MULTILINE)


def assembled(code: str, prompt: str, entry_point: str | None) -> str:
    """The whole program: the prompt continued, or what the prompt has before the function."""
    if not prompt:
        return code
    # Python wants them before everything else, so before the prompt too.
    future = "".join(f"{found.strip()}\n" for found in _FUTURE.findall(code))
    code = _FUTURE.sub("", code) if future else code
    if entry_point is None or not _definition(entry_point).search(code):
        return future + _joined(prompt, code)
    return future + _joined(_before(prompt, entry_point), code)


def helpers(prompt: str, entry_point: str, tests: str) -> str:
    """What the tests need of the prompt, where they use a function that it defines.

    It is the tests' own then: a program could bring a function of that name which agrees with
    whatever it answers. Classes stay the program's, since it makes objects of them.
    """
    try:
        body = _parsed(_before(prompt, entry_point)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    kept = [node for node in body if not isinstance(node, ast.ClassDef) and not _is_stub(node)]
    used = {node.id for node in ast.walk(_parsed(tests)) if isinstance(node, ast.Name)}
    defined = {node.name for node in kept if isinstance(node, ast.FunctionDef)}
    return ast.unparse(ast.Module(kept, [])) if used & defined else ""


def _is_stub(node: ast.stmt) -> bool:
    """A function of which only the docstring is written: the program's to write."""
    return isinstance(node, ast.FunctionDef) and all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        for s in node.body
    )


def _before(prompt: str, entry_point: str) -> str:
    """The part of a prompt before the function; all of it where that is not there."""
    there = _definition(entry_point).search(prompt)
    return prompt[: there.start()] if there else prompt


def _definition(name: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:async +)?def +{re.escape(name)}\b", re.MULTILINE)


def _joined(before: str, after: str) -> str:
    return before + ("" if not before or before.endswith("\n") else "\n") + after


# -- the reference -----------------------------------------------------------------------------

_KINDS = ("tests", "stdio", "calls")
_BESIDE = {"tests": ("entry_point", "prompt", "setup"), "stdio": ("language",), "calls": ()}


def _fault(reference: Any) -> str:
    """What is wrong with a reference; empty where nothing is."""
    if not isinstance(reference, Mapping):
        return f"a reference must be a dict, got {type(reference).__name__}"
    kinds = [kind for kind in _KINDS if kind in reference]
    if len(kinds) != 1:
        have = ", ".join(map(repr, reference)) or "nothing"
        return f"a reference needs exactly one of 'tests', 'stdio' and 'calls', got {have}"
    kind = kinds[0]
    unknown = [key for key in reference if key not in {kind, *_BESIDE[kind]}]
    if unknown:
        return f"a reference with {kind!r} has no key {unknown[0]!r}"
    return {"tests": _tests_fault, "stdio": _stdio_fault, "calls": _calls_fault}[kind](reference)


def _tests_fault(reference: Mapping[str, Any]) -> str:
    for key in ("tests", *_BESIDE["tests"]):
        value = reference.get(key)
        if not isinstance(value, str) and (key == "tests" or value is not None):
            return f"{key!r} must be a string, got {type(value).__name__}"
    entry_point = reference.get("entry_point")
    if entry_point is not None and not entry_point.isidentifier():
        return f"'entry_point' must be the name of a function, got {entry_point!r}"
    if not reference["tests"].strip():
        return "'tests' is empty, so every program would pass"
    for key in ("setup", "tests"):
        fault = _syntax_fault(reference.get(key) or "")
        if fault:
            return f"{key!r} is not Python: {fault}"
    return _asserts_fault(reference)


def _asserts_fault(reference: Mapping[str, Any]) -> str:
    """Tests that assert nothing are passed by everything, and ``check`` needs a function."""
    tree = _parsed(reference["tests"])
    checks = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "check"]
    if checks and reference.get("entry_point") is None:
        return "'tests' defines check(candidate), so 'entry_point' is needed"
    names = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    names |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    if asserts or any(name.startswith(("assert", "raises")) for name in names):
        return ""
    return "'tests' asserts nothing, so every program would pass"


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in a test is no fault
        return ast.parse(source)


def _syntax_fault(source: str) -> str:
    try:
        _parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


def _stdio_fault(reference: Mapping[str, Any]) -> str:
    try:
        find_language(reference.get("language") or "python")
    except ValueError as error:
        return str(error)
    return _pairs_fault("stdio", reference["stdio"], (str, str), "[stdin, stdout]")


def _calls_fault(reference: Mapping[str, Any]) -> str:
    calls = reference["calls"]
    if not isinstance(calls, Mapping):
        return f"'calls' must be a dict, got {type(calls).__name__}"
    for key in ("function", "cases"):
        if key not in calls:
            return f"'calls' lacks {key!r}"
    function = calls["function"]
    if not isinstance(function, str) or not all(map(str.isidentifier, function.split("."))):
        return f"'function' must be the name of a function, got {function!r}"
    return _pairs_fault("cases", calls["cases"], (list, object), "[[argument, ...], result]")


def _pairs_fault(name: str, pairs: Any, types: tuple[type, type], shape: str) -> str:
    if not isinstance(pairs, list) or not pairs:
        return f"{name!r} must be a list of at least one {shape}"
    for i, pair in enumerate(pairs):
        fits = isinstance(pair, list | tuple) and len(pair) == len(types)
        if not fits or not all(map(isinstance, pair, types)):
            return f"{name}[{i}] must be {shape}, got {str(pair)[:60]!r}"
    return ""
