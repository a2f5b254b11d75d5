"""Test cases in the forms that data sets give them, as inputs with outputs or as calls."""

from __future__ import annotations

import ast
import json
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from ..languages.language import PYTHON, find_language
from .problem import problem_fault

Row = Mapping[str, Any]
Problem = dict[str, Any]

REMEDY = "Correct or remove this row"
LONGEST_LITERAL = 16 << 20
"""Characters of a Python literal."""
_MOST_PARTS = 100_000
"""Of a Python literal, by its punctuation: the parser needs about a kilobyte for each."""

_TOLERANCE = 1e-5
"""For rows that expect decimals, as the judges of APPS (``np.allclose``) and LeetCode allow."""
_DECIMAL = re.compile(r"(?<!\S)-?\d+\.\d+(?!\S)")

_PAIRS = (("inputs", "outputs"), ("input", "output"))
_CALLS = ("functional", "function_call")


@dataclass(frozen=True)
class Case:
    """One test case.

    Attributes:
        given: the program's input: text, lines, or the arguments of a call.
        expected: the output or the result.
        function: the function that is called; empty if the case does not name one.
        is_call: the case is a call, also if it does not name the function.
        bare: a list of one result is a list, never a result in a list of its own.
    """

    given: Any
    expected: Any
    function: str = ""
    is_call: bool = False
    bare: bool = False


def is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    """Return True for a list or tuple."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def plain(value: Any) -> Any:
    """Turn arrays, as a table of pandas has them, and tuples into lists."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    as_list = getattr(value, "tolist", None)
    return plain(as_list()) if callable(as_list) else value


def read_data(value: Any, where: str) -> Any:
    """Read JSON, or the text of a Python literal; anything but text is returned as it is.

    Raises:
        ValueError: the text is neither.
    """
    if not isinstance(value, str):
        return plain(value)
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        fault = error
    try:
        parts = sum(map(value.count, "[({,+-~"))
        if len(value) <= LONGEST_LITERAL and parts <= _MOST_PARTS:
            return plain(ast.literal_eval(value.strip()))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass  # the message of the JSON reader says more
    raise ValueError(
        f"{where!r} must be JSON, or a Python literal of at most {_MOST_PARTS:,} parts, "
        f"got {_shown(value)} ({fault}). {REMEDY}"
    ) from fault


def cases_of(value: Any, where: str) -> list[Case]:
    """Read a list of ``{"input", "output"}``, or parallel lists of inputs and outputs.

    Raises:
        ValueError: ``value`` is neither, or has no case.
    """
    if isinstance(value, Mapping):
        return _parallel(value, where)
    if not is_list(value) or not value or not all(map(_is_case, value)):
        raise ValueError(
            f"{where!r} must be a list of cases with 'input' and 'output', or an object with the "
            f"lists 'inputs' and 'outputs', got {_shown(value)}. {REMEDY}"
        )
    return [_case(case) for case in value]


def sound(problem: Problem) -> Problem:
    """Return a problem that can be used.

    Raises:
        ValueError: it cannot.
    """
    fault = problem_fault(problem)
    if fault:
        raise ValueError(f"{fault}. {REMEDY}")
    return problem


def problem_of_cases(
    cases: Sequence[Case],
    *,
    function: Any = None,
    starter: Any = None,
    shown: Iterable[str] = (),
    language: str | None = None,
    wrapped: bool | None = None,
) -> Problem:
    """Make a problem of cases that are all inputs with outputs, or all calls of one function.

    Args:
        cases: at least one.
        function: the function that is called, if the cases do not name it.
        starter: code that a program begins with. If it has a class Solution, the function is a
            method of that.
        shown: other texts of the row, such as its question, that may have this class with the
            method.
        language: the language of the programs; ``None`` for Python.
        wrapped: each result is in a list of its own, as ``[[3], [4]]`` for 3 and 4. Default: yes
            if every result is a list of one.

    Raises:
        ValueError: the cases do not fit each other, or cannot be used.
    """
    kinds = {case.is_call for case in cases}
    names = sorted({case.function for case in cases if case.function})
    of_class = isinstance(starter, str) and "class Solution" in starter
    if len(kinds) != 1 or len(names) > 1:
        got = f"the functions {', '.join(names)}" if len(names) > 1 else "both"
        raise ValueError(
            "the cases must all be inputs with outputs, or all be calls of one function, got "
            f"{got:.80}. {REMEDY}"
        )
    if kinds == {False}:
        if of_class:
            raise ValueError(
                "the starter code has a class Solution, and no case names the method to call: "
                f"give 'fn_name' beside 'inputs', or 'func_name' in 'metadata'. {REMEDY}"
            )
        pairs = [
            [_lines("inputs", i, case.given), _lines("outputs", i, case.expected)]
            for i, case in enumerate(cases)
        ]
        problem: Problem = {"stdio": pairs, **_tolerance([out for _, out in pairs])}
        return sound(problem if language is None else {**problem, "language": language})
    name = names[0] if names else function
    of_class = of_class or any("class Solution" in t and f"def {name}(self" in t for t in shown)
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(
            "the function under test must be named, by 'fn_name' beside the cases or 'func_name' "
            f"in 'metadata', got {name!r:.80}. {REMEDY}"
        )
    if language is not None and find_language(language) is not PYTHON:
        raise ValueError(f"calls of a function are for Python, got the language {language!r}")
    arguments = [_arguments(i, case.given) for i, case in enumerate(cases)]
    results = [_value(c.expected) if isinstance(c.given, str) else c.expected for c in cases]
    if wrapped is None:
        wrapped = not any(case.bare for case in cases) and all(
            is_list(result) and len(result) == 1 for result in results
        )
    results = [result[0] for result in results] if wrapped else results
    calls = {
        "function": f"Solution.{name}" if of_class else name,
        "cases": [[a, result] for a, result in zip(arguments, results, strict=True)],
    }
    problem = {"calls": calls, **_tolerance(results)}
    return sound({**problem, "prompt": _IMPORTED} if of_class else problem)


