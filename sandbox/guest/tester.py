"""The tests' process: it knows the answers, asks the candidate's process, and gives the verdict.

The two run as different users, and only :mod:`.channel` joins them. A name that the tests
use without defining it, and that is not a builtin, is the candidate's.

The candidate does not run until the tests first need a name of it. What fails before then is the
tests' fault, whatever the candidate is; what fails after it is the candidate's.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import importlib
import inspect
import json
import os
import re
import signal
import sys
import types
import unittest
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from .cases import BadTests, Case, Collector, MissingFixture, skips
from .channel import Peer, PeerGone
from .child import PEER_FD, REPORT_FD, SHARED_FOLDER, sentence, write_all
from .library import (
    class_of,
    compare_sizes,
    forward,
    forwarded,
    is_instance,
    is_subclass,
    note_settings,
    operate,
)
from .pytest_stub import Failed, stand_in
from .remote import Remote
from .suite import CHANGED, CLASS_OF, OPERATE, SHARED, Suite
from .wire import LIBRARIES

CANDIDATE_GONE = 77
"""Exit code of the tests' process where the candidate's ended under it."""

_CALLABLES = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)

_READABLE = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})
"""What ``functools.wraps`` copies from a function."""

_RUNNING = (
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
    types.FrameType,
    types.TracebackType,
    types.CodeType,
)


_EVALUATORS = ("tests", "cProfile", "doctest", "profile", "sympy.parsing.sympy_parser", "timeit")
"""Modules where ``exec`` and ``eval`` may meet a text of the program; others run what they made."""

_HARMLESS = {name for name in dir(builtins) if name[0] != "_"} - {
    *("breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "locals", "open"),
    *("setattr", "vars"),
} | {"Symbol", "Integer", "Float", "Rational", "Function", "inner", "_stmt", "_setup"}
"""Names that evaluated code may use though the tests do not: builtins, SymPy's and timeit's."""


def run_tests(text: bytes, request: dict[str, Any]) -> NoReturn:
    """Hold the candidate against the tests, report each, and end with exit code 0."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    _import_nothing(os.path.realpath(os.environ["TMPDIR"]))
    os.chdir("/")
    work = json.loads(text)
    report = Report()
    try:
        suite = Suite(work["setup"], work["tests"], work["entry_point"])
    except (SyntaxError, ValueError) as error:
        report.write(bad_tests=f"{type(error).__name__}: {error}")
        os._exit(0)
    report.write(total=len(suite.units) + len(suite.uncalled) or 1)
    _guard_evaluation(suite.text)
    if suite.reads_files:
        _share_folder()
    peer = Peer(PEER_FD, _may)
    try:
        Runner(suite, peer, report).run()
    except BadTests as error:
        report.write(bad_tests=str(error))
    except PeerGone as gone:
        report.write(test="gone", reason=f"the program ended before its tests did: {gone}")
        os._exit(CANDIDATE_GONE)
    os._exit(0)


def _import_nothing(folder: str) -> None:
    """Let no module be found in this folder, where the program can write."""
    nothing = types.SimpleNamespace(find_spec=lambda *_: None, invalidate_caches=lambda: None)

    def find_nothing(path: str) -> Any:
        if os.path.realpath(path).startswith(folder):
            return nothing
        raise ImportError

    sys.path_hooks.insert(0, find_nothing)
    sys.path_importer_cache.pop(folder, None)  # the guest started there


def _guard_evaluation(text: str) -> None:
    """Let ``eval(text)`` and its like use the names of the tests only.

    :class:`Suite` refuses tests in which it sees that the program wrote the text; it could
    report that every test passed.
    """

    def names(code: types.CodeType) -> set[str]:
        inner = (names(c) for c in code.co_consts if isinstance(c, types.CodeType))
        return set(code.co_names).union(*inner)

    @functools.cache  # few tests evaluate anything
    def allowed() -> set[str]:
        return _HARMLESS | set(re.findall(r"\w+", text))

    def refuse(event: str, args: tuple[Any, ...]) -> None:
        if event != "exec" or sys._getframe(1).f_globals.get("__name__") not in _EVALUATORS:
            return
        if strange := sorted(names(args[0]) - allowed()):
            raise PermissionError(f"evaluated code uses {strange[0]!r}, which no test does")

    sys.addaudithook(refuse)


def _share_folder() -> None:
    """Go where the program will be, to find and delete its files, but to make none.

    What the tests made there a program could change, to have them expect what it gives.
    """
    folder = os.path.join(os.environ["TMPDIR"], SHARED_FOLDER)
    os.mkdir(folder)
    os.chdir(folder)
    os.chmod(folder, 0o777)  # noqa: S103 - of two users

    def refuse(event: str, args: tuple[Any, ...]) -> None:
        makes = event == "os.mkdir" or (event == "open" and (args[2] or 0) & os.O_CREAT)
        if makes and not isinstance(args[0], int) and not os.path.isabs(os.fspath(args[0])):
            raise PermissionError(f"{args[0]!r}: the program runs in another process")

    sys.addaudithook(refuse)


