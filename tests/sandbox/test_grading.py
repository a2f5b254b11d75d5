"""Programs held against their tests, under every backend."""

from __future__ import annotations

import pytest

from assay.sandbox import Limits, Sandbox, same_lines
from assay.sandbox.guest.suite import Suite

QUICK = Limits(cpu_s=0.3, wall_s=10.0, memory_mib=128)  # of programs that are to reach it
LOOP = "def add(a, b):\n    while a: pass\n    return b"
ADD = "def add(a, b):\n    return a + b\n"


def outcome(check) -> tuple[str, int, int]:
    return (check.status.value, check.passed, check.total)


# -- stdin and stdout


def test_stdio_compares_word_by_word(box: Sandbox) -> None:
    code = "a, b = map(int, input().split())\nprint(a + b, '\\n')"
    check = box.check_stdio(code, [("1 2", "3"), ("2 2", "4\n"), ("5 5", "11")])
    assert outcome(check) == ("ok", 2, 3)
    assert check.reason.startswith("case 3 of 3, input '5 5'")
    assert (check.failed, check.share) == (2, pytest.approx(2 / 3))
    assert "11" not in check.reason
    assert not check.solved


def test_stdio_can_allow_for_rounding(box: Sandbox) -> None:
    code = "print('area', 1 / 3)"
    assert box.check_stdio(code, [("", "area 0.333333")], tolerance=1e-5).solved
    assert not box.check_stdio(code, [("", "area 0.333333")]).solved


def test_stdio_needs_a_proper_end_too(box: Sandbox) -> None:
    check = box.check_stdio("print(1)\nexit(1)", [("", "1")])
    assert outcome(check) == ("runtime_error", 0, 1)


def test_stdio_stops_after_a_timeout(box: Sandbox) -> None:
    code = "n = input()\nwhile n == 'loop': pass\nprint(n)"
    check = box.check_stdio(code, [("1", "1"), ("loop", "x"), ("3", "3")], limits=QUICK)
    assert outcome(check) == ("timeout", 1, 3)


def test_stdio_may_stop_at_the_first_failure(box: Sandbox) -> None:
    cases = [("", "2"), ("", "1")]
    assert outcome(box.check_stdio("print(1)", cases)) == ("ok", 1, 2)
    assert outcome(box.check_stdio("print(1)", cases, stop_at_first=True)) == ("ok", 0, 2)


def test_stdio_may_have_several_right_answers(box: Sandbox) -> None:
    def is_divisor(printed: str, number: str) -> bool:
        return printed.strip().isdecimal() and int(number) % int(printed) == 0

    cases = [("12", "12"), ("35", "35")]
    assert box.check_stdio("print(1)", cases, compare=is_divisor).solved
    assert outcome(box.check_stdio("print(5)", cases, compare=is_divisor)) == ("ok", 1, 2)
    assert not box.check_stdio("print(' 12')", cases[:1], compare=same_lines).solved
    with pytest.raises(ValueError, match="not both"):
        box.check_stdio("print(5)", cases, compare=is_divisor, tolerance=0.1)


@pytest.mark.parametrize("code", ["1 / 0", "raise SystemExit(1)", "import os; os.kill(0, 9)"])
def test_nothing_printed_is_right_only_of_a_program_that_ends_well(box: Sandbox, code: str) -> None:
    assert outcome(box.check_stdio(code, [("", "")]))[1:] == (0, 1)
    assert box.check_stdio("", [("", "")]).solved


# -- calls


@pytest.mark.parametrize(
    ("code", "expected", "found"),
    [
        ("def f(x): return x + 1", 3, ("ok", 1, 1)),
        ("def f(x): return x + 1.0", 3, ("ok", 1, 1)),
        ("def f(x): return True", 1, ("ok", 1, 1)),
        ("def f(x): return [x]", [2], ("ok", 1, 1)),
        ("def f(x): return [x]", (2,), ("ok", 0, 1)),
        ("def f(x): return {'a': {x}, 2: (None, 'b')}", {"a": {2}, 2: (None, "b")}, ("ok", 1, 1)),
        ("def f(x): return float('nan')", 1.0, ("ok", 0, 1)),
        ("import collections\ndef f(x): return collections.Counter('a')", {"a": 1}, ("ok", 1, 1)),
        ("class S:\n    def f(self, x): return x", 2, ("runtime_error", 0, 1)),
        ("def f(x): return object()", 2, ("runtime_error", 0, 1)),
        ("def f(x): raise KeyError(x)", 2, ("runtime_error", 0, 1)),
        ("def f(): return 2", 2, ("runtime_error", 0, 1)),
        ("def f(x): return (", 2, ("compile_error", 0, 1)),
        ("1 / 0\ndef f(x): return 2", 2, ("runtime_error", 0, 1)),
        ("def f(x): raise SystemExit", 2, ("runtime_error", 0, 1)),
        ("import os\ndef f(x): os._exit(0)", 2, ("runtime_error", 0, 1)),
        ("def f(x):\n    while True: pass", 2, ("timeout", 0, 1)),
        ("def f(x): return b'x' * (1 << 30)", 2, ("memory", 0, 1)),
        ("def f(x): return 'x' * (1 << 22)", 2, ("output_limit", 0, 1)),
        ("def f(x):\n    y = []\n    y.append(y)\n    return y", 2, ("runtime_error", 0, 1)),
    ],
)
def test_calls(box: Sandbox, code: str, expected: object, found: tuple[str, int, int]) -> None:
    limits = QUICK if found[0] == "timeout" else None
    assert outcome(box.check_calls(code, "f", [((2,), expected)], limits=limits)) == found


