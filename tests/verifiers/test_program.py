import gc
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from assay.sandbox import Limits, ProgrammingLanguage, Sandbox, SandboxUnavailable, find_language
from assay.sandbox.grading.prompt import assemble_program
from assay.verifiers import Code, Status
from assay.verifiers.text.fences import find_program

PROMPT = "import math\n\ndef helper(x):\n    return x\n\ndef area(r):\n    '''Area of a disc.'''\n"
TESTS = {"tests": "assert add(1, 2) == 3\nassert add(-1, 1) == 0\nassert add(0, 0) == 0"}
ADD = "def add(a, b):\n    return a + b\n"


@pytest.fixture(scope="module")
def code() -> Iterator[Code]:
    with Sandbox(backend="bwrap", slots=2) as box:
        yield Code(box)


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("a\n```py\nx = 1\n```\nb\n```python\nx = 2\n```\nc", "x = 2\n"),
        ("```\nx = 1\n```\n```bash\nls\n```", "x = 1\n"),
        ("<think>```python\nx = 0\n```</think>\n```python\nx = 1\n```", "x = 1\n"),
        ("x = 1", "x = 1\n"),
        ("\n\n    return 1\n\n", "    return 1\n"),
        ("```python\n\n    return 1\n```", "    return 1\n"),
        ("1. So:\n   ```python\nx = 1\n   ```", "x = 1\n"),
        ("- So:\n  ```python\n  if x:\n    y = 1\n\n  ```\n", "if x:\n  y = 1\n"),
        ("1.\tSo:\n\t```python\n\tif x:\n\t\ty = 1\n\t```", "if x:\n\ty = 1\n"),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("\ufeffx = 1\n", "x = 1\n"),
        ("~~~\nx = 1\n```\n~~~~", "x = 1\n```\n"),
        ("````python\nx = 1\n```\n````", "x = 1\n```\n"),
        ("```Python3\nx = 1\n```", "x = 1\n"),
        ("``` {.python}\nx = 1\n```", "x = 1\n"),
        ("```python title='a.py'\r\nx = 1\r\n```\r\n", "x = 1\n"),
        ("```python:a.py\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1\n```\nIt prints\n```\n1\n```", "x = 1\n"),
        ("```python\nx = 1\n```\nIt prints\n```\n1", "x = 1\n"),
        ("```python\nx = 1\n```\n```", "x = 1\n"),
        ("```\nx = 1\n```\n```\n", "x = 1\n"),
        ("```use it```\n```python\nx = 1\n```", "x = 1\n"),
        ("```text\nit's '''\n```\n```python\nx = 1\n```", "x = 1\n"),
        (
            '```python\nx = "\'\'\'"  # """\n```\n```py\ny = 1\n```',
            "y = 1\n",
        ),
        ("<think>x</think>\n<answer>\ny = 1\n</answer>", "y = 1\n"),
        ("<answer>\n```python\ny = 1\n```\n</answer>", "y = 1\n"),
        ("<answer>```python\ny = 1\n```</answer>\n", "y = 1\n"),
        ("So:\n<answer>```python\ny = 1\n```</answer>", "y = 1\n"),
        ("So:\n```\nx = 1\n```\n<answer>\n```python\ny = 1\n```</answer>", "y = 1\n"),
        ("<reasoning>x</reasoning>\n<answer>\n  y = 1\n</answer>", "  y = 1\n"),
        ("```python\ny = 1\n```\n<answer>\nAs above.\n</answer>", "y = 1\n"),
        ("```python\ny = 1```", "y = 1\n"),
        ("```python\ny = 1\n```\n```python\ny = 2```\n", "y = 2\n"),
    ],
)
def test_the_program_is_found(reply: str, program: str) -> None:
    assert find_program(reply)[0] == program


SHOWN = "```python\ndef f(x):\n    return x\n```\nUse it so:\n```python\n{}\n```\n"


