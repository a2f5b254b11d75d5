"""The tests' process: it knows the answers, asks the candidate's process, and gives the verdict.

The two run as different users, and only :mod:`agent_channel` joins them. A name that the tests
use without defining it, and that is not a builtin, is the candidate's.

Runs inside the sandbox, from source that the host sends: standard library only.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import os
import signal
import sys
import types
import unittest
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from .agent_channel import Peer, PeerGone
from .agent_process import PEER_FD, REPORT_FD

CANDIDATE_GONE = 77
"""Exit code of the tests' process where the candidate's ended under it."""

_CALLABLES = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)


def run_tests(text: bytes, request: dict[str, Any]) -> NoReturn:
    """Hold the candidate against the tests, report each, and end with exit code 0."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # The candidate can write to /tmp: what the tests import must never be looked for there.
    os.chdir("/")
    work = json.loads(text)
    report = Report()
    try:
        suite = Suite(work["setup"], work["tests"], work["entry_point"])
    except (SyntaxError, ValueError) as error:
        report.write(bad_tests=f"{type(error).__name__}: {error}")
        os._exit(0)
    report.write(total=suite.count or 1)
    peer = Peer(PEER_FD, _may)
    try:
        hello = peer.receive()
        if hello[0] != "ready":
            report.write(failed=[str(part) for part in hello[1:3]])
            os._exit(0)
        Runner(suite, peer, report).run()
    except PeerGone as gone:
        report.write(test="gone", reason=f"the program ended before its tests did: {gone}")
        os._exit(CANDIDATE_GONE)
    os._exit(0)


def _may(operation: str, target: Any, args: list[Any]) -> bool:
    """What a candidate may do to the tests' objects: use what it was handed as such.

    Functions may be called, and no attribute of theirs read: ``f.__globals__`` holds the tests.
    """
    if isinstance(target, types.ModuleType):
        return False
    if isinstance(target, _CALLABLES):
        return operation == "call"
    if operation in ("get", "set"):
        return type(args[0]) is str and not args[0].startswith("_")
    return operation in ("call", "item", "put", "len", "bool", "iter", "next", "str", "repr")


class Report:
    """Lines of JSON for the host, written as the tests go, so a timeout loses none."""

    def write(self, **line: Any) -> None:
        """Write one line."""
        data = json.dumps(line).encode() + b"\n"
        view = memoryview(data)
        while view:
            view = view[os.write(REPORT_FD, view) :]