def _tolerance(expected: Any) -> Problem:
    """Return the key ``tolerance`` if decimals are expected: their last digits are no answer."""
    return {"tolerance": _TOLERANCE} if _has_decimals(expected) else {}


def _has_decimals(value: Any) -> bool:
    if isinstance(value, str):
        return _DECIMAL.search(value) is not None
    parts = value.values() if isinstance(value, Mapping) else value if is_list(value) else ()
    return isinstance(value, float) or any(map(_has_decimals, parts))


def _parallel(value: Row, where: str) -> list[Case]:
    for given, expected in _PAIRS:
        inputs, outputs = value.get(given), value.get(expected)
        if is_list(inputs) and is_list(outputs) and len(inputs) == len(outputs) and inputs:
            name = _name(value.get("fn_name"))
            return [Case(i, o, name, bool(name)) for i, o in zip(inputs, outputs, strict=True)]
    raise ValueError(
        f"{where!r} must have 'inputs' and 'outputs', lists of the same length and not empty, "
        f"got {_shown(value)}. {REMEDY}"
    )


def _is_case(case: Any) -> bool:
    return isinstance(case, Mapping) and "input" in case and "output" in case


def _case(case: Row) -> Case:
    metadata = case.get("metadata")
    inner = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    name = _name(case.get("fn_name") or inner)
    kind = case.get("testtype") or case.get("type")
    is_call = kind in _CALLS or bool(name)
    return Case(case["input"], case["output"], name, is_call, "testtype" in case)


def _name(value: Any) -> str:
    if value and not isinstance(value, str):
        raise ValueError(f"'fn_name' must be the name of a function, got {_shown(value)}. {REMEDY}")
    return value or ""


def _lines(field: str, number: int, value: Any) -> str:
    """Return a text, which may be given as its lines."""
    if is_list(value) and all(isinstance(line, str) for line in value):
        return "\n".join(line.rstrip("\n") for line in value)
    if not isinstance(value, str):
        raise ValueError(
            f"{field}[{number}] must be text, or a list of its lines, got {_shown(value)}. {REMEDY}"
        )
    return value


def _arguments(number: int, given: Any) -> list[Any]:
    """Return a call's arguments; as text they are JSON, one a line."""
    if isinstance(given, str):
        return [_value(line) for line in given.split("\n") if line.strip()]
    if not is_list(given):
        raise ValueError(
            f"inputs[{number}] must be the list of a call's arguments, got {_shown(given)}. "
            f"{REMEDY}"
        )
    return list(given)


def _value(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"an argument or result must be JSON, got {text!r:.80} ({error}). {REMEDY}"
        ) from error


# Starters with a class Solution say List[int] and import nothing: the site that they are from has
# these names and this recursion limit, and so have the data sets' own judges. Where a module and
# a function have one name it is the module.
_IMPORTED = """\
from typing import *; from string import *; from re import *; from datetime import *
from collections import *; from heapq import *; from bisect import *; from copy import *
from math import *; from random import *; from statistics import *; from itertools import *
from functools import *; from operator import *; from io import *; from sys import *
from json import *; from builtins import *
import bisect, collections, copy, datetime, functools, heapq, io, itertools, json, math, operator
import random, re, statistics, string, sys
sys.setrecursionlimit(50_000)
"""


def _shown(value: Any) -> str:
    """Show the beginning of a value; repr itself takes the square of the time for deep nesting."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 80
    return short.repr(value)[:80]