@pytest.mark.parametrize(
    ("last", "wanted", "program"),
    [
        ("print(f(1))", "assert f(1) == 1", "def f(x):\n    return x\n"),
        ("def main():\n    print(f(1))", "f", "def f(x):\n    return x\n"),
        ("def f(x):\n    return -x", "f", "def f(x):\n    return -x\n"),
        ("async def f(x): pass", "f", "async def f(x): pass\n"),
        ("print(f(1))", "", "print(f(1))\n"),
        ("print(f(1))", "class g", "print(f(1))\n"),
        ("print(int(input()) * 2)", "f", "print(int(input()) * 2)\n"),  # another program
        ("def g(x): return x", "f", "def g(x): return x\n"),
        ("f = lambda x: -x", "f", "f = lambda x: -x\n"),
        ("class A:\n    def f(self, x): return x", "f", "class A:\n    def f(self, x): return x\n"),
        ("y: int = f(1)\nassert f(y) == y", "f", "def f(x):\n    return x\n"),
        (
            "def test_f():\n    assert f(1) == 1",
            "from solution import f\ndef test_f():\n    assert f(2) == 2",
            "def f(x):\n    return x\n",
        ),
        (
            "class TestF(TestCase):\n    def test(self): assert f(1) == 1",
            "class TestF(TestCase):\n    def test(self): assert f(2) == 2",
            "def f(x):\n    return x\n",
        ),
    ],
)
def test_an_example_of_use_is_not_the_program(last: str, wanted: str, program: str) -> None:
    assert find_program(SHOWN.format(last), wanted=wanted) == (program, "")


@pytest.mark.parametrize("quote", ['"""', "'''"])
@pytest.mark.parametrize("indent", ["", "    "])
def test_a_fence_in_a_docstring_closes_nothing(quote: str, indent: str) -> None:
    docstring = f"{indent}{quote}It's so:\n{indent}```\n{indent}f()\n{indent}```\n{indent}{quote}\n"
    program = f"def f():\n{docstring}    return 1\n" if indent else f"{docstring}x = 1\n"
    assert find_program(f"So:\n```python\n{program}```\nDone.") == (program, "")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no program"),
        (" \n", "no program"),
        ("```python\n```", "no program"),
        ("```python\nx = 1", "never closed"),
        ("```python\nx = 1\n```\n```python\nx =", "never closed"),
        ("```bash\nls\n```", "no fenced block of Python"),
        ("<think>x = 1", "never closed"),
    ],
)
def test_a_reply_without_a_program_says_why(reply: str, reason: str) -> None:
    program, why = find_program(reply)
    assert program is None
    assert reason in why


def test_a_body_continues_the_prompt_and_a_function_takes_its_helpers() -> None:
    body = "    return math.pi * helper(r) ** 2\n"
    assert assemble_program(body, PROMPT, "area") == PROMPT + body
    whole = "def area(r):\n    return 3\n"
    assert assemble_program(whole, PROMPT, "area") == PROMPT[: PROMPT.index("def area")] + whole
    assert assemble_program(whole, "", None) == whole


@pytest.mark.parametrize(
    "future",
    ["from __future__ import annotations\n", "from __future__ import (\n    annotations,\n)\n"],
)
def test_future_imports_come_before_the_prompt(future: str) -> None:
    whole = f'"""Discs."""\n{future}import re\n\ndef area(r: Disc) -> float:\n    return 3\n'
    program = assemble_program(whole, PROMPT, "area")
    compile(program, "main.py", "exec")
    assert program.startswith(future)


@pytest.mark.bwrap
def test_a_null_is_no_value(code: Code) -> None:
    """A table with references of several kinds has nulls for the others'."""
    empty = dict.fromkeys(("tests", "stdio", "calls", "language", "prompt", "tolerance"))
    for reference, reply in (
        ({"tests": "assert f(1) == 1"}, "def f(x): return x"),
        ({"stdio": [["", "1"]]}, "print(1)"),
        ({"calls": {"function": "f", "cases": [[[1], 1]]}}, "def f(x): return x"),
    ):
        assert code.verify(f"```python\n{reply}\n```", {**empty, **reference}).score == 1.0