def test_calls_count_each_case(box: Sandbox) -> None:
    code = "def inverse(x):\n    print(x)\n    return 1 / x"
    cases = [((1,), 1.0), ((0,), 0.0), ((4,), 0.25), ((2,), 3.0)]
    check = box.check_calls(code, "inverse", cases)
    assert outcome(check) == ("runtime_error", 2, 4)
    assert check.reason.startswith("case 2 of 4, arguments (0,): ZeroDivisionError")
    assert check.stdout == "1\n0\n4\n2\n"
    assert (check.failed, check.share) == (1, 0.5)


def test_calls_carry_numbers_of_any_length(box: Sandbox) -> None:
    code = "def f(x): return x + 10 ** 5000"
    assert box.check_calls(code, "f", [((10**5000,), 2 * 10**5000)]).solved
    assert not box.check_calls(code, "f", [((10**5000,), 10**5000)]).solved


@pytest.mark.parametrize("said", ["chr(0xd800)", "'\\ud800'"])
def test_a_reason_is_text_that_every_file_takes(box: Sandbox, said: str) -> None:
    code = f"def f(x): raise ValueError({said})"
    for check in (box.check_calls(code, "f", [((1,), 1)]), box.check_tests(code, "assert f(1)")):
        assert check.reason.endswith("ValueError: \\ud800")


def test_calls_find_methods(box: Sandbox) -> None:
    code = "class Solution:\n    def double(self, x): return 2 * x"
    assert box.check_calls(code, "Solution.double", [((4,), 8)]).solved
    assert box.check_calls(code, "double", [((4,), 8)]).solved
    assert box.check_calls(ADD, "Solution.add", [((1, 2), 3)]).solved


def test_calls_allow_for_rounding_where_asked(box: Sandbox) -> None:
    code = "def f(): return [0.1 + 0.2]"
    assert not box.check_calls(code, "f", [((), [0.3])]).solved
    assert box.check_calls(code, "f", [((), [0.3])], tolerance=1e-9).solved


def test_calls_want_plain_values(box: Sandbox) -> None:
    with pytest.raises(ValueError, match="object"):
        box.check_calls(ADD, "add", [((1, object()), 2)])
    with pytest.raises(ValueError, match="at least one case"):
        box.check_calls(ADD, "add", [])


# -- tests in a process of their own


@pytest.mark.parametrize(
    ("code", "tests", "found"),
    [
        (ADD, "assert add(1, 2) == 3\nassert add(1, 2) == 4\nassert add(0, 1) == 1", ("ok", 2, 3)),
        (ADD, "assert add(1, 'a') == 3\nassert add(1, 1) == 2", ("runtime_error", 1, 2)),
        (ADD, "assert sub(1, 1) == 0", ("runtime_error", 0, 1)),
        (ADD, "x = sub(1, 1)\nassert x == 0\nassert add(1, 1) == 2", ("runtime_error", 0, 2)),
        (
            ADD,
            "def test_a(): assert add(1, 1) == 2\ndef test_b(): assert add(1, 1) == 3",
            ("ok", 1, 2),
        ),
        ("def add(a, b): return (", "assert add(1, 1) == 2", ("compile_error", 0, 1)),
        ("1 / 0", "assert add(1, 1) == 2", ("runtime_error", 0, 1)),
        ("def add(a, b): assert a > b", "assert add(1, 1) == 2", ("runtime_error", 0, 1)),
        ("def add(a, b): exit()", "assert add(1, 1) == 2", ("runtime_error", 0, 1)),
        (LOOP, "assert add(0, 2) == 2\nassert add(1, 1) == 2", ("timeout", 1, 2)),
        ("while True: pass", "assert add(0, 2) == 2", ("timeout", 0, 1)),
        ("def add(a, b): return b'x' * (1 << 30)", "assert add(0, 2) == 2", ("memory", 0, 1)),
        (
            "def add(a, b):\n    while True: print('x' * 999)",
            "assert add(0, 2) == 2",
            ("output_limit", 0, 1),
        ),
        ("def add(a, b): return 2", "assert add(1, 1) < 'a'", ("runtime_error", 0, 1)),
    ],
)
def test_every_failure_has_its_status(
    box: Sandbox, code: str, tests: str, found: tuple[str, int, int]
) -> None:
    limits = QUICK if found[0] == "timeout" else None
    assert outcome(box.check_tests(code, tests, limits=limits)) == found


