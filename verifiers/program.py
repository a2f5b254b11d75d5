"""Code: does the program in a reply pass its tests?"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from ..sandbox import (
    BadTests,
    Check,
    Limits,
    RunStatus,
    Sandbox,
    SandboxError,
    SandboxUnavailable,
    problem_fault,
)
from ..sandbox.grading.problem import problem_kinds, problem_language, size_fault
from ..sandbox.grading.prompt import assemble_program
from .memo import Memo
from .text.fences import find_program
from .verdict import Status, Verdict
from .verifier import Verifier, same_length


class ProblemRunner(Protocol):
    """The methods of a sandbox that grade programs."""

    @property
    def slots(self) -> int:
        """Programs it runs at one time."""

    def check_problem(
        self,
        code: str,
        problem: Mapping[str, Any],
        *,
        stop_at_first: bool = False,
        limits: Limits | None = None,
    ) -> Check:
        """Hold a program against a problem."""

    def close(self) -> None:
        """End it."""


class Code(Verifier):
    """Run the program of a reply against tests, in a sandbox.

    The program is the last fenced block of its language after the thought, or that before
    examples of its use (see :func:`~assay.verifiers.text.fences.find_program`), or the
    whole reply if there is no fence.
    A fence that never closes is a reply cut short, and no program.

    A reference is a dict with exactly one of

    - ``tests``: Python source that asserts; with it ``entry_point`` (the function that a
      ``check(candidate)`` among the tests is called with), ``setup`` (source that runs before
      the tests) and ``prompt`` (the beginning of the program: a reply that does not define
      ``entry_point`` itself continues it, one that does gets what stands before it there; its
      functions that the tests use are the tests' own);
    - ``stdio``: ``[[stdin, stdout], ...]``; with it ``tolerance`` for numbers, and ``language``,
      a name in :data:`~assay.sandbox.LANGUAGES`, if the program is not to be Python;
    - ``calls``: ``{"function": name or "Class.method", "cases": [[arguments, result], ...]}``;
      with it ``tolerance``, and ``prompt`` (what every program begins with, such as imports).

    :func:`~assay.sandbox.problem_from_row` makes one of a public data set's row.

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
        sandbox: ProblemRunner | None = None,
        limits: Limits | None = None,
        *,
        partial: bool = False,
    ) -> None:
        self.sandbox, self.limits, self.partial = sandbox, limits, partial
        self._own: ProblemRunner | None = None
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
            with ThreadPoolExecutor(min(batch.runner.slots, len(work)), "assay-code") as threads:
                found = dict(zip(work, threads.map(batch.run, work.values()), strict=True))
        return [found[row[0]] if isinstance(row, tuple) else row for row in rows]

    def check_reference(self, reference: Any) -> str | None:
        """Name what a reference lacks; its tests are parsed, never run."""
        try:
            text = json.dumps(reference, sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            return f"a reference must be plain JSON: {error}"
        fault = self._faults.get(text)
        if fault is None:
            fault = problem_fault(reference)
            limits = self.limits or getattr(self.sandbox, "limits", None) or Limits()
            least = min(limits.memory_mib << 17, limits.output_bytes)
            if not fault and len(text) > least:  # most are far from it
                fault = size_fault(reference, limits)
            self._faults.put(text, fault)
        return fault or None

    def program(self, reply: str, reference: dict[str, Any]) -> tuple[str | None, str]:
        """Return the program of a reply, or ``None`` with the reason.

        Override it if replies hold programs in another way.
        """
        wanted = reference.get("entry_point") or reference.get("tests") or ""
        if "calls" in problem_kinds(reference):  # of a function, or of a method of that name
            wanted = f"{reference['calls']['function']} Solution"
        return find_program(reply, problem_language(reference), wanted)

    @staticmethod
    def reply_of(program: str) -> str:
        """Return a reply that contains a Python program, as :meth:`program` finds it."""
        return f"```python\n{program}\n```"

    def close(self) -> None:
        """End the sandbox, if it is our own."""
        own, self._own = self._own, None
        if own is not None:
            own.close()

    def to_json(self) -> dict[str, Any]:
        """Return the name and the options that scores depend on."""
        limits = None if self.limits is None else self.limits.to_json()
        return {"name": type(self).__qualname__, "partial": self.partial, "limits": limits}

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        limits = options.pop("limits", None)
        return cls(limits=None if limits is None else Limits(**limits), **options)

    def _sandbox(self) -> ProblemRunner:
        if self.sandbox is not None:
            return self.sandbox
        if self._own is None:
            self._own = self._new_sandbox()
        return self._own

    def _new_sandbox(self) -> Sandbox:
        return Sandbox() if self.limits is None else Sandbox(limits=self.limits)

    def _prepared(self, reply: str, reference: Any) -> Verdict | tuple[str, str, dict[str, Any]]:
        """Return a row's verdict if it needs no run, else its key, program and reference."""
        started = time.perf_counter()
        fault = self.check_reference(reference)
        if fault is not None:
            return Verdict.fault(Status.BAD_GOLD, fault)
        try:
            code, reason = self.program(reply, reference)
        except Exception as error:  # of a class of somebody's own: the batch goes on
            return Verdict.from_error(error)
        if code is None:
            wrong = Verdict.unparseable(reason)
            return replace(wrong, seconds=time.perf_counter() - started)
        return json.dumps([code, reference], sort_keys=True), code, reference


class _Batch:
    """The programs of one batch; after an infrastructure failure the rest are not tried."""

    def __init__(self, code: Code, runner: ProblemRunner) -> None:
        self.code, self.runner = code, runner
        self._gone = threading.Event()
        self._cause = ""

    def run(self, item: tuple[str, dict[str, Any]]) -> Verdict:
        code, reference = item
        started = time.perf_counter()
        try:
            if self._gone.is_set():
                raise SandboxError(self._cause)
            stop = not self.code.partial
            check = self.runner.check_problem(
                code, reference, stop_at_first=stop, limits=self.code.limits
            )
            prompt = reference.get("prompt") or ""
            whole = assemble_program(code, prompt, reference.get("entry_point"))
            verdict = self._verdict(whole, check)
        except SandboxError as error:
            if isinstance(error, SandboxUnavailable):
                self._cause = str(error)
                self._gone.set()
            verdict = Verdict.fault(Status.SANDBOX_ERROR, str(error))
        except BadTests as error:
            verdict = Verdict.fault(Status.BAD_GOLD, str(error))
        except Exception as error:  # a bug of ours, on one program: the batch goes on
            verdict = Verdict.from_error(error)
        return replace(verdict, seconds=time.perf_counter() - started)

    def _verdict(self, code: str, check: Check) -> Verdict:
        if check.status is RunStatus.SANDBOX_ERROR:
            return Verdict.fault(Status.SANDBOX_ERROR, check.reason or "the sandbox failed")
        if check.solved:
            return Verdict.correct(f"all {check.total} tests passed", extracted=code)
        status = Status.INCORRECT if check.status is RunStatus.OK else Status(check.status.value)
        # passing every test and then breaking something is not a pass
        owed = self.code.partial and check.share < 1.0 and status is not Status.BROKE_SANDBOX
        score = check.share if owed else 0.0
        reason = f"{check.passed} of {check.total} tests passed"
        reason += f": {check.reason}" if check.reason else ""
        return Verdict.wrong(reason, status=status, score=score, extracted=code)