@pytest.mark.parametrize(
    ("reference", "fault"),
    [
        (None, "must be a dict"),
        ({}, "exactly one of 'tests', 'stdio' and 'calls', got nothing"),
        ({"prompt": "x"}, "exactly one of"),
        ({"tests": "assert f()", "stdio": [["", ""]]}, "exactly one of"),
        ({"tests": "assert f()", "entrypoint": "f"}, "has no key 'entrypoint'"),
        ({"tests": 3}, "'tests' must be a string"),
        ({"tests": " "}, "'tests' is empty"),
        ({"tests": "assert f("}, "'tests' is not Python"),
        ({"tests": "assert f()", "setup": "import"}, "'setup' is not Python"),
        ({"tests": "f()"}, "assert nothing"),
        ({"tests": "def check(candidate):\n    assert candidate()"}, "need entry_point"),
        ({"tests": "assert f()", "entry_point": "f()"}, "must be the name of a function"),
        ({"stdio": []}, "at least one [stdin, stdout]"),
        ({"stdio": [["1", ""], ["2", " \n"]]}, "a program that does nothing would pass"),
        ({"stdio": [["", "1"]], "tolerance": 1}, "'tolerance' must be a number from 0 up to"),
        ({"stdio": [["", "1"]], "tolerance": "0.1"}, "'tolerance' must be a number from 0 up to"),
        ({"stdio": [["", "1"]], "prompt": ""}, "has no key 'prompt'"),
        ({"stdio": [["1"]]}, "stdio[0] must be [stdin, stdout]"),
        ({"stdio": [["1", 2]]}, "stdio[0] must be"),
        ({"calls": {"cases": []}}, "'calls' lacks 'function'"),
        ({"calls": {"function": "f"}}, "'calls' lacks 'cases'"),
        ({"calls": {"function": "f", "cases": [[1, 2]]}}, "cases[0] must be [[argument, ...]"),
        ({"calls": {"function": "f", "cases": [[[[2, 1]], None]]}}, "every case expects None"),
        ({"tests": {1, 2}}, "must be plain JSON"),
    ],
)
def test_a_bad_reference_is_named_and_never_scored(reference: Any, fault: str) -> None:
    found = Code().check_reference(reference)
    assert found is not None
    assert fault in found
    verdict = Code().verify(ADD, reference)
    assert (verdict.status, verdict.score) == (Status.BAD_GOLD, None)


@pytest.mark.bwrap
def test_tests_decide(code: Code) -> None:
    assert code.verify(f"Here:\n```python\n{ADD}```", TESTS).score == 1.0
    wrong = code.verify("def add(a, b):\n    return a - b\n", TESTS)
    assert (wrong.status, wrong.score) == (Status.INCORRECT, 0.0)
    assert "of 3 tests passed" in wrong.reason
    shown = f"```python\n{ADD}```\nUse it so:\n```python\nprint(add(1, 2))\n```"
    assert code.verify(shown, TESTS).score == 1.0
    assert code.verify(shown, {**TESTS, "entry_point": "add"}).score == 1.0
    calls = {"calls": {"function": "add", "cases": [[[1, 2], 3]]}}
    assert code.verify(shown, calls).score == 1.0


@pytest.mark.bwrap
def test_output_and_results_decide(code: Code) -> None:
    doubles = {"stdio": [["2\n", "4\n"], ["5\n", "10\n"]]}
    assert code.verify("print(2 * int(input()))", doubles).score == 1.0
    assert code.verify("print(4)", doubles).score == 0.0
    calls = {"calls": {"function": "add", "cases": [[[1, 2], 3], [[2, 2], 4]]}}
    assert code.verify(ADD, calls).score == 1.0
    assert code.verify(ADD.replace("+", "*"), calls).score == 0.0


