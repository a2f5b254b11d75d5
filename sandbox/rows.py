"""Rows of public data sets, each turned into a problem: the plain dict of :mod:`.problem`.

What a row lacks is named with its field and its value. A row without tests is refused: it
would be passed by everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from .packed import unpacked
from .problem import problem_fault

Row = Mapping[str, Any]
Problem = dict[str, Any]


def problem_from_humaneval(row: Row) -> Problem:
    """HumanEval (Chen et al. 2021, arXiv:2107.03374), and HumanEval+ where it has ``test``.

    Raises:
        ValueError: ``prompt``, ``test`` or ``entry_point`` is missing, or no Python.
    """
    return _sound(
        {
            "tests": _text(row, "test"),
            "prompt": _text(row, "prompt"),
            "entry_point": _text(row, "entry_point"),
        }
    )


def problem_from_mbpp(row: Row) -> Problem:
    """MBPP (Austin et al. 2021, arXiv:2108.07732), full or sanitized, and MBPP+.

    The tests are ``test_list``; of MBPP+, which has more of them in ``test``, those.

    Raises:
        ValueError: there are no tests, or they are no Python.
    """
    setup = [row.get("test_setup_code") or "", *(_field(row, "test_imports") or [])]
    if not all(isinstance(line, str) for line in setup):
        raise ValueError(
            f"'test_setup_code' and 'test_imports' must hold text, got {setup!r:.80}. "
            "Correct or remove this row"
        )
    tests = row.get("test")
    if not isinstance(tests, str) or not tests.strip():
        listed = _field(row, "test_list")
        if not _is_list(listed) or not all(isinstance(test, str) for test in listed or [0]):
            raise ValueError(
                f"'test_list' must hold at least one test, as text, got {listed!r:.80}. "
                "Correct or remove this row"
            )
        tests = "\n".join(listed or [])
    return _sound({"tests": tests, "setup": "\n".join(line for line in setup if line)})


def problem_from_apps(row: Row, *, wrapped: bool | None = None) -> Problem:
    """APPS (Hendrycks et al. 2021, arXiv:2105.09938), TACO and what has their layout.

    ``input_output`` has ``inputs`` and ``outputs``: stdin and stdout, each a text or a list of
    lines; or, with ``fn_name``, arguments and results. Where ``starter_code`` has a class
    Solution, the function is a method of it.

    Args:
        row: the row.
        wrapped: each result stands in a list of its own, as ``[[3], [4]]`` for 3 and 4.
            Default: yes where every output is a list of one.

    Raises:
        ValueError: there are no cases, or inputs and outputs do not fit each other.
    """
    given = _json(row, "input_output")
    inputs, outputs = (given.get(k) if isinstance(given, dict) else None for k in _CASES)
    if not _is_list(inputs) or not _is_list(outputs) or len(inputs) != len(outputs) or not inputs:
        raise ValueError(
            "'input_output' must have 'inputs' and 'outputs', lists of the same length and not "
            f"empty, got {given!r:.80}. Correct or remove this row"
        )
    name = given.get("fn_name")
    if not name:
        cases = [
            [_lines("inputs", i, given), _lines("outputs", i, expected)]
            for i, (given, expected) in enumerate(zip(inputs, outputs, strict=True))
        ]
        return _sound({"stdio": cases})
    if wrapped is None:
        wrapped = all(_is_list(output) and len(output) == 1 for output in outputs)
    results = [output[0] for output in outputs] if wrapped else list(outputs)
    return _calls(name, row.get("starter_code"), inputs, results)


_CASES = ("inputs", "outputs")


def problem_from_livecodebench(row: Row) -> Problem:
    """LiveCodeBench (Jain et al. 2024, arXiv:2403.07974): public and private cases together.

    Private cases may be packed; they are read without unpickling anything.

    Raises:
        ValueError: there are no cases, they are of both kinds or packed in another way, or a
            function is tested and ``metadata`` does not name it.
    """
    cases = [*_cases(row, "public_test_cases"), *_cases(row, "private_test_cases")]
    kinds = {case.get("testtype") for case in cases}
    if kinds == {"stdin"}:
        return _sound({"stdio": [[case["input"], case["output"]] for case in cases]})
    if kinds != {"functional"}:
        raise ValueError(
            "the test cases must all have the testtype 'stdin', or all 'functional', got "
            f"{', '.join(sorted(map(repr, kinds))) or 'no cases'}. Correct or remove this row"
        )
    metadata = _json(row, "metadata")
    name = metadata.get("func_name") if isinstance(metadata, dict) else None
    arguments = [[_value(line) for line in _split(case["input"])] for case in cases]
    results = [_value(case["output"]) for case in cases]
    return _calls(name, row.get("starter_code"), arguments, results)


def problem_from_row(row: Row) -> Problem:
    """A problem of a row of any of these data sets, told by its fields; a problem is itself.

    Raises:
        ValueError: it has the fields of none, or its own cannot be used.

    Example:
        >>> problem_from_row({"test_list": ["assert f(1) == 2"]})["tests"]
        'assert f(1) == 2'
    """
    for field, make in _BY_FIELD.items():
        if field in row:
            return make(row)
    if "test" in row and "entry_point" in row:
        return problem_from_humaneval(row)
    if any(kind in row for kind in ("tests", "stdio", "calls")):
        return _sound(dict(row))
    raise ValueError(
        "the row must be one of HumanEval (test, entry_point), MBPP (test_list), APPS "
        "(input_output) or LiveCodeBench (public_test_cases), or have tests, stdio or calls, "
        f"got the fields {', '.join(map(str, row)) or '(none)'}"
    )


_BY_FIELD: dict[str, Callable[[Row], Problem]] = {
    "input_output": problem_from_apps,
    "private_test_cases": problem_from_livecodebench,
    "public_test_cases": problem_from_livecodebench,
    "test_list": problem_from_mbpp,
}


def _sound(problem: Problem) -> Problem:
    fault = problem_fault(problem)
    if fault:
        raise ValueError(f"{fault}. Correct or remove this row")
    return problem


def _text(row: Row, field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        raise ValueError(f"{field!r} must be text, got {value!r:.80}. Correct or remove this row")
    return value


def _json(row: Row, field: str) -> Any:
    """A field that is JSON, or was JSON and is read already."""
    value = _field(row, field)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{field!r} must be JSON, got {value!r:.80} ({error}). Correct or remove this row"
        ) from error


def _field(row: Row, field: str) -> Any:
    """A field whose lists may be arrays, as in a table of pandas."""
    return _plain(row.get(field))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    as_list = getattr(value, "tolist", None)
    return _plain(as_list()) if callable(as_list) else value


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _lines(field: str, number: int, value: Any) -> str:
    """A text, which may be given as its lines."""
    if _is_list(value) and all(isinstance(line, str) for line in value):
        return "\n".join(line.rstrip("\n") for line in value)
    if not isinstance(value, str):
        raise ValueError(
            f"{field}[{number}] must be text, or a list of its lines, got {value!r:.80}. "
            "Correct or remove this row"
        )
    return value


def _calls(name: Any, starter: Any, arguments: Sequence[Any], results: Sequence[Any]) -> Problem:
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(
            "the function under test must be named, 'fn_name' in 'input_output' or 'func_name' "
            f"in 'metadata', got {name!r:.80}. Correct or remove this row"
        )
    for number, given in enumerate(arguments):
        if not _is_list(given):
            raise ValueError(
                f"inputs[{number}] must be the list of a call's arguments, got {given!r:.80}. "
                "Correct or remove this row"
            )
    cases = [[list(a), result] for a, result in zip(arguments, results, strict=True)]
    if isinstance(starter, str) and "class Solution" in starter:
        calls = {"function": f"Solution.{name}", "cases": cases}
        return _sound({"calls": calls, "prompt": _IMPORTED})
    return _sound({"calls": {"function": name, "cases": cases}})


# Starters with a class Solution say List[int] and import nothing: the site that they are from has
# these names there, and so have the data sets' own judges. Where a module and a function have one
# name it is the module.
_IMPORTED = """\
from bisect import *; from collections import *; from functools import *; from heapq import *
from itertools import *; from math import ceil, comb, factorial, floor, gcd, inf, isqrt, lcm, sqrt
from operator import itemgetter, mul, or_, xor; from typing import *
import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
"""


def _cases(row: Row, field: str) -> list[dict[str, Any]]:
    """Test cases of LiveCodeBench."""
    value = _field(row, field)
    if value is None or value == "":
        return []
    if isinstance(value, str) and not value.lstrip().startswith("["):
        try:
            value = unpacked(value)
        except ValueError as error:
            raise ValueError(f"{field!r}: {error}. Correct or remove this row") from error
    cases = _json({field: value}, field)
    if not _is_list(cases) or not all(map(_is_case, cases)):
        raise ValueError(
            f"{field!r} must be a list of cases with 'input' and 'output' as text, got "
            f"{cases!r:.80}. Correct or remove this row"
        )
    return list(cases)


def _is_case(case: Any) -> bool:
    return isinstance(case, dict) and all(
        isinstance(case.get(key), str) for key in ("input", "output")
    )


def _split(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"an argument or result must be JSON, got {text!r:.80} ({error}). "
            "Correct or remove this row"
        ) from error