def _may(operation: str, target: Any, args: list[Any]) -> bool:
    """Decide what a candidate may do to the tests' objects: use what it was handed as such.

    Of a function only names are read: ``f.__globals__`` holds the tests.
    """
    if isinstance(target, types.ModuleType) or operation in ("class", "define", "library"):
        return False
    if isinstance(target, _CALLABLES):
        if operation == "get":
            return type(args[0]) is str and args[0] in _READABLE
        return operation in ("call", "eq", "ne", "hash", "bool", "str", "repr", "isinstance")
    if isinstance(target, _RUNNING):  # their frames hold the tests too
        return operation in ("iter", "next", "bool", "str", "repr", "start")
    if operation in ("get", "set", "unset"):
        if type(args[0]) is not str or args[0].startswith("_"):
            return False
        if operation == "set" and isinstance(args[1], Remote) and _is_mock(type(target)):
            return False  # the program's object would say how it was called
        return operation == "get" or not _is_method(type(target), args[0])
    return True


def _is_method(kind: type, name: str) -> bool:
    """Return whether a name is a method, or what a mock records: a program may replace neither."""
    found = inspect.getattr_static(kind, name, None)
    if callable(found) or isinstance(found, classmethod):
        return True
    return found is not None and _is_mock(kind)


def _is_mock(kind: type) -> bool:
    return any(c.__module__ == "unittest.mock" for c in kind.__mro__)


class Report:
    """Lines of JSON for the host, written as the tests go, so a timeout loses none."""

    def write(self, **line: Any) -> None:
        """Write one line."""
        write_all(REPORT_FD, json.dumps(line).encode() + b"\n")