def test_a_candidate_that_sleeps_runs_into_the_wall(box: Sandbox) -> None:
    limits = Limits(wall_s=0.7, memory_mib=128)
    check = box.check_tests("import time; time.sleep(60)", "assert f() == 2", limits=limits)
    assert outcome(check) == ("timeout", 0, 1)


def test_a_candidates_prints_are_its_own(box: Sandbox) -> None:
    code = "import sys\nprint('loaded')\ndef f():\n    sys.stderr.write('called')\n    return 1"
    check = box.check_tests(code, "assert f() == 1\nprint('from the tests')")
    assert (check.solved, check.stdout) == (True, "loaded\n")
    assert "called" in check.stderr


def test_tests_may_silence_what_they_print(box: Sandbox) -> None:
    tests = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n"
    assert box.check_tests(ADD, tests + "    print(1)\n    assert add(1, 1) == 2").solved


def test_a_candidates_main_guard_does_not_run(box: Sandbox) -> None:
    code = ADD + "if __name__ == '__main__':\n    add(input(), 1)"
    assert box.check_tests(code, "assert add(1, 1) == 2").solved


def test_a_builtins_name_is_the_candidates_only_where_the_tests_say_so(box: Sandbox) -> None:
    code = "def sum(a, b): return a * b"
    assert box.check_tests(code, "assert sum(3, 4) == 12").solved
    assert box.check_tests(code, "assert sum(3, 4) == 12", entry_point="sum").solved
    cheat = "def abs(x): return 0\ndef f(x): return 5"
    assert not box.check_tests(cheat, "assert abs(f(1) - 3) < 0.1").solved


def test_recursion_goes_as_deep_as_in_an_interpreter(box: Sandbox) -> None:
    code = "def f(n): return n and 1 + f(n - 1)"
    assert box.check_tests(code, "assert f(996) == 996").solved
    assert box.check_calls(code, "f", [((996,), 996)]).solved


