"""The sandbox that users see: programs in, results out."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from .backends.address import checked_addresses
from .backends.backend import Options
from .backends.process import ProcessBackend
from .backends.registry import (
    BACKENDS,
    checked_preload,
    choose_backend,
    wanted_backend,
)
from .backends.slot import Mode, Request
from .cores import usable_cores
from .diagnostics.selfcheck import self_check
from .errors import SandboxUnavailable
from .grading.checks import calls_check, calls_data, stdio_check, tests_check, tests_data
from .grading.outcome import run_result
from .grading.problem import problem_fault, problem_kinds, problem_language, tests_of
from .grading.prompt import assemble_program
from .languages.compiled import Compiler, run_compiled_or_script
from .languages.language import PYTHON, ProgrammingLanguage, find_language
from .limits import Limits
from .pool.batch import BatchMixin, awaitable
from .pool.dispatch import Answer, send
from .pool.pool import Pool
from .result import Check, CheckResult, Result, RunStatus
from .sessions.factory import SessionFactory
from .sessions.limits import SessionLimits
from .sessions.network import Allowlist, Forward
from .sessions.session import Session


class Sandbox(BatchMixin):
    r"""Runs untrusted Python programs, each with its own user, memory, clock and files.

    Nothing starts before the first run. After that each slot stays warm and takes one program at
    a time; all methods may be called from many threads, and slots go to those who wait in the
    order in which they came. A forked or pickled sandbox starts slots of its own.

    Args:
        image: the container image; naming one rules bwrap out. Default: what
            ``assay sandbox build`` makes.
        slots: programs at one time. Default: the cores that this process may use, by its
            affinity and the CPU quota of its cgroup; with ``hosts`` the cores of all of them.
        limits: bounds on every program. A run may ask for others, but not for more memory,
            processes or files than these.
        backend: ``docker`` or ``bwrap``. Default: the environment variable ASSAY_SANDBOX, else
            docker where a daemon answers and has the image, else bwrap with a warning.
            ``process`` isolates nothing, is never chosen by itself, and needs ``unsafe=True``.
        preload: modules that slots import once, so that programs which import them start fast.
        idle_s: seconds after which a slot that nobody used is closed, to come back when it is
            wanted; ``None`` keeps all.
        unsafe: allow ``backend="process"``: programs that nobody has read run as processes of
            this machine, and may do there what this user may.
        hosts: Docker daemons that share the slots: ``unix:///path``, ``ssh://user@host[:port]``
            or ``tcp://host:port``. Default: the one that DOCKER_HOST names, or the local one.
        runtime: the daemon's runtime for containers, such as ``runsc`` for gVisor. Default: the
            environment variable ASSAY_SANDBOX_RUNTIME, else the daemon's own.

    Raises:
        ValueError: an argument makes no sense.

    Example:
        >>> with Sandbox(backend="bwrap") as sandbox:
        ...     sandbox.run("print(6 * 7)").stdout
        '42\n'
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        slots: int | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        backend: str | None = None,
        preload: Sequence[str] = (),
        idle_s: float | None = 300.0,
        unsafe: bool = False,
        hosts: Sequence[str] | None = None,
        runtime: str | None = None,
    ) -> None:
        super().__init__()
        if slots is not None and slots < 1:
            raise ValueError(f"slots must be at least 1, got {slots}")
        if idle_s is not None and not idle_s > 0:
            raise ValueError(f"idle_s must be positive, or None to keep idle slots, got {idle_s}")
        if not isinstance(limits, Limits):
            raise ValueError(f"limits must be Limits, as in Limits(cpu_s=2), got {limits!r:.80}")
        modules = checked_preload(preload)
        if hosts is not None:
            hosts = checked_addresses(hosts)
        if backend not in BACKENDS or BACKENDS[backend].daemon:
            runtime = runtime or os.environ.get("ASSAY_SANDBOX_RUNTIME") or None
        chosen = wanted_backend(backend, image=image, hosts=hosts, runtime=runtime, unsafe=unsafe)
        self.limits = limits
        self._size: int | None = slots or (None if hosts else usable_cores())
        self.idle_s = idle_s
        self._wanted = chosen
        self._options = Options(limits, modules, False, image, hosts, runtime, slots)
        self._again = functools.partial(
            Sandbox,
            image,
            slots=slots,
            limits=limits,
            backend=backend,
            preload=modules,
            idle_s=idle_s,
            unsafe=unsafe,
            hosts=hosts,
            runtime=runtime,
        )
        self._pool: Pool | None = None
        self._tool_pools: dict[Limits, Pool] = {}
        self._compiler = Compiler()
        self._sessions: SessionFactory | None = None
        self._closed = False

    @property
    def slots(self) -> int:
        """Programs at one time. Where they are the cores of several hosts, these are asked.

        Raises:
            SandboxUnavailable, ImageUnavailable: no host can be used.
        """
        return self._size or self._slots().size

    @property
    def backend(self) -> str:
        """``docker`` or ``bwrap``, or ``process (UNSAFE)``: the one in use. The first look decides.

        Raises:
            SandboxUnavailable: neither can be used.
            ImageUnavailable: the image asked for is missing.
        """
        return self._slots().backend.name

    @property
    def image(self) -> str:
        """Digest of the image in use; empty under bwrap."""
        return self._slots().backend.image

    def run(
        self,
        code: str,
        stdin: str = "",
        *,
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> Result:
        """Run one program, and say how it ended.

        Args:
            code: the program.
            stdin: its input.
            language: a name in :data:`~assay.sandbox.LANGUAGES`, or your own
                ProgrammingLanguage. A program is compiled once, in a slot of its own, and kept.
            limits: bounds on the run; a compiler has those of its language.

        Raises:
            SandboxUnavailable: no sandbox can be had; nothing was judged.
            ImageUnavailable: the image asked for is missing.
            LanguageUnavailable: the image lacks what the language needs.
            ValueError: the limits ask for more than the sandbox has, the input takes more than
                half of the memory, or there is no such language.
        """
        bounds = self._bounds(limits)
        spoken = find_language(language)
        if spoken != PYTHON:
            return run_compiled_or_script(
                encoded(code),
                encoded(stdin),
                spoken,
                bounds,
                self._compiler,
                self._tool_slots,
                self._ask,
            )
        answer = self._send("program", encoded(code), encoded(stdin), bounds)
        reply = answer.reply
        return answer.result(None if reply is None else run_result(reply, bounds))

    arun = awaitable(run)

    def check_stdio(
        self,
        code: str,
        cases: Sequence[tuple[str, str]],
        *,
        tolerance: float | None = None,
        compare: Callable[[str, str], bool] | None = None,
        stop_at_first: bool = False,
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> Check:
        """Run a program once for each pair of stdin and expected stdout.

        Output is compared word by word; a run must also end with exit code 0. After a timeout
        the cases left are not run, and count as failed.

        Args:
            code: the program.
            cases: stdin and expected stdout of each.
            tolerance: numbers may differ by this much, absolutely or relative to the larger;
                two integers may not.
            compare: called here with what was printed and what was expected, to say whether
                that is right, where several answers are. What was printed is untrusted text.
                :func:`~assay.sandbox.same_lines` is one.
            stop_at_first: do not run the cases after the first failure.
            language: as for :meth:`run`.
            limits: bounds on each run.

        Raises:
            ValueError: there are no cases, or the tolerance accepts anything.
            SandboxUnavailable, ImageUnavailable, LanguageUnavailable: as :meth:`run` does.
        """
        return stdio_check(
            lambda stdin: self.run(code, stdin, language=language, limits=limits),
            cases,
            tolerance=tolerance,
            compare=compare,
            stop_at_first=stop_at_first,
        )

    acheck_stdio = awaitable(check_stdio)

    def check_calls(
        self,
        code: str,
        function: str,
        cases: Sequence[tuple[Sequence[Any], Any]],
        *,
        tolerance: float | None = None,
        from_json: bool = False,
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> Check:
        """Call a program's function with each case's arguments, and compare what it returns.

        The program gets the arguments only. Its values come back as plain built-in ones and are
        compared here, as ``==`` does: 1 equals 1.0 and True, a list equals no tuple; only nan,
        where it is expected, equals nan. One process makes all calls, so the limits hold for
        all of them together.

        Args:
            code: the program.
            function: its name; ``Solution.solve`` is that method of a new ``Solution()``.
            cases: positional arguments and expected value of each.
            tolerance: floats may differ by this much, absolutely or relative to the larger.
            from_json: the expected values were read from JSON, so a tuple equals the list of
                its items, and the key 1 of a dict the key "1".
            language: Python; no other language's functions can be called.
            limits: bounds on the run.

        Raises:
            ValueError: there are no cases, they hold values that are not plain, the tolerance
                accepts anything, or another language is asked for.
            SandboxUnavailable, ImageUnavailable: as :meth:`run` does.

        Example:
            >>> with Sandbox(backend="bwrap") as sandbox:
            ...     sandbox.check_calls("def add(a, b): return a + b", "add", [((1, 2), 3)]).solved
            True
        """
        _must_be_python(language)
        bounds = self._bounds(limits)
        data = calls_data(function, cases, tolerance)
        answer = self._send("calls", encoded(code), data, bounds)
        if answer.reply is None:
            return Check(RunStatus.BROKE_SANDBOX, 0, len(cases), answer.cause, failed=0)
        return calls_check(answer.reply, bounds, cases, tolerance, from_json=from_json)

    acheck_calls = awaitable(check_calls)

    def check_tests(
        self,
        code: str,
        tests: str,
        *,
        setup: str = "",
        entry_point: str | None = None,
        language: str | ProgrammingLanguage = PYTHON,
        limits: Limits | None = None,
    ) -> Check:
        """Hold a program against tests written in Python, which run in a process of their own.

        Each top-level statement that asserts is one test, and so are a ``check(candidate)``
        function (called with the entry point), each ``test_*`` function for each set of its
        parameters, and each method of a TestCase or ``Test*`` class. Tests that are skipped or
        expected to fail do not count. Names that the tests neither define nor import, and that
        are no builtins, are the program's, and so is what they import from ``solution``; its
        objects are handles to them, never equal to anything else.

        Args:
            code: the program.
            tests: the tests.
            setup: code to run before them, on their side.
            entry_point: the function under test, where ``check`` needs it or where it has a
                builtin's name.
            language: Python, as for :meth:`check_calls`.
            limits: bounds on both processes together.

        Raises:
            BadTests: the tests do not compile, assert nothing, lack an entry point, or fail
                before they ask the program for anything.
            ValueError: another language is asked for.
            SandboxUnavailable, ImageUnavailable: as :meth:`run` does.

        Example:
            >>> with Sandbox(backend="bwrap") as sandbox:
            ...     sandbox.check_tests("def twice(x): return 2 * x", "assert twice(4) == 8").solved
            True
        """
        _must_be_python(language)
        bounds = self._bounds(limits)
        data = tests_data(tests, setup, entry_point)
        answer = self._send("tests", encoded(code), data, bounds)
        if answer.reply is None:
            return Check(RunStatus.BROKE_SANDBOX, 0, 1, answer.cause, failed=0)
        return tests_check(answer.reply, bounds)

    acheck_tests = awaitable(check_tests)

    def check_problem(
        self,
        code: str,
        problem: Mapping[str, Any],
        *,
        stop_at_first: bool = False,
        limits: Limits | None = None,
    ) -> Check:
        """Hold a program against a problem, in whichever of the three ways it asks for.

        Args:
            code: the program, or what continues the problem's prompt.
            problem: a dict with one of ``tests``, ``stdio`` and ``calls``, as
                :mod:`assay.sandbox.grading.problem` says; :func:`~assay.sandbox.problem_from_row`
                makes one of a public data set's row.
            stop_at_first: of ``stdio``, do not run the cases after the first failure.
            limits: bounds on each run.

        Raises:
            ValueError: the problem cannot be used; the message says why. Where its tests fail
                by themselves it is a BadTests.
            SandboxUnavailable, ImageUnavailable: as :meth:`run` does.

        Example:
            >>> with Sandbox(backend="bwrap") as sandbox:
            ...     sandbox.check_problem("print(2)", {"stdio": [["", "1"], ["", "2"]]}).share
            0.5
        """
        fault = problem_fault(problem)
        if fault:
            raise ValueError(f"the problem cannot be used: {fault}")
        tolerance, prompt = problem.get("tolerance"), problem.get("prompt") or ""
        kinds = problem_kinds(problem)
        if "stdio" in kinds:
            return self.check_stdio(
                code,
                [(given, expected) for given, expected in problem["stdio"]],
                tolerance=tolerance,
                stop_at_first=stop_at_first,
                language=problem_language(problem),
                limits=limits,
            )
        code = assemble_program(code, prompt, problem.get("entry_point"))
        if "calls" in kinds:
            calls = problem["calls"]
            cases = [(arguments, result) for arguments, result in calls["cases"]]
            return self.check_calls(
                code, calls["function"], cases, tolerance=tolerance, from_json=True, limits=limits
            )
        tests, setup = tests_of(problem)
        return self.check_tests(
            code, tests, setup=setup, entry_point=problem.get("entry_point"), limits=limits
        )

    acheck_problem = awaitable(check_problem)

    def session(
        self,
        image: str | None = None,
        *,
        limits: SessionLimits = SessionLimits(),  # noqa: B008 - frozen
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        network: Literal["none"] | Allowlist | Forward = "none",
    ) -> Session:
        """Open a container of its own for one episode, with a writable root and no network.

        Args:
            image: any image with /bin/sh, or a snapshot of another session. Default: the
                sandbox's, else what ``assay sandbox build shell`` makes.
            limits: bounds on all of its processes together.
            workdir: folder in which commands start. Default: the image's.
            env: variables, beside the image's.
            user: who runs commands. Default: the image's. Root has no rights over the machine.
            network: ``none``, the hosts that it may reach by HTTP through a proxy, or one server.

        Raises:
            SandboxUnavailable, ImageUnavailable: there is no daemon, or no such image.
            SandboxError: the session does not start.
        """
        return self._session_factory().open(image, limits, workdir, env, user, network)

    def warm_sessions(
        self,
        count: int,
        image: str | None = None,
        *,
        limits: SessionLimits = SessionLimits(),  # noqa: B008 - frozen
    ) -> None:
        """Keep this many containers started for coming sessions of an image with these limits.

        They start in the background, and each that a session takes is replaced. 0 ends it.

        Raises:
            SandboxUnavailable, ImageUnavailable: there is no daemon, or no such image.
        """
        self._session_factory().warm(count, image, limits)

    def ready_sessions(
        self,
        image: str | None = None,
        *,
        limits: SessionLimits = SessionLimits(),  # noqa: B008 - frozen
    ) -> int:
        """Return how many of these are started and wait for a session."""
        return self._session_factory().ready(image, limits)

    def check(self) -> list[CheckResult]:
        """Run a few programs that try to get out, and say what became of each: a self-check."""
        return self_check(self)

    def close(self) -> None:
        """End all slots. Calling it twice does no harm."""
        with self._lock:
            pools = [*self._tool_pools.values(), *([self._pool] if self._pool else [])]
            self._pool, self._closed = None, True
            self._tool_pools.clear()
            sessions, self._sessions = self._sessions, None
        self._end_threads()
        if sessions is not None:
            sessions.close()
        for pool in pools:
            pool.close()

    def __del__(self) -> None:
        # Slots end with their streams; this only ends them sooner.
        threads = getattr(self, "_awaited", None)
        if threads is not None:
            threads.close()
        for pool in [*getattr(self, "_tool_pools", {}).values(), getattr(self, "_pool", None)]:
            if pool is not None:
                pool.drop()

    def __repr__(self) -> str:
        pool = self._pool
        unsafe = f"{ProcessBackend.name}, " if self._wanted == "process" else ""
        state = pool.backend.name if pool is not None else f"{unsafe}not started"
        return f"Sandbox({state}, slots={self._size or 'as the hosts have cores'})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments: the copy starts slots of its own."""
        return self._again, ()

    def _bounds(self, limits: Limits | None) -> Limits:
        if limits is None:
            return self.limits
        for name in ("memory_mib", "pids", "tmp_mib"):
            asked, most = getattr(limits, name), getattr(self.limits, name)
            if asked > most:
                raise ValueError(
                    f"a run asks for {name}={asked}, more than the sandbox's {most}: "
                    f"make it with Sandbox(limits=Limits({name}={asked}))"
                )
        return limits

    def _send(self, mode: Mode, code: bytes, data: bytes, limits: Limits) -> Answer:
        return send(self._slots(), Request(mode, code, data, limits))

    def _ask(self, request: Request) -> Answer:
        pool = self._slots()
        return send(pool if pool.backend.tools else self._tool_slots(self.limits), request)

    def _tool_slots(self, limits: Limits) -> Pool:
        """Return slots for compilers and scripts: a slot has its memory and its view for life."""
        beside = self._slots().backend
        with self._lock:
            self._refuse_closed()
            if limits not in self._tool_pools:
                # The same image, whatever its tag may mean by now; never another backend.
                options = replace(self._options, limits=limits, preload=(), tools=True)
                if options.hosts is None:
                    options = replace(options, image=beside.image or options.image)
                backend = choose_backend(self._wanted or beside.name, options)
                self._tool_pools[limits] = Pool(backend, self.slots, idle_s=self.idle_s)
            return self._tool_pools[limits]

    def _session_factory(self) -> SessionFactory:
        with self._lock:
            self._refuse_closed()
            if self._sessions is None:
                hosts = self._options.hosts or (None,)
                if len(hosts) > 1:
                    raise ValueError("sessions run on one daemon: give one of the hosts")
                self._sessions = SessionFactory(
                    self._wanted, self._options.image, host=hosts[0], runtime=self._options.runtime
                )
            return self._sessions

    def _refuse_closed(self) -> None:
        if self._closed:
            raise SandboxUnavailable("the sandbox is closed: make a new one")

    def _slots(self) -> Pool:
        with self._lock:
            self._refuse_closed()
            if self._pool is None:
                found = choose_backend(self._wanted, self._options)
                if self._size is None:
                    self._size = getattr(found, "slots", 1)
                self._pool = Pool(found, self._size, idle_s=self.idle_s)
            return self._pool


def _must_be_python(language: str | ProgrammingLanguage) -> None:
    if find_language(language) != PYTHON:
        raise ValueError(
            f"only Python's functions can be called, not those of {find_language(language).name}: "
            "give inputs and expected outputs to check_stdio instead"
        )


def encoded(text: str) -> bytes:
    """Encode as UTF-8, with lone surrogates: the program, not the host, fails on those."""
    if not isinstance(text, str):
        raise ValueError(f"programs and their inputs must be text, got {text!r:.60}")
    return text.encode("utf-8", "surrogatepass")