@pytest.mark.bwrap
@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("def add(a, b):\n    while True: pass\n", Status.TIMEOUT),
        ("def add(a, b:\n", Status.COMPILE_ERROR),
        ("import os; os._exit(0)\n" + ADD, Status.RUNTIME_ERROR),
        ("raise ValueError\n" + ADD, Status.RUNTIME_ERROR),
    ],
)
def test_what_ended_a_program_is_its_status(program: str, status: Status) -> None:
    from assay.sandbox import Limits

    with Sandbox(backend="bwrap", slots=1) as box:
        verdict = Code(box, Limits(cpu_s=1.0)).verify(program, TESTS)
    assert (verdict.status, verdict.score) == (status, 0.0)


@pytest.mark.bwrap
def test_an_object_equal_to_everything_passes_nothing(code: Code) -> None:
    cheat = "class E:\n    def __eq__(self, o): return True\ndef add(a, b): return E()\n"
    assert code.verify(cheat, TESTS).score == 0.0


@pytest.mark.bwrap
def test_part_of_the_tests_is_part_of_the_score_where_asked(code: Code) -> None:
    half = "def add(a, b):\n    return 0\n"
    partial = Code(code.sandbox, partial=True)
    assert partial.verify(half, TESTS).score == pytest.approx(2 / 3)
    assert partial.verify(ADD, TESTS).score == 1.0
    assert code.verify(half, TESTS).score == 0.0


@pytest.mark.bwrap
def test_a_batch_keeps_its_order_and_runs_equal_programs_once(code: Code) -> None:
    wrong = "def add(a, b):\n    return 7\n"
    verdicts = code.verify_many([ADD, "", wrong, ADD] * 3, [TESTS] * 12)
    assert [v.score for v in verdicts] == [1.0, 0.0, 0.0, 1.0] * 3
    assert verdicts[0] is verdicts[3]
    assert verdicts[1].status is Status.UNPARSEABLE


@pytest.mark.parametrize(
    ("program", "example"),
    [
        ("def f(x):\n    return x\n", "print(f(1))"),
        ("class Solution:\n    def f(self, x): return x\n", "print(Solution().f(1))"),
    ],
)
@pytest.mark.parametrize("function", ["f", "Solution.f"])
def test_an_example_of_a_function_or_method_is_not_the_program(
    program: str, example: str, function: str
) -> None:
    reply = f"```python\n{program}```\n```python\n{example}\n```"
    reference = {"calls": {"function": function, "cases": [[[1], 1]]}}
    assert Code().program(reply, reference) == (program, "")


@pytest.mark.bwrap
def test_humaneval_completions_are_bodies(code: Code) -> None:
    reference = {
        "prompt": PROMPT,
        "entry_point": "area",
        "tests": "def check(candidate):\n    assert 3.1 < candidate(1) < 3.2\n",
    }
    body = "    return math.pi * helper(r) ** 2\n"
    whole = "```python\ndef area(r):\n" + body + "```"
    assert [v.score for v in code.verify_many([body, whole], [reference] * 2)] == [1.0, 1.0]


CIPHER = {
    "prompt": "SHIFT = 1\n\ndef hide(s):\n    return ''.join(chr(ord(c) + SHIFT) for c in s)\n\n"
    "def show(s):\n    '''What hide hid.'''\n",
    "entry_point": "show",
    "tests": "def check(candidate):\n    assert candidate(hide('abc')) == 'abc'\n",
}


@pytest.mark.bwrap
@pytest.mark.parametrize("way", ["def hide(s):\n    return s\n", "hide = lambda s: s\n", ""])
def test_a_program_cannot_replace_what_the_prompt_gives_the_tests(code: Code, way: str) -> None:
    fake = way + "def show(s):\n    return s\n"
    assert code.verify(fake, CIPHER).status is Status.INCORRECT
    right = way + "def show(s):\n    return ''.join(chr(ord(c) - 1) for c in s)\n"
    assert code.verify(right, CIPHER).score == 1.0


