"""Rows of public data sets become problems, or say which field is wrong."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.sandbox import (
    Sandbox,
    problem_fault,
    problem_from_apps,
    problem_from_humaneval,
    problem_from_livecodebench,
    problem_from_mbpp,
    problem_from_row,
)
from assay.sandbox.grading.packed import unpacked

BACKENDS = ("bwrap",)  # no problem depends on the backend


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
IO = [{"input": "2\n", "output": "4\n"}]
CALL = [{"input": [2], "output": 4, "fn_name": "double", "type": "function_call"}]
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
        (
            {"inputs": ["1"], "outputs": ["10.0.0.1 v1.2 1."]},
            {"stdio": [["1", "10.0.0.1 v1.2 1."]]},
        ),
        (
            {"inputs": ["1"], "outputs": ["a\n-0.50\n"]},
            {"stdio": [["1", "a\n-0.50\n"]], "tolerance": 1e-5},
        ),
        (
            {"fn_name": "f", "inputs": [[1], [2]], "outputs": [3, [2, [0.5]]]},
            {"calls": {"function": "f", "cases": [[[1], 3], [[2], [2, [0.5]]]]}, "tolerance": 1e-5},
        ),
        (
            {"fn_name": "f", "inputs": [[1]], "outputs": [{"a": 0.5}]},
            {"calls": {"function": "f", "cases": [[[1], {"a": 0.5}]]}, "tolerance": 1e-5},
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
    two = [
        {"input": '[1, 2]\n"a"\n', "output": output, "testtype": "functional"}
        for output in ("null", "2")
    ]
    row = {"public_test_cases": json.dumps(two), "metadata": {"func_name": "f"}}
    read = problem_from_livecodebench(row)["calls"]["cases"]
    assert read == [[[[1, 2], "a"], None], [[[1, 2], "a"], 2]]


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
        ({}, r"the fields \(none\)\. A row must have one of these: test_list"),
        ({"question": "?", "answer": 1}, "the fields question, answer"),
        ({**HUMANEVAL, "test": None}, "'test' must be text, got None"),
        ({**HUMANEVAL, "test": "def check(candidate): pass"}, "assert nothing"),
        ({**HUMANEVAL, "entry_point": "a b"}, "'entry_point' must be the name"),
        ({"test_list": []}, "'test_list' must hold at least one test"),
        ({"test_list": None}, "'test_list' must hold at least one test"),
        ({"test_list": [1]}, "'test_list' must hold at least one test"),
        ({"test_list": np.array([], dtype=object)}, "at least one test"),
        ({"test_list": ["assert ("]}, "not Python"),
        ({"test_list": ["assert 1"], "test_imports": [1]}, "'test_imports'"),
        ({"input_output": ""}, "'input_output' must be JSON"),
        ({"input_output": "[]"}, "'inputs' and 'outputs'"),
        ({"input_output": {"inputs": [], "outputs": []}}, "not empty"),
        ({"input_output": {"inputs": ["1"], "outputs": []}}, "the same length"),
        ({"input_output": {"inputs": [1], "outputs": ["1"]}}, r"inputs\[0\] must be text"),
        ({"input_output": {"inputs": ["1"], "outputs": [None]}}, r"outputs\[0\] must be text"),
        ({"input_output": {"inputs": ["1"], "outputs": [" "]}}, "expects any output"),
        (
            {"input_output": {"fn_name": "f", "inputs": [[[2, 1]]], "outputs": [None]}},
            "every case expects None",
        ),
        ({"input_output": {"inputs": [1], "outputs": [1], "fn_name": "f"}}, r"inputs\[0\]"),
        ({"input_output": {"inputs": [[1]], "outputs": [1], "fn_name": "f("}}, "named"),
        ({"public_test_cases": ""}, "has no test cases"),
        ({"public_test_cases": "[1]"}, "a list of cases"),
        ({"public_test_cases": '[{"input": "1"}]'}, "a list of cases"),
        ({"public_test_cases": STDIN + FUNCTIONAL}, "got both"),
        ({"public_test_cases": FUNCTIONAL}, "must be named"),
        ({**LCB, "public_test_cases": [{**FUNCTIONAL[0], "input": "x"}]}, "must be JSON, got 'x'"),
        ({"tests": "x = 1"}, "assert nothing"),
        ({"stdio": []}, "at least one"),
        ({"tests": []}, "a list of cases"),
        ({"tests": "[assert"}, "JSON, or a Python literal"),
        ({"tests": [{"input": "1", "output": "2", "fn_name": ["f"]}]}, "'fn_name' must be"),
        ({"test_cases": ["x = 1"]}, "assert nothing"),
        ({"test_cases": "__import__('os').getpid()"}, "assert nothing"),
        ({"verification_info": "{'test_cases': [open('/etc/passwd')]}"}, "a Python literal"),
        ({"verification_info": "[" * 100_000}, "a Python literal"),
        (
            {"verification_info": {"language": "cobol", "test_cases": IO}},
            "unknown language 'cobol'",
        ),
        ({"verification_info": {"language": "cpp", "test_cases": CALL}}, "are for Python"),
        ({"verification_info": {"answer": "7"}}, "no tests in the fields answer"),
        ({"test_cases": [*IO, *CALL]}, "got both"),
        ({"test_cases": [*CALL, {**CALL[0], "fn_name": "g"}]}, "the functions double, g"),
        ({"test_cases": [{**CALL[0], "fn_name": None}]}, "must be named"),
        ({"reward_model": {"style": "rule"}}, "no tests in the fields style"),
        ({"ground_truth": r"\frac{1}{2}"}, "not Python"),
        ({"official_tests": IO, "generated_checker": "print(1)"}, "not the only right ones"),
        ({"official_tests": IO, "interaction_format": "Ask."}, "not the only right ones"),
        ({"official_tests": IO, "input_mode": "file"}, "'input_mode' must be 'stdio'"),
        ({"official_tests": [], "input_mode": "stdio"}, "a list of cases"),
        ({"public_tests": {"input": [], "output": []}}, "no test cases"),
        ({"public_tests": {"input": ["1"], "output": ["2"]}, "input_file": "in"}, "must be empty"),
        ({"public_tests": {"input": ["1"], "output": []}}, "the same length"),
        ({"input_output": [{"input": "n = 2", "output": "4"}], "starter_code": DOUBLE}, "Solution"),
        ({"test": "from solution import double\n", "test_info": []}, "assert nothing"),
    ],
)
def test_a_row_that_cannot_be_used_says_why(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        problem_from_row(row)


STDIO = {"stdio": [["2\n", "4\n"]]}
CALLS = {"calls": {"function": "double", "cases": [[[2], 4]]}}
PARALLEL = {"inputs": ["2\n"], "outputs": ["4\n"]}
CHECK = "def check(candidate):\n    assert candidate(2) == 4\n\ncheck(double)"
TYPED = [{**IO[0], "type": "stdin_stdout", "fn_name": None}]
FORMS = {
    "rllm": (PARALLEL, STDIO),
    "rllm as JSON": (json.dumps(PARALLEL), STDIO),
    "lists in the singular": ({"input": ["2\n"], "output": ["4\n"]}, STDIO),
    "PRIME": (
        {"inputs": ["[2]\n7"], "outputs": ["[4]"], "fn_name": "f"},
        {"calls": {"function": "f", "cases": [[[[2], 7], 4]]}},
    ),
    "codeforces of DeepCoder": ({"problem": "?", "tests": json.dumps(IO)}, STDIO),
    "primeintellect of DeepCoder": ({"problem": "?", "tests": json.dumps(TYPED)}, STDIO),
    "a list alone": (IO, STDIO),
    "a problem in a table of several kinds": ({**CALLS, "tests": None, "stdio": None}, CALLS),
    "lcbv5 of DeepCoder": (
        {"tests": [{**FUNCTIONAL[0], "metadata": {"func_name": "double"}}], "problem": "?"},
        CALLS,
    ),
    "SYNTHETIC-1": (
        {"verification_info": json.dumps({"language": "python", "test_cases": TYPED})},
        STDIO,
    ),
    "verifiable-coding-problems": (
        {"verification_info": repr({"language": "python", "test_cases": CALL}), "problem_id": "1"},
        CALLS,
    ),
    "a method that the question shows": (
        {
            "prompt": f"Double a number.\n\n{DOUBLE}",
            "verification_info": {"language": "python", "test_cases": CALL},
        },
        {"calls": {**CALLS["calls"], "function": "Solution.double"}},
    ),
    "a method that a message shows": (
        {
            "prompt": [{"role": "user", "content": f"Begin with\n{DOUBLE}"}],
            "reward_model": {"ground_truth": json.dumps(CALL)},
        },
        {"calls": {**CALLS["calls"], "function": "Solution.double"}},
    ),
    "a class without the method": (
        {"prompt": "class Solution:\n    def treble(self", "test_cases": CALL},
        CALLS,
    ),
    "another language": (
        {"verification_info": {"language": "C++", "test_cases": IO}},
        {**STDIO, "language": "cpp"},
    ),
    "AceCode": (
        {"question": "?", "test_cases": ["assert double(2) == 4"]},
        {"tests": "assert double(2) == 4"},
    ),
    "open-r1/codeforces": (
        {
            "official_tests": IO,
            "generated_tests": 12,
            "generated_checker": None,
            "interaction_format": None,
            "input_mode": "stdio",
            "language": "python",
        },
        STDIO,
    ),
    "code_contests": (
        {
            "public_tests": {"input": [], "output": []},
            "private_tests": {"input": ["2\n"], "output": ["4\n"]},
            "generated_tests": {"input": ["3"], "output": ["6"]},
            "input_file": "",
        },
        {"stdio": [["2\n", "4\n"], ["3", "6"]]},
    ),
    "Eurus-2 in verl": (
        {
            "data_source": "taco",
            "prompt": [{"role": "user", "content": "?"}],
            "ability": "code",
            "reward_model": {"ground_truth": json.dumps(PARALLEL), "style": "rule"},
            "extra_info": {"index": 0},
        },
        STDIO,
    ),
    "code-r1": (
        {"reward_model": {"ground_truth": json.dumps({"functional": CHECK})}},
        {"tests": CHECK, "entry_point": "double"},
    ),
    "KodCode": (
        {
            "question": "?",
            "solution": "",
            "test": "def test_it():\n    assert f()",
            "test_info": [],
        },
        {"tests": "def test_it():\n    assert f()"},
    ),
    "NeMo Gym": ({"verifier_metadata": None, "unit_tests": PARALLEL}, STDIO),
    "columns of nulls": ({"test_list": None, "input_output": None, "tests": IO}, STDIO),
    "our own reference in verl": (
        {"reward_model": {"ground_truth": json.dumps(CALLS)}, "metadata": {}, "prompt": []},
        CALLS,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_tests_are_read_in_the_form_of_each_data_set(name: str) -> None:
    row, problem = FORMS[name]
    found = problem_from_row(row)
    if "Solution" in str(problem):
        assert "from typing import *" in found.pop("prompt")
    assert found == problem
    if isinstance(row, dict):
        as_arrays = {
            key: np.array(value, dtype=object) if isinstance(value, list) else value
            for key, value in row.items()
        }
        assert problem_from_row(as_arrays) == problem_from_row(row)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["tests", "inputs", "outputs", "input", "output", "fn_name"])
                | st.sampled_from(["test_cases", "metadata", "reward_model", "test", "language"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_row_is_a_problem_that_can_be_used_or_a_value_error(row: Any) -> None:
    for form in (row, json.dumps(row), repr(row)):
        try:
            problem = problem_from_row(form)
        except ValueError:
            continue
        assert not problem_fault(problem)


def test_a_literal_is_parsed_only_if_that_is_cheap() -> None:
    cases = {"test_cases": [{"input": "1 " * 10**6, "output": "2"}]}
    assert problem_from_row({"verification_info": repr(cases)})["stdio"][0][1] == "2"
    for parts in ("1," * 10**6, "-" * 10**6, "1+" * 10**6, "'a' " * 10**6, "(" * 10**6):
        with pytest.raises(ValueError, match="of at most 100,000 parts"):
            problem_from_row({"verification_info": f"{{'x': [{parts}1]}} {{"})


def test_tests_that_are_nested_too_deeply_are_refused() -> None:
    row: dict[str, Any] = {"inputs": ["1"], "outputs": ["2"]}
    for _ in range(5000):
        row = {"tests": row}
    with pytest.raises(ValueError, match="nested too deeply"):
        problem_from_row(row)


METHOD = {
    "task_id": "add-lists",
    "prompt": "from typing import *\n\nclass Node:\n    def __init__(self, value):\n"
    "        self.value = value\n\ndef node(value):\n    return Node(value)\n\n"
    "def same(a, b):\n    return a.value == b.value\n",
    "entry_point": "Solution().add",
    "test": "def check(candidate):\n"
    "    assert same(candidate(one = node(2), other = node(3)), node(5))\n",
    "input_output": [{"input": "one = [2], other = [3]", "output": "[5]"}],
}
ADD = "class Solution:\n    def add(self, one: Optional[Node], other) -> List[int]:\n        "
NODE = "    def __init__(self, value): self.value = value\n"
PEEK = (  # an object that would show what the tests make of what they expect
    "made = []\nclass Node:\n    def __init__(self, value): self.value = value; made.append(self)\n"
    "class Last:\n    value = property(lambda self: made[-1].value)\n" + ADD + "return Last()"
)

ROWS = [
    (METHOD, ADD + "return Node(one.value + other.value)", ADD + "return Node(one.value)"),
    (METHOD, ADD + "return node(one.value + other.value)", "def add(one, other): return node(5)"),
    (METHOD, f"class Node:\n    __slots__ = ['value']\n{NODE}\n{ADD}return node(5)", PEEK),
    (FORMS["code-r1"][0], "def double(x): return 2 * x", "def double(x): return x"),
    (FORMS["AceCode"][0], "def double(x): return 2 * x", "def double(x): return x"),
    (
        {"test": "from solution import double\n\ndef test_two():\n    assert double(2) == 4\n"},
        "def double(x): return 2 * x",
        "def double(x): return x",
    ),
    (HUMANEVAL, "    return 2 * x\n", "    return x\n"),
    (MBPP, "def double(x): return 2 * x", "def double(x): return 4"),
    (LCB, DOUBLE, DOUBLE.replace("2", "3")),
    ({"public_test_cases": STDIN}, "print(2 * int(input()))", "print(5)"),
    ({"stdio": [["", "0.5"]], "tolerance": 0.01}, "print(0.501)", "print(0.6)"),
    ({"calls": {"function": "f", "cases": [[[], [1, 2]]]}}, "def f(): return 1, 2", "f = list"),
    ({"inputs": ["3"], "outputs": ["1.666666667"]}, "print(5 / int(input()))", "print(1.6667)"),
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


NAMES = """\
class Solution:
    total = 0

    def __init__(self):
        self.seen = []

    def top(self, nums: List[int]) -> int:
        self.seen += deepcopy(nums)
        assert log2(prod([2, 4])) == 3 and pow(2, 3, 5) == 3 and add(1, 2) == 3 and floor(pi) == 3
        assert ascii_lowercase[2] == "c" and re.sub("a", "b", "a") == "b" and median([5]) == 5
        assert datetime.date(2020, 1, 2) == date(2020, 1, 2) and json.loads("[]") == []

        @cache
        def depth(n):
            return n and 1 + depth(n - 1)

        return depth(len(self.seen))
"""


def test_each_case_has_an_object_and_names_of_the_site(box: Sandbox) -> None:
    calls = {"fn_name": "top", "inputs": [[[0] * 3000], [[5]]], "outputs": [3000, 1]}
    problem = problem_from_apps({"starter_code": STARTER, "input_output": calls})
    check = box.check_problem(NAMES, problem)
    assert check.solved, check
