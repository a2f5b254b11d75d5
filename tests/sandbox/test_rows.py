"""Rows of public data sets become problems, or say which field is wrong."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import numpy as np
import pytest

from assay.sandbox import (
    Sandbox,
    problem_from_apps,
    problem_from_humaneval,
    problem_from_livecodebench,
    problem_from_mbpp,
    problem_from_row,
)
from assay.sandbox.packed import unpacked


def pack(value: object, protocol: int | None = None) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


HUMANEVAL = {
    "task_id": "x/0",
    "prompt": "def double(x):\n    '''Twice x.'''\n",
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
MBPP = {
    "task_id": 1,
    "text": "Double.",
    "code": "def double(x): return 2 * x",
    "test_list": ["assert double(2) == 4", "assert double(x) == 10"],
    "test_setup_code": "x = 5",
}
DOUBLE = "class Solution:\n    def double(self, x): return 2 * x"
FUNCTIONAL = [{"input": "2", "output": "4", "testtype": "functional"}]
STDIN = [{"input": "2\n", "output": "4\n", "testtype": "stdin"}]
LCB = {
    "question_content": "Double.",
    "starter_code": "class Solution:\n    def double(self, x: int) -> int:\n        ",
    "metadata": json.dumps({"func_name": "double"}),
    "public_test_cases": json.dumps(FUNCTIONAL),
    "private_test_cases": pack(json.dumps([{**FUNCTIONAL[0], "input": "5", "output": "10"}])),
}


def test_humaneval() -> None:
    problem = problem_from_humaneval(HUMANEVAL)
    assert problem == {
        "tests": HUMANEVAL["test"],
        "prompt": HUMANEVAL["prompt"],
        "entry_point": "double",
    }


def test_mbpp_in_its_three_forms() -> None:
    full = {"tests": "assert double(2) == 4\nassert double(x) == 10", "setup": "x = 5"}
    assert problem_from_mbpp(MBPP) == full
    sanitized = {"prompt": "Double.", "test_imports": ["import math", "x = 5"]}
    sanitized["test_list"] = MBPP["test_list"]  # type: ignore[assignment]
    assert problem_from_mbpp(sanitized) == {**full, "setup": "import math\nx = 5"}
    assert problem_from_mbpp({**MBPP, "test": "assert double(9) == 18"}) == {
        "tests": "assert double(9) == 18",
        "setup": "x = 5",
    }


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        ({"inputs": ["1\n"], "outputs": ["2\n"]}, {"stdio": [["1\n", "2\n"]]}),
        (
            {"inputs": [["1", "2"], "3"], "outputs": [["4\n", "5\n"], "6"]},
            {"stdio": [["1\n2", "4\n5"], ["3", "6"]]},
        ),
        (
            {"fn_name": "f", "inputs": [[1, [2]], [3, []]], "outputs": [[3], [6]]},
            {"calls": {"function": "f", "cases": [[[1, [2]], 3], [[3, []], 6]]}},
        ),
        (
            {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [1, 2]]},
            {"calls": {"function": "f", "cases": [[[1], [1]], [[2], [1, 2]]]}},
        ),
    ],
)
def test_apps(cases: dict[str, Any], problem: dict[str, Any]) -> None:
    assert problem_from_apps({"input_output": json.dumps(cases)}) == problem
    assert problem_from_apps({"input_output": cases}) == problem


def test_apps_results_may_be_lists_of_one() -> None:
    row = {"input_output": {"fn_name": "f", "inputs": [[1]], "outputs": [[1]]}}
    assert problem_from_apps(row)["calls"]["cases"] == [[[1], 1]]
    assert problem_from_apps(row, wrapped=False)["calls"]["cases"] == [[[1], [1]]]
    row["starter_code"] = "class Solution:\n    def f(self, x):"  # type: ignore[assignment]
    assert problem_from_apps(row)["calls"]["function"] == "Solution.f"


def test_livecodebench() -> None:
    calls = {"function": "Solution.double", "cases": [[[2], 4], [[5], 10]]}
    assert problem_from_livecodebench(LCB)["calls"] == calls
    row = {"public_test_cases": STDIN, "private_test_cases": json.dumps(STDIN)}
    assert problem_from_livecodebench(row) == {"stdio": [["2\n", "4\n"]] * 2}
    two = [{"input": '[1, 2]\n"a"\n', "output": "null", "testtype": "functional"}]
    row = {"public_test_cases": json.dumps(two), "metadata": {"func_name": "f"}}
    assert problem_from_livecodebench(row)["calls"]["cases"] == [[[[1, 2], "a"], None]]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", ["", "[1]", "naïve \u2603 \U0001f600 \ud800", "x" * 100_000])
def test_a_packed_text_is_read_whatever_the_protocol(protocol: int, text: str) -> None:
    assert unpacked(pack(text, protocol)) == text


class Trap:
    """Fails the test that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize(
    ("packed", "rule"),
    [
        (pack(Trap()), "GLOBAL"),
        (pack(["[]"]), "EMPTY_LIST"),
        (pack(b"[]"), "BINBYTES"),
        (pack(("[]", Trap())), "one pickled text"),
        (pack("[]", 4)[:-8], "zlib"),
        (base64.b64encode(zlib.compress(b"nothing")).decode(), "one pickled text"),
        (base64.b64encode(zlib.compress(b".")).decode(), "got 0"),
        (base64.b64encode(zlib.compress(b"")).decode(), "one pickled text"),
        (base64.b64encode(b"[]").decode(), "zlib"),
        ("%%%", "base64"),
    ],
)
def test_anything_but_one_text_is_refused_unread(packed: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        unpacked(packed)
    with pytest.raises(ValueError, match=f"'private_test_cases'.*{rule}"):
        problem_from_row({"private_test_cases": packed})


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({}, r"the fields \(none\)"),
        ({"question": "?", "answer": 1}, "the fields question, answer"),
        ({**HUMANEVAL, "test": None}, "'test' must be text, got None"),
        ({**HUMANEVAL, "test": "def check(candidate): pass"}, "assert nothing"),
        ({**HUMANEVAL, "entry_point": "a b"}, "'entry_point' must be the name"),
        ({"test_list": []}, "'test_list' must hold at least one test"),
        ({"test_list": None}, "'test_list' must hold at least one test"),
        ({"test_list": [1]}, "'test_list' must hold at least one test"),
        ({"test_list": ["assert ("]}, "not Python"),
        ({"test_list": ["assert 1"], "test_imports": [1]}, "'test_imports'"),
        ({"input_output": ""}, "'input_output' must be JSON"),
        ({"input_output": "[]"}, "'inputs' and 'outputs'"),
        ({"input_output": {"inputs": [], "outputs": []}}, "not empty"),
        ({"input_output": {"inputs": ["1"], "outputs": []}}, "the same length"),
        ({"input_output": {"inputs": [1], "outputs": ["1"]}}, r"inputs\[0\] must be text"),
        ({"input_output": {"inputs": ["1"], "outputs": [None]}}, r"outputs\[0\] must be text"),
        ({"input_output": {"inputs": ["1"], "outputs": [" "]}}, "expects any output"),
        ({"input_output": {"inputs": [1], "outputs": [1], "fn_name": "f"}}, r"inputs\[0\]"),
        ({"input_output": {"inputs": [[1]], "outputs": [1], "fn_name": "f("}}, "named"),
        ({"public_test_cases": ""}, "got no cases"),
        ({"public_test_cases": "[1]"}, "a list of cases"),
        ({"public_test_cases": '[{"input": "1"}]'}, "a list of cases"),
        ({"public_test_cases": STDIN + FUNCTIONAL}, "all have the testtype"),
        ({"public_test_cases": FUNCTIONAL}, "must be named"),
        ({**LCB, "public_test_cases": [{**FUNCTIONAL[0], "input": "x"}]}, "must be JSON, got 'x'"),
        ({"tests": "x = 1"}, "assert nothing"),
        ({"stdio": []}, "at least one"),
    ],
)
def test_a_row_that_cannot_be_used_says_why(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        problem_from_row(row)


ROWS = [
    (HUMANEVAL, "    return 2 * x\n", "    return x\n"),
    (MBPP, "def double(x): return 2 * x", "def double(x): return 4"),
    (LCB, DOUBLE, DOUBLE.replace("2", "3")),
    ({"public_test_cases": STDIN}, "print(2 * int(input()))", "print(5)"),
    ({"stdio": [["", "0.5"]], "tolerance": 0.01}, "print(0.501)", "print(0.6)"),
    ({"calls": {"function": "f", "cases": [[[], [1, 2]]]}}, "def f(): return 1, 2", "f = list"),
]


@pytest.mark.parametrize(("row", "right", "wrong"), ROWS)
def test_problems_are_judged(box: Sandbox, row: dict[str, Any], right: str, wrong: str) -> None:
    problem = problem_from_row(row)
    assert json.loads(json.dumps(problem)) == problem
    assert problem_from_row(problem) == problem
    assert box.check_problem(right, problem).solved
    assert not box.check_problem(wrong, problem).solved


def test_a_problem_that_cannot_be_used_is_named(box: Sandbox) -> None:
    with pytest.raises(ValueError, match="the problem cannot be used: a reference must be a dict"):
        box.check_problem("", [])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="assert nothing"):
        box.check_problem("", {"tests": "f()"})