@pytest.mark.parametrize(
    ("tests", "match"),
    [
        ("assert (", "SyntaxError"),
        ("return 1", "SyntaxError"),
        ("", "no text"),
        ("def check(candidate): assert candidate(1, 1) == 2", "entry_point"),
        ("def check(candidate): pass", "assert nothing"),
        ("add(1, 1)", "assert nothing"),
        ("with self.assertLogs(): assert add(1, 1) == 2", "assertLogs: .* another process"),
        ("with redirect_stdout(b): add(1, 1)\nassert b.getvalue() == '2'", "redirect_stdout: "),
        ("sys.stdout = b\nadd(1, 1)\nassert b.getvalue() == '2'", "sys.stdout: "),
        ("with patch('sys.stdout') as b: add(1, 1)\nassert b.getvalue() == '2'", "sys.stdout: "),
        ("with patch('builtins.input', f): assert add(1, 1) == 2", "builtins.input: "),
        ("with patch('random.random', f): assert add(1, 1) == 2", "random.random: "),
        ("@mock.patch(\n    'solution.g')\ndef test_g(m): assert add(1, 1) == 2", "solution.g: "),
        ("with patch.object(A, 'one', f): assert add(1, 1) == 2", r"patch.object\(A: .* another"),
        ("@mock.patch.dict('os.environ')\ndef test_g(m): assert add(1, 1) == 2", "patch.dict"),
        ("import os\nos.environ['KEY'] = 'a'\nassert add(1, 1) == 2", "os.environ: .* another"),
        ("import os\nos.environ.update(KEY='a')\nassert add(1, 1) == 2", "os.environ: "),
        ("import sys\nsys.argv = ['a', 'b']\nassert add(1, 1) == 2", "sys.argv: .* another"),
        ("import sys\nsys.argv[1:] = ['b']\nassert add(1, 1) == 2", "sys.argv: "),
        ("import os\nos.chdir('/')\nassert add(1, 1) == 2", "os.chdir: "),
        ("import solution\nsolution.LIMIT = 5\nassert solution.add(1, 1) == 2", "solution.LIMIT: "),
        ("import sys\nsys.stdin = b\nassert add(1, 1) == 2", "sys.stdin: .* another"),
        ("import time\ntime.time = lambda: 3\nassert add(1, 1) == 2", "time.time: "),
        ("globals()['LIMIT'] = 3\nassert add(1, 1) == 2", r"globals\(\): "),
        ("with redirect_stdout(b): add(1, 1)\nb.seek(0)\nassert b.read() == '2'", "redirect_std"),
        ("with catch_warnings(record=True) as w: add(1, 1)\nassert w", "catch_warnings: "),
        ("logging.getLogger().addHandler(h)\nadd(1, 1)\nassert h.seen", "addHandler: "),
        ("with patch('time.sleep') as m: add(1, 1)\nm.assert_called_once()", "patch: "),
        ("assert eval(add(1, 1)) == 2", r"eval\(add\(1, 1\)\): what the program gives would run"),
        ("x = add(1, 1)\ny = x.strip()\nassert eval(y) == 2", r"eval\(y\): "),
        ("import pickle\nassert pickle.loads(add(1, 1)) == 2", "pickle.loads"),
        ("from pickle import loads\nassert loads(add(1, 1)) == 2", "loads"),
        ("import pickle as p\nassert p.loads(add(1, 1)) == 2", "p.loads"),
        ("import pandas as pd\nassert pd.read_pickle(add(1, 1)) == 2", "read_pickle"),
        ("def test_a():\n x = add(1, 1)\n exec(x)\n assert 1", r"exec\(x\)"),
        ("with NamedTemporaryFile() as f: assert add(f.name, '') == 2", "TemporaryFile: "),
        ("with open('a.txt', 'w') as f: pass\nassert add('a.txt', '') == 2", "another process"),
        ("def test_add(): add(1, 1)", "assert nothing"),
        ("x = [1]\nassert add(x, []) is x", r"add\(x, \[\]\) is x: the program gets a copy"),
        ("x = [1]\ny = add(x, [])\nassert y is x", "y is x: the program gets a copy of x"),
        ("def test_a(self):\n x = {}\n self.assertIs(x, add(x, 1))", "gets a copy of x"),
        ("match make(1):\n case Point(x=1): ok = 1\nassert ok", r"case Point\(\): the class is in"),
        ("class Own(Base): pass\nassert Own().add(1, 1) == 2", r"class Own\(Base\): the program's"),
        ("from solution import *\nclass Own(B): pass\nassert Own().x == 2", r"Own\(B\): the prog"),
        ("import solution\nclass Own(solution.B): pass\nassert Own().x == 2", r"Own\(solution.B\)"),
        ("import sys\nsys.exit(0)\nassert add(1, 1) == 2", "SystemExit"),
    ],
)
def test_tests_that_cannot_be_used_raise(box: Sandbox, tests: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        box.check_tests(ADD, tests)


@pytest.mark.parametrize(
    "line",
    [
        "with patch('time.sleep'): pass",
        "x = None\nassert f(x) is None and g() is x and f(f) is f and f(A()) is A()",
        "assert eval('add(1, 1)') == 2 and all(map(eval, ['1']))",
        "for text in ['1', '2']: assert eval(text) > 0",
        "with patch.object(time, 'sleep'): pass",
        "os.environ['MPLBACKEND'] = 'Agg'",
        "assert os.environ['A'] == 'b'",
        "unittest.main(argv=sys.argv[:1])",
        "dispatch('a.b')",
        "assert self.patch('a.b')",
        "tempfile.gettempdir()",
        "open('/tmp/a.txt', 'w')",
        "archive.open('a.txt', 'w')",
    ],
)
def test_tests_may_look_at_their_own_process(line: str) -> None:
    assert Suite("", f"def unused():\n    {line}\nassert add(1, 1) == 2", None).units


def test_tests_may_have_classes_of_their_own(box: Sandbox) -> None:
    bases = "abc.ABC", "Wrong", "typing.NamedTuple", "collections.abc.Sized", "Exception"
    classes = "".join(f"class Own{i}({base}): pass\n" for i, base in enumerate(bases))
    tests = f"import typing\nclass Wrong: pass\n{classes}class Late(AddError): pass\n"
    code = ADD + "class AddError(Exception): pass\n"
    assert box.check_tests(code, f"{tests}assert add(1, 1) == 2").solved