@pytest.mark.bwrap
def test_what_the_prompt_leaves_to_write_is_the_programs(code: Code) -> None:
    stub = (
        "class Pair:\n    x = 1\n\ndef one():\n    '''Return 1.'''\n\ndef two(p):\n    '''2.'''\n"
    )
    tests = "def check(candidate):\n    assert candidate(Pair()) == 2 * one()\n"
    reference = {"prompt": stub, "entry_point": "two", "tests": tests}
    program = "def one():\n    return 1\ndef two(p):\n    return 2 * isinstance(p, Pair)\n"
    assert code.verify(program, reference).score == 1.0


@pytest.mark.bwrap
def test_a_sandbox_that_is_gone_scores_nothing() -> None:
    box = Sandbox(backend="bwrap", slots=1)
    box.close()
    verdicts = Code(box).verify_many([ADD, ADD + "#"], [TESTS] * 2)
    assert [(v.status, v.score) for v in verdicts] == [(Status.SANDBOX_ERROR, None)] * 2
    assert "closed" in verdicts[0].reason


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_unusable_docker_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with Sandbox(backend="docker", slots=1) as box:
        with pytest.raises(SandboxUnavailable):
            box.run("1")
        verdict = Code(box).verify(ADD, TESTS)
    assert (verdict.status, verdict.score) == (Status.SANDBOX_ERROR, None)
    gc.collect()  # the docker package leaves the socket it could not connect to the collector


@pytest.mark.bwrap
def test_an_own_sandbox_opens_when_needed_and_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "bwrap")
    own = Code()
    assert own._own is None
    assert own.verify(ADD, TESTS).score == 1.0
    own.close()
    own.close()
    assert own._own is None


def test_a_wrong_variable_raises_before_anything_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "podman")
    with pytest.raises(ValueError, match="ASSAY_SANDBOX"):
        Code()


@pytest.mark.parametrize(
    ("language", "reply", "program"),
    [
        ("cpp", "```c++\nint a;\n```\n```python\nx\n```", "int a;\n"),
        ("cpp", "```cpp\nint a;\n```\n```cc\nint b;\n```", "int b;\n"),
        ("cpp", "```c++17\nint a;\n```\n```text\nx\n```", "int a;\n"),
        ("cpp", "```cpp20\nint a;\n```\n```\nx\n```", "int a;\n"),
        ("cpp", "```C++-14\nint a;\n```", "int a;\n"),
        ("cpp", "```c++17\nint a;", None),
        ("c", "```c99\nint a;\n```\n```c++17\nint b;\n```", "int a;\n"),
        ("go", "```go1.22\npackage a\n```", "package a\n"),
        ("python", "```python3.11\nx = 1\n```", "x = 1\n"),
        ("python", "```py311\nx = 1\n```", "x = 1\n"),
        ("python", "```python2\nprint 1\n```", None),
        ("c", "```C\nint a;\n```\n```cpp\nint b;\n```", "int a;\n"),
        ("javascript", '```js\n1 // """\n```', '1 // """\n'),
        ("bash", "```sh\nls\n```\n```\na\n```", "ls\n"),
        ("go", "```\npackage main\n```", "package main\n"),
        ("rust", "fn main() {}", "fn main() {}\n"),
        ("rust", "```rs\nfn main() {}\n```", "fn main() {}\n"),
        ("cpp", "```python\nx\n```", None),
        ("cpp", "```cpp\nint a;", None),
    ],
)
def test_the_program_of_another_language_is_found(language, reply, program) -> None:
    assert find_program(reply, find_language(language))[0] == program


@pytest.mark.bwrap
def test_a_task_in_another_language_is_judged_by_its_output(code: Code) -> None:
    if shutil.which("g++", path="/usr/bin") is None:
        pytest.skip("this machine has no g++")
    task = {"stdio": [["1 2", "3"], ["-5 5", "0"]], "language": "cpp"}
    right = "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a OP b; }"
    replies = [f"So:\n```c++\n{right.replace('OP', op)}\n```\nDone." for op in ("+", "-", "?")]
    verdicts = code.verify_many([*replies, "```python\nprint(3)\n```"], [task] * 4)
    assert [v.status for v in verdicts] == [
        Status.CORRECT,
        Status.INCORRECT,
        Status.COMPILE_ERROR,
        Status.UNPARSEABLE,
    ]
    assert "error: " in verdicts[2].reason
    assert verdicts[3].reason == "there is no fenced block of Cpp, only of python"