class Suite:
    """Tests as written: asserts, a ``check`` function, ``test_*`` functions, TestCase classes.

    Raises:
        SyntaxError: they do not compile.
        ValueError: they have a ``check(candidate)`` and nothing says which function to check.
    """

    def __init__(self, setup: str, tests: str, entry_point: str | None) -> None:
        self.setup = ast.parse(setup, "setup.py").body
        self.body = ast.parse(tests, "tests.py").body
        self.entry_point = entry_point
        self.lines = tests.splitlines()
        whole = ast.Module([*self.setup, *self.body], [])
        compile(whole, "tests.py", "exec", dont_inherit=True)  # "return" outside of a function
        nodes = list(ast.walk(whole))
        self.functions = {
            n.name: n for n in self.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        self.called = {
            n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        self.names = {n.id for n in nodes if isinstance(n, ast.Name)}
        self.modules = {
            n.value.id
            for n in nodes
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        } & set(sys.stdlib_module_names)
        self.units = [s for s in self.body if self._is_test(s)]
        self.uncalled = [
            name
            for name in self.functions
            if (name == "check" or name.startswith("test")) and name not in self.called
        ]
        self.count = len(self.units) + len(self.uncalled)
        if "check" in self.uncalled and entry_point is None and self.required("check"):
            raise ValueError("tests with check(candidate) need entry_point, the function's name")

    def required(self, name: str) -> int:
        """How many arguments a function cannot do without."""
        parameters = self.functions[name].args
        return len(parameters.posonlyargs + parameters.args) - len(parameters.defaults)

    def _is_test(self, statement: ast.stmt) -> bool:
        """A statement that asserts something, by itself or by a function of the tests."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        for node in ast.walk(statement):
            if isinstance(node, ast.Assert):
                return True
            if (
                isinstance(statement, ast.Expr)
                and isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in self.functions
            ):
                return True
        return False

    def source(self, node: ast.stmt) -> str:
        """The first line of a statement, for a reason."""
        line = self.lines[node.lineno - 1].strip() if node in self.body else "the setup"
        return line if len(line) <= 200 else line[:200] + "..."


class Runner:
    """Runs a suite against a candidate and reports each test.

    Attributes:
        failure: kind and reason of the last failure.
    """

    def __init__(self, suite: Suite, peer: Peer, report: Report) -> None:
        self.suite = suite
        self.peer = peer
        self.report = report
        self.failure = ("", "")
        self.namespace = self._namespace()

    def run(self) -> None:
        """Run everything in order. A statement that is no test and fails ends the run."""
        suite = self.suite
        for statement in [*suite.setup, *suite.body]:
            what = suite.source(statement)
            fine = self._attempt(what, partial(self._execute, statement))
            if statement in suite.units:
                self._tell(fine)
            elif not fine:
                self._tell(False)
                return
        for name in suite.uncalled:
            self._tell(self._attempt(name, partial(self._call, name)))
        cases = self._cases()
        if suite.count or cases:
            self.report.write(total=suite.count + len(cases))
        else:
            self._tell(True)  # a script without asserts: it ran to its end
        for case in cases:
            self._tell(self._attempt(case.id(), case.debug))

    def _namespace(self) -> dict[str, Any]:
        """The tests' globals: what they do not define and is no builtin comes from the candidate.

        A standard module that they use (``math.isclose``) is imported here: the candidate's
        ``math`` could say that everything is close.
        """
        suite = self.suite
        names = {n for n in suite.names if not hasattr(builtins, n)} - suite.modules
        if suite.entry_point is not None:
            names.add(suite.entry_point)
        elif not names - set(suite.functions) and len(suite.called) == 1:
            names |= suite.called  # "assert sum(10, 15) == 6" can only mean the candidate's sum
        self.peer.send(["names", sorted(names)])
        kind, *content = self.peer.receive()
        if kind != "value" or not content or type(content[0]) is not dict:
            raise self.peer.end("it sent what is not the protocol")
        namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
        for name, data in content[0].items():
            if name in names:
                namespace[name] = self.peer.decode(data)
        namespace.update({name: importlib.import_module(name) for name in suite.modules})
        module = types.ModuleType("tests")
        sys.modules["tests"] = module
        vars(module).update(namespace)
        return vars(module)

    def _execute(self, statement: ast.stmt) -> None:
        code = compile(ast.Module([statement], []), "tests.py", "exec", dont_inherit=True)
        exec(code, self.namespace)  # noqa: S102 - the tests, in a sandbox of their own

    def _call(self, name: str) -> None:
        if not self.suite.required(name):
            self.namespace[name]()
            return
        entry_point = self.suite.entry_point or ""
        if entry_point not in self.namespace:
            raise NameError(f"name {entry_point!r} is not defined")
        self.namespace[name](self.namespace[entry_point])

    def _cases(self) -> list[unittest.TestCase]:
        loader = unittest.defaultTestLoader
        return [
            case
            for value in list(self.namespace.values())
            if isinstance(value, type) and issubclass(value, unittest.TestCase)
            for case in loader.loadTestsFromTestCase(value)
            if isinstance(case, unittest.TestCase)
        ]

    def _attempt(self, what: str, action: Callable[[], object]) -> bool:
        """Do something, and say whether it went well."""
        fine = self._went_well(what, action)
        if self.peer.gone is not None:  # a bare "except" of the tests may have taken it
            raise self.peer.gone
        return fine

    def _went_well(self, what: str, action: Callable[[], object]) -> bool:
        """Do something; where it fails, note whose doing it was."""
        try:
            action()
        except PeerGone:
            raise
        except BaseException as error:  # a SystemExit in the tests is a failure as well
            ours = isinstance(error, AssertionError) and error is not self.peer.last_error
            kind = "wrong" if ours else "error"
            if isinstance(error, MemoryError):
                kind = "memory"
            sentence = f"{type(error).__name__}: {error}"[:300]
            self.failure = (kind, f"{what}: {sentence}" if str(error) or not ours else what)
            return False
        return True

    def _tell(self, fine: bool) -> None:
        if fine:
            self.report.write(test="pass", reason="")
        else:
            self.report.write(test=self.failure[0], reason=self.failure[1])