STARTER = "class Solution:\n    def top(self, nums: List[int]) -> Optional[int]:\n        "
TOP = STARTER + "return max(Counter(nums).items(), key=itemgetter(1))[0]"


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_method_may_use_the_names_that_its_starter_takes_for_granted(
    box: Sandbox, future: str
) -> None:
    case = {"input": "[3, 5, 5]", "output": "5", "testtype": "functional"}
    row = {"starter_code": STARTER, "metadata": {"func_name": "top"}}
    problem = problem_from_livecodebench({**row, "public_test_cases": [case]})
    assert box.check_problem(future + TOP, problem).solved
    cases = {"fn_name": "top", "inputs": [[[3, 5, 5]]], "outputs": [[5]]}
    problem = problem_from_apps({"starter_code": STARTER, "input_output": cases})
    assert box.check_problem(future + TOP, problem).solved
    wrong = TOP.replace("max", "min")
    assert box.check_problem(wrong, problem).passed == 0


def test_lists_of_a_row_may_be_arrays() -> None:
    """As pandas reads them from a file of columns."""
    tests = np.array(["assert f(1) == 2", "assert f(2) == 3"], dtype=object)
    imports = np.array(["import math", "import re"], dtype=object)
    row = {"test_list": tests, "test_imports": imports}
    assert problem_from_row(row) == {
        "tests": "assert f(1) == 2\nassert f(2) == 3",
        "setup": "import math\nimport re",
    }
    assert problem_from_row({**row, "test_imports": np.array([], dtype=object)})["setup"] == ""
    lines = np.array([["1", "2"]], dtype=object)
    io = {"inputs": lines, "outputs": np.array(["3"], dtype=object)}
    assert problem_from_row({"input_output": io}) == {"stdio": [["1\n2", "3"]]}
    calls = {"fn_name": "f", "inputs": np.array([[1, 2]]), "outputs": np.array([[3]])}
    problem = problem_from_row({"input_output": calls})
    assert problem == {"calls": {"function": "f", "cases": [[[1, 2], 3]]}}
    cases = np.array([{"input": "1", "output": "2", "testtype": "stdin"}], dtype=object)
    assert problem_from_row({"public_test_cases": cases}) == {"stdio": [["1", "2"]]}
    with pytest.raises(ValueError, match="at least one test"):
        problem_from_row({"test_list": np.array([], dtype=object)})