@pytest.mark.bwrap
def test_a_language_that_cannot_be_run_here_is_our_fault_and_no_score() -> None:
    class Toolless(Sandbox):
        def run(self, *args: Any, **kwargs: Any):
            nothing = ProgrammingLanguage("rust", "main.rs", compile=("/no/rustc", "main.rs"))
            return super().run(*args, **{**kwargs, "language": nothing})

    with Toolless(backend="bwrap", slots=1) as box:
        verdict = Code(box).verify("fn main() {}", {"stdio": [["", "1"]], "language": "rust"})
    assert (verdict.status, verdict.score) == (Status.SANDBOX_ERROR, None)
    assert "rust needs '/no/rustc'" in verdict.reason


def test_an_unknown_language_is_a_fault_of_the_data() -> None:
    fault = Code().check_reference({"stdio": [["", "1"]], "language": "rubyy"})
    assert fault is not None
    assert "unknown language 'rubyy'" in fault
    assert Code().check_reference({"tests": "assert f()", "language": "c"}) is not None
    assert Code().check_reference({"stdio": [["", "1"]], "language": 3}) is not None
    assert Code().check_reference({"stdio": [["", "1"]], "language": "C++"}) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stdio", "calls", "tests"])
def test_an_input_too_large_for_the_memory_is_a_fault_of_the_reference(code: Code, kind) -> None:
    def task(size: int) -> dict[str, Any]:
        text = "x" * size
        return {
            "stdio": {"stdio": [["", "0"], [text, str(size)]]},
            "calls": {"calls": {"function": "len", "cases": [[[""], 0], [[text], size]]}},
            "tests": {"tests": f"assert len('') == 0\nassert len({text!r}) == {size}"},
        }[kind]

    limited = Code(code.sandbox, Limits(memory_mib=32))
    right = "import sys\nprint(len(sys.stdin.read()))"
    for judge in (code, limited):  # 256 MiB are enough
        fault = judge.check_reference(task(20 << 20))
        assert (fault is None) == (judge is code)
    assert "more than half of memory_mib=32" in str(fault)
    found = limited.verify_many([right, "print(1)", "?"], [task(20 << 20)] * 3)
    assert [(v.status, v.score) for v in found] == [(Status.BAD_GOLD, None)] * 3
    assert limited.check_reference(task(15 << 20)) is None


def test_an_output_that_no_program_may_write_is_a_fault_of_the_reference() -> None:
    def task(lines: int, **more: float) -> dict[str, object]:
        return {"stdio": [[f"{lines}\n", "123\n" * lines]], **more}

    limited = Code(limits=Limits(output_bytes=3000))
    assert "output_bytes=3000" in str(limited.check_reference(task(1001)))
    assert limited.verify("print(1)", task(1001)).status is Status.BAD_GOLD
    assert limited.check_reference(task(1000)) is None  # the ends of lines may be left out
    assert limited.check_reference(task(1001, tolerance=0.1)) is None  # so may digits


@pytest.mark.parametrize(
    "prompt", ["Add two numbers.", "Write it.\n\ndef add(a, b):\n", "    return 1"]
)
def test_a_prompt_that_no_program_begins_with_is_a_fault_of_the_reference(prompt: str) -> None:
    reference = {"tests": "assert add(1, 2) == 3", "entry_point": "add", "prompt": prompt}
    assert "'prompt' is not the beginning" in str(Code().check_reference(reference))


@pytest.mark.parametrize(
    "prompt", ["", "import math\n", "def add(a,\n", "def add(a, b):\n    if a:\n", "try:\n"]
)
def test_a_prompt_may_break_off_anywhere(prompt: str) -> None:
    reference = {"tests": "assert add(1, 2) == 3", "entry_point": "add", "prompt": prompt}
    assert Code().check_reference(reference) is None
