"""What a program's runs say about its tests.

Expected values stay on the host, or in the tests' own process: never where the program runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..backends.slot import Reply
from ..errors import BadTests
from ..guest.wire import encode
from ..limits import Limits
from ..result import Check, Result, RunStatus
from .compare import check_tolerance, same_output, same_value
from .outcome import ended, text

_ENDING = {"compile": RunStatus.COMPILE_ERROR, "memory": RunStatus.MEMORY, "wrong": RunStatus.OK}
_STOPS = frozenset(
    {RunStatus.TIMEOUT, RunStatus.COMPILE_ERROR, RunStatus.BROKE_SANDBOX, RunStatus.SANDBOX_ERROR}
)

_NO_CASE = "a check needs at least one case, got none"


def stdio_check(
    run: Callable[[str], Result],
    cases: Sequence[tuple[str, str]],
    *,
    tolerance: float | None = None,
    compare: Callable[[str, str], bool] | None = None,
    stop_at_first: bool = False,
) -> Check:
    """Compare what a program prints for each input with what is expected.

    After a timeout the other cases are not run: a program that loops would cost the limit for each.

    Raises:
        ValueError: there are no cases, or the tolerance accepts anything.
    """
    if not cases:
        raise ValueError(_NO_CASE)
    check_tolerance(tolerance)
    if tolerance is not None and compare is not None:
        raise ValueError("give a tolerance or a compare function, not both")
    for number, (_, expected) in enumerate(cases):
        if not isinstance(expected, str):
            raise ValueError(f"cases[{number}] must expect text, got {expected!r:.60}")
    same = compare or (lambda printed, expected: same_output(printed, expected, tolerance))
    passed, failed, reason = 0, None, ""
    shown: Result | None = None
    for number, (stdin, expected) in enumerate(cases):
        result = run(stdin)
        if result.status is RunStatus.OK and same(result.stdout, expected):
            passed += 1
            shown = result if failed is None else shown
            continue
        if failed is None:
            said = result.reason or f"it printed {shortened(result.stdout)}"
            reason = f"case {number + 1} of {len(cases)}, input {shortened(stdin)}: {said}"
            shown, failed = result, number
        if stop_at_first or result.status in _STOPS:
            break
    assert shown is not None  # noqa: S101 - there is a case
    out, err = shown.stdout, shown.stderr
    return Check(shown.status, passed, len(cases), reason, out, err, failed)


def calls_data(
    function: str, cases: Sequence[tuple[Sequence[Any], Any]], tolerance: float | None = None
) -> bytes:
    """Encode the calls for the program's process: arguments, never expected values.

    Raises:
        ValueError: there are no cases, a case's values are not plain built-in ones, or the
            tolerance accepts anything.
    """
    if not cases:
        raise ValueError(_NO_CASE)
    check_tolerance(tolerance)
    try:
        for _, expected in cases:
            encode(expected)
        args = [encode(tuple(args)) for args, _ in cases]
    except TypeError as error:
        raise ValueError(
            f"{error}: arguments and expected values travel as JSON; for others use check_tests"
        ) from error
    return json.dumps({"function": function, "cases": args}).encode()


def calls_check(
    reply: Reply,
    limits: Limits,
    cases: Sequence[tuple[Sequence[Any], Any]],
    tolerance: float | None,
    *,
    from_json: bool = False,
) -> Check:
    """Judge the values that a program's function returned.

    The lines are the program's own, so they may be forged. But it does not know what is
    expected, and a forged answer is just another answer.
    """
    passed = 0
    failed: int | None = None
    failure: tuple[RunStatus, str] | None = None
    lines = reply.outputs[2].splitlines()
    for number, (args, expected) in enumerate(cases, 1):
        kind, said = _line(lines[number - 1]) if number <= len(lines) else ("", None)
        if kind == "value" and same_value(expected, said, tolerance, from_json=from_json):
            passed += 1
            continue
        failed = number - 1 if failed is None else failed
        where = f"case {number} of {len(cases)}, arguments {_shown(args)}"
        if kind == "value":
            failure = failure or (RunStatus.OK, f"{where}: it returned another value")
        elif kind in ("error", "memory"):
            status = _ENDING.get(kind, RunStatus.RUNTIME_ERROR)
            failure = failure or (status, f"{where}: {said!s:.500}")
        else:
            if kind == "failed":
                status, reason = _load_failure(said)
            else:
                status, reason = _unfinished(reply, limits, reply.exits[0])
                reason = f"{where}: {reason}"
            failure = failure or (status, reason)
            break
    status, reason = failure or (RunStatus.OK, "")
    out, err = text(reply.outputs[0]), text(reply.outputs[1])
    return Check(status, passed, len(cases), _writable(reason), out, err, failed)


def _line(data: bytes) -> tuple[str, Any]:
    """Parse a line of an untrusted program into its kind and content."""
    try:
        kind, *content = json.loads(data)
    except (ValueError, TypeError, RecursionError):
        return "", None
    if kind == "failed":
        return kind, content
    return (kind, content[0]) if isinstance(kind, str) and content else ("", None)


def _load_failure(said: Any) -> tuple[RunStatus, str]:
    kind, reason = (*said, "", "")[:2] if isinstance(said, list) else ("", "")
    return _ENDING.get(str(kind), RunStatus.RUNTIME_ERROR), str(reason)[:500]


def _unfinished(reply: Reply, limits: Limits, code: int | None) -> tuple[RunStatus, str]:
    """Return the status of a program that ended before its tests did."""
    status, reason = ended(reply, limits, code)
    if status is RunStatus.OK:
        return RunStatus.RUNTIME_ERROR, "the program ended before its tests did"
    return status, reason


def tests_data(tests: str, setup: str, entry_point: str | None) -> bytes:
    """Encode the tests for their process."""
    if not tests.strip():
        raise BadTests("tests must hold at least one assert, got no text")
    work = {"setup": setup, "tests": tests, "entry_point": entry_point}
    return json.dumps(work).encode()


def tests_check(reply: Reply, limits: Limits) -> Check:
    """Judge by the report of the tests' process, which the program cannot write to.

    Raises:
        BadTests: the tests themselves cannot be used.
    """
    out, err = text(reply.outputs[0]), text(reply.outputs[1])
    lines = [json.loads(line) for line in reply.outputs[2].splitlines(True) if line[-1:] == b"\n"]
    total, passed, seen = 1, 0, 0
    failed: int | None = None
    failure: tuple[RunStatus, str] | None = None
    gone = False
    for line in lines:
        if "bad_tests" in line:
            raise BadTests(f"the tests cannot be used: {line['bad_tests']}")
        total = line.get("total", total)
        if "failed" in line:
            failure = failure or _load_failure(line["failed"])
        kind = line.get("test")
        if kind not in ("pass", None) and failed is None:
            failed = seen
        seen += kind is not None
        passed += kind == "pass"
        gone = gone or kind == "gone"
        if kind in ("wrong", "error", "memory"):
            status = _ENDING.get(kind, RunStatus.RUNTIME_ERROR)
            failure = failure or (status, line["reason"])
    if gone or reply.end != "exit" or reply.exits[0] != 0:
        # The candidate's own end says more than that of the tests' process.
        code = reply.exits[1] if gone else reply.exits[0]
        failure = failure or _unfinished(reply, limits, code)
    elif failure is None and passed < total:
        failure = (RunStatus.RUNTIME_ERROR, "the tests ended early")
    if failure is not None:  # also of a statement that is no test, behind the last of them
        total = max(total, passed + 1)
    if failure is not None and failed is None:  # it ended in the middle of a test
        failed = min(seen, total - 1)
    status, reason = failure or (RunStatus.OK, "")
    return Check(status, passed, total, _writable(reason), out, err, failed)


def _writable(reason: str) -> str:
    """Escape halves of surrogate pairs, which a program may raise and no file takes."""
    return text(reason.encode("utf-8", "backslashreplace"))


def shortened(said: str) -> str:
    """Return the repr of a text, cut to some 100 characters."""
    return repr(said if len(said) <= 100 else said[:97] + "...")


def _shown(args: Sequence[Any]) -> str:
    try:
        said = repr(tuple(args))
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return "(...)"
    return said if len(said) <= 100 else said[:97] + "..."