class Runner:
    """Runs a suite against a candidate and reports each test.

    Attributes:
        failure: kind and reason of the last failure.
        total: tests that count, as far as is known.
    """

    def __init__(self, suite: Suite, peer: Peer, report: Report) -> None:
        self.suite = suite
        self.peer = peer
        self.report = report
        self.failure = ("", "")
        self.total = 0
        self.started = False
        peer.raising_lines = suite.raising_lines()
        self.namespace = self._namespace()

    def run(self) -> None:
        """Run everything in order. A statement that is no test and fails ends the run.

        Raises:
            BadTests: the tests are at fault, whatever the program is.
        """
        suite = self.suite
        self._count(len(suite.units) + len(suite.uncalled))
        self._import_libraries()
        for statement in [*suite.setup, *suite.body]:
            what = suite.source(statement)
            if statement in suite.units:
                self._test(what, partial(self._execute, statement))
            elif not self._attempt(what, partial(self._execute, statement)):
                self._tell(False)
                return
        collector = Collector(self.namespace, suite.entry_point)
        cases: list[Case] = []
        if not self._attempt("collecting the tests", lambda: cases.extend(self._cases(collector))):
            self._tell(False)
            return
        self._count(self.total - len(suite.uncalled) + len(cases))
        self._run_cases(cases, collector)
        if not self.started:
            why = "every test is skipped" if self.total == 0 else "they never use the program"
            raise BadTests(f"{why}, so every program would pass")
        if self.total == 0:
            self._count(1)
            self.failure = ("error", "every test was skipped")
            self._tell(False)

    def _cases(self, collector: Collector) -> list[Case]:
        named = [collector.function(n, n in self.suite.called) for n in self.suite.uncalled]
        return [case for some in named for case in some] + list(collector.classes())

    def _import_libraries(self) -> None:
        """Import what the tests import, before the program can take the memory for it."""
        for statement in [*self.suite.setup, *self.suite.body]:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in statement.names}
                names.add(getattr(statement, "module", None) or "")
                if not names & self.suite.program_modules:
                    self._attempt(
                        self.suite.source(statement), partial(self._execute, statement, {})
                    )

    def _run_cases(self, cases: list[Case], collector: Collector) -> None:
        before, after = collector.module_hooks()
        for hook in before if cases else ():
            if not self._attempt("setup of the module", hook):
                self._tell(False)
                return
        for case in cases:
            self._test(case.name, case.run)
        for hook in [*after, collector.wide.finish] if cases else ():
            if not self._attempt("teardown of the module", hook):
                self._count(self.total + 1)
                self._tell(False)

    def _namespace(self) -> dict[str, Any]:
        """Return the tests' globals: the candidate's are those neither defined here nor builtin.

        A standard module that they use (``math.isclose``) is imported here: the candidate's
        ``math`` could say that everything is close.
        """
        suite = self.suite
        module = types.ModuleType("tests")
        module.__file__ = "tests.py"
        vars(module)["__builtins__"] = Builtins(self._of_program, self.peer.changed)
        vars(module)[SHARED] = lambda kind: self.peer.shared.setdefault(kind.__name__, kind)
        if any(name in suite.text for name in ("asyncio", "dataclasses", "inspect")):
            forward()
        note_settings(suite.text, self.peer.settings)
        vars(unittest.case)["isinstance"] = is_instance
        for name in suite.array_libraries:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
                LIBRARIES.add(name)
        if LIBRARIES:
            compare_sizes("testing" in suite.text)
        sys.modules["tests"] = module
        sys.modules["pytest"] = stand_in()
        for name in suite.modules:
            with contextlib.suppress(ImportError):
                setattr(module, name, importlib.import_module(name))
        for name, library in suite.libraries.items():
            try:
                setattr(module, name, importlib.import_module(library))
            except ImportError as error:
                raise BadTests(f"they use {name} without importing it, and {error}") from None
        unittest.main = lambda *args, **options: None  # type: ignore[assignment]  # they run already
        for name in suite.program_modules:
            sys.modules[name] = self._program_module(name)
        return vars(module)

    def _find(self, name: str) -> dict[str, Any]:
        """Find the program's global of this name, if any. The first request starts it."""
        if not self.started:
            self.started = True
            suite = self.suite
            options = [[*LIBRARIES], suite.reads_files, bool(suite.passed)]
            self.peer.send(["load", *options, *self.peer.shared])
            hello = self.peer.receive()
            if hello[0] != "ready":
                self.report.write(failed=[str(part) for part in hello[1:3]])
                os._exit(0)
        return self.peer.names([name])

    def _of_program(self, name: str) -> dict[str, Any]:
        """Return the program's object for a name that the tests do not define, or nothing."""
        if name in self.suite.names:
            return self._find(name)
        asks = not (self.suite.imports_by_name or hasattr(builtins, name) or name[:2] == "__")
        return self._find(name) if asks else {}

    def _program_module(self, name: str) -> types.ModuleType:
        """Return what ``import solution`` gives. A star imports nothing: names are found anyway."""

        def find(attribute: str) -> Any:
            if attribute == "__all__":
                return []
            if attribute.startswith("__"):  # the import machinery looks for some
                raise AttributeError(attribute)
            found = self._find(attribute)
            if attribute not in found:
                raise AttributeError(f"the program defines no {attribute!r}")
            return found[attribute]

        module = types.ModuleType(name)
        module.__getattr__ = find  # type: ignore[method-assign]  # what PEP 562 asks for
        return module

    def _execute(self, statement: ast.stmt, namespace: dict[str, Any] | None = None) -> None:
        space = self.namespace if namespace is None else namespace
        exec(self.suite.compiled(statement), space)  # noqa: S102 - the tests, in a sandbox of their own

    def _test(self, what: str, action: Callable[[], object]) -> None:
        """Run one test, and report it unless it was skipped."""
        try:
            fine = self._attempt(what, action, may_skip=True)
        except skips():
            self._count(self.total - 1)
        else:
            self._tell(fine)

    def _attempt(self, what: str, action: Callable[[], object], *, may_skip: bool = False) -> bool:
        """Do something, and say whether it went well."""
        fine = self._went_well(what, action, may_skip)
        if self.peer.gone is not None:  # a bare "except" of the tests may have taken it
            raise self.peer.gone
        return fine

    def _went_well(self, what: str, action: Callable[[], object], may_skip: bool) -> bool:
        """Do something; if it fails before the program runs, that is the tests' fault."""
        try:
            action()
        except (PeerGone, MissingFixture):
            raise
        except BaseException as error:  # a SystemExit in the tests is a failure as well
            if isinstance(error, skips()) and may_skip:
                raise
            if not self.started:
                said = str(error) if isinstance(error, BadTests) else sentence(error)[:300]
                raise BadTests(f"{what}: {said}") from None
            ours = isinstance(error, AssertionError | Failed) and error is not self.peer.last_error
            kind = "wrong" if ours else "error"
            if isinstance(error, MemoryError):
                kind = "memory"
            silent = ours and not error.args
            self.failure = (kind, what if silent else f"{what}: {sentence(error)[:300]}")
            return False
        return True

    def _count(self, total: int) -> None:
        self.total = total
        self.report.write(total=max(total, 1))

    def _tell(self, fine: bool) -> None:
        if fine:
            self.report.write(test="pass", reason="")
        else:
            self.report.write(test=self.failure[0], reason=self.failure[1])


class Builtins(dict[str, Any]):
    """The builtins of the tests: a name that their globals lack is looked for here.

    Args:
        find: gives the program's global of a name, in a dict, or an empty dict.
        changed: gives an argument as the program left it.
    """

    def __init__(
        self, find: Callable[[str], dict[str, Any]], changed: Callable[[Any], Any]
    ) -> None:
        names = ("__import__", "__build_class__")
        super().__init__({name: getattr(builtins, name) for name in names})
        self.update({CLASS_OF: class_of, OPERATE: operate, CHANGED: changed})
        self.update(callable=forwarded("builtins", "callable"))
        self.update(isinstance=is_instance, issubclass=is_subclass)
        self._find = find

    def __missing__(self, name: str) -> Any:
        found = self._find(name)
        if name not in found:
            if hasattr(builtins, name):  # not kept: a test may replace it for a while
                return getattr(builtins, name)
            raise KeyError(name)
        if isinstance(found[name], Remote | type):
            self[name] = found[name]
        return found[name]
