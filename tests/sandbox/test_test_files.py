"""Test files as people write them, for unittest and for pytest, under every backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.sandbox import Limits, Sandbox

BACKENDS = ("bwrap",)  # the guest's code is the same under every backend
PROGRAM, UNITTEST, PYTEST = (
    Path(__file__).with_name("suites").joinpath(f"{name}.txt").read_text("utf-8")
    for name in ("program", "unittest", "pytest")
)
LIMITS = Limits(cpu_s=2.0, wall_s=10.0, memory_mib=128)


def outcome(check) -> tuple[str, int, int]:
    return (check.status.value, check.passed, check.total)


def test_a_unittest_file(box: Sandbox) -> None:
    assert outcome(box.check_tests(PROGRAM, UNITTEST, limits=LIMITS)) == ("ok", 6, 6)


def test_a_pytest_file(box: Sandbox) -> None:
    check = box.check_tests(PROGRAM, PYTEST, limits=LIMITS)
    assert outcome(check) == ("ok", 16, 16), check


@pytest.mark.parametrize("tests", [UNITTEST, PYTEST], ids=["unittest", "pytest"])
@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "def add(a, b): return 0\ndef third(x): return 0\nclass TooBig: pass",
        "def add(*a): raise Exception\nthird = add\nclass TooBig(Exception): pass",
        "raise __import__('unittest').SkipTest('all')",
        "import unittest\ndef add(*a): raise unittest.SkipTest\nthird = add\nTooBig = ValueError",
    ],
)
def test_a_wrong_program_passes_little_and_is_blamed(box: Sandbox, tests: str, wrong: str) -> None:
    check = box.check_tests(wrong, tests, limits=LIMITS)
    assert check.passed < 6
    assert not check.solved
    assert check.failed is not None


SOUND = [
    "import solution\nassert solution.add(1, 2) == 3",
    "from candidate import add as plus\nassert plus(1, 2) == 3",
    "from main import add\ndef test(): assert add(1, 2) == 3",
    "from .solution import add\nassert add(1, 2) == 3",
    "def test():\n    from solution import add\n    assert add(1, 2) == 3",
    "def test(candidate): assert candidate(1, 2) == 3",
    "from add import add\nassert add(1, 2) == 3",
    "import json\ntry: parse('{')\nexcept json.JSONDecodeError as e: at = e.pos\nassert at == 1",
    "import queue\ntry: empty()\nexcept queue.Empty: fine = True\nassert fine",
    "try: add(1000, 1)\nexcept TooBig as e: kind = type(e).__name__\nassert kind == 'Far'",
    "assert issubclass(Far, TooBig) and issubclass(TooBig, ValueError)",
    "try: missing({}, 'k')\nexcept KeyError as e: key = e.args\nassert key == ('k',)",
    "assert same() is same() and same() == first",
    "def main():\n    assert add(1, 2) == 3\nif __name__ == '__main__':\n    main()",
    "if __name__ == '__main__':\n    assert add(1, 2) == 3",
    "def test_a(): assert add(1, 2) == 3\ndef run():\n    test_a()\n"
    "if __name__ == '__main__':\n    run()",
    "def same_sum(a, b, c):\n    assert add(a, b) == c\nfor n in (1, 2): same_sum(n, n, 2 * n)",
    "if add(1, 1) != 2: raise Exception('no')",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n"
    "    assert list(pool.map(add, range(50), range(50))) == list(range(0, 100, 2))",
    "import unittest\nclass T(unittest.TestCase):\n"
    "    def test(self): self.assertEqual(add(1, 1), 2)\nunittest.main()",
]


@pytest.mark.parametrize("tests", SOUND)
def test_ways_to_write_a_test(box: Sandbox, tests: str) -> None:
    check = box.check_tests(PROGRAM, tests, entry_point="add", limits=LIMITS)
    assert outcome(check) == ("ok", 1, 1), check
    wrong = "class TooBig(Exception): pass\ndef add(*a): return 7\nparse = missing = empty = add"
    check = box.check_tests(wrong, tests, entry_point="add", limits=LIMITS)
    assert check.passed == 0, check
    assert box.check_tests("pass", tests, entry_point="add", limits=LIMITS).passed == 0


@pytest.mark.parametrize(
    "tests",
    [
        "import os\nsave('x')\nassert open('d/out.txt').read() == 'x' and os.listdir() == ['d']",
        "import shutil, os\nsave('x')\nshutil.rmtree('d')\nassert not os.path.exists('d')\n"
        "save('y')\nassert os.path.isfile('d/out.txt')",
    ],
)
def test_tests_see_and_delete_the_programs_files(box: Sandbox, tests: str) -> None:
    program = """
import os
def save(text):
    os.makedirs('d', exist_ok=True)
    with open('d/out.txt', 'w') as file: file.write(text)
"""
    assert box.check_tests(program, tests, limits=LIMITS).solved
    assert not box.check_tests("def save(text): pass", tests, limits=LIMITS).solved


@pytest.mark.parametrize(
    ("tests", "match"),
    [
        ("path = 'in.txt'\nopen(path, 'w').close()\nassert add(1, 1) == 2", "another process"),
        ("import os\nos.mkdir('d')\nassert add(1, 1) == 2", "another process"),
        ("import subprocess\nassert subprocess.run(['python', 'main.py']) == add(1, 1)", "another"),
        ("exec(open('a.py').read())\nassert add(1, 1) == 2", "would run here"),
        ("import no_such_module\nassert add(1, 1) == 2", "no_such_module"),
        ("from math import no_such\nassert add(1, 1) == 2", "no_such"),
        ("table = [1][5]\nassert add(1, 1) == 2", "IndexError"),
        ("def helper(): return 3\nassert helper() == 4\nassert add(1, 1) == 2", "helper"),
        ("from solution import add\ndef test(): assert hepler(1) == add(1, 1)", "NameError"),
        ("import pytest\ndef test(tmp_path): assert add(1, 1) == 2", "tmp_path"),
        ("def test(capsys, candidate): assert add(1, 1) == 2", "capsys"),
        ("import pytest\nwith pytest.warns(UserWarning): add(1, 1)", "warns"),
        ("from pytest import MonkeyPatch\nassert add(1, 1) == 2", "MonkeyPatch"),
        ("import pytest\n@pytest.mark.skip\ndef test(): assert add(1, 1) == 2", "skipped"),
        ("import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('')\n"
         "    def test(self): self.assertEqual(add(1, 1), 2)", "skipped"),
        ("import pytest\npytest.skip(allow_module_level=True)\nassert add(1, 1) == 2", "skip"),
        ("import pytest\n@pytest.mark.parametrize('a,b', [(1,)])\n"
         "def test(a, b): assert add(a, b)", "2 names and 1 values"),
        ("import pytest\n@pytest.mark.parametrize('a', [])\ndef test(a): assert add(a, 1) == 2",
         "skipped"),
        ("def test():\n    yield\n    assert add(1, 1) == 2", "yields"),
        ("def double(x): return 2 * x\nassert double(2) == 4", "never use the program"),
    ],
)  # fmt: skip
def test_tests_at_fault_are_nobodys_failure(box: Sandbox, tests: str, match: str) -> None:
    for program in (PROGRAM, "def add(a, b): return 7"):
        with pytest.raises(ValueError, match=match):
            box.check_tests(program, tests, limits=LIMITS)


@pytest.mark.parametrize(
    "program",
    [
        "def add(a, b): return 7",
        "def add(a, b): raise ModuleNotFoundError('numpy')",
        "def add(a, b): raise NameError('add')",
        "def add(a, b): import no_such_module",
        "class add:\n    def __init__(self, *a): pass",
        "import unittest\ndef add(a, b): raise unittest.SkipTest('no')",
        "class Skipped(Exception): pass\ndef add(a, b): raise Skipped",
        "",
        "import no_such_module",
        "add = 5",
        "add = None",
        "add = dict",
        "class add(Exception): pass",
        "import math as add",
        "add = property(len)",
        "del add",
    ],
)
def test_a_program_cannot_make_its_tests_look_bad(box: Sandbox, program: str) -> None:
    """Else it would be judged by nobody, which pays more than being wrong."""
    for tests in (
        "assert add(1, 1) == 2",
        "x = add(1, 1) + 0\nassert x == 2",
        "import solution\nx = [0][solution.add(1, 1)]\nassert x == 2",
        "from solution import add\ndef test(): assert add(1, 1) == 2",
        "import pytest\n@pytest.mark.parametrize('x', [add(1, 1)])\ndef test(x): assert x == 2",
        "import pytest\ndef test():\n    if add(1, 1) != 2: pytest.skip()\n    assert False",
        "import pytest\nnumpy = add(1, 1)\nassert numpy == 2",
    ):
        check = box.check_tests(program, tests, limits=LIMITS)
        assert check.passed == 0, (tests, check)


@pytest.mark.parametrize(
    "tests",
    [
        "assert all(map(f, [1, 2]))",
        "assert not list(map(f, [1, 2]))",
        "assert sum(map(f, [1, 2])) == 0",
        "assert list(f(x) for x in [1, 2]) == []",
        "assert [x for x in map(f, [1])] == []",
        "assert not any(x > 5 for x in map(f, [7]))",
        "assert all(x.y for x in map(f, [7]))",
    ],
)
@pytest.mark.parametrize("kind", ["StopIteration", "StopAsyncIteration", "Own"])
def test_an_exception_does_not_end_the_tests_loops(box: Sandbox, tests: str, kind: str) -> None:
    """What is expected to be empty must not be had by raising."""
    program = f"class Own(StopIteration): pass\ndef f(x): raise {kind}"
    check = box.check_tests(program, tests, limits=LIMITS)
    assert outcome(check) == ("runtime_error", 0, 1), check


def test_raising_everywhere_earns_only_the_tests_that_want_it(box: Sandbox) -> None:
    tests = """
import pytest
def test_bad():
    with pytest.raises(Exception): f(-1)
def test_good(): assert f(4) == 2
"""
    check = box.check_tests("def f(x): raise Exception", tests)
    assert (check.passed, check.total, check.failed, check.solved) == (1, 2, 1, False)


def test_the_pytest_of_the_image_is_not_asked(box: Sandbox) -> None:
    """A file gives the same verdict in every image."""
    tests = "import pytest, sys\nassert add(1, 1) == 2 and not hasattr(pytest, 'hookimpl')"
    assert box.check_tests(PROGRAM, tests).solved


def test_a_program_cannot_bring_its_own_pytest(box: Sandbox) -> None:
    program = """
import sys, types
for name in ('pytest', 'unittest', 'solution', 'json', 'operator'):
    module = types.ModuleType(name)
    module.__getattr__ = lambda name: lambda *a, **k: True
    sys.modules[name] = module
class pytest:
    approx = lambda *a: 7
def approx(*a): return 7
def f(x): return 7
"""
    for tests in (
        "import pytest\nassert f(1) == pytest.approx(5)",
        "from pytest import approx\nassert f(1) == approx(5)",
        "from solution import *\nfrom pytest import approx\nassert f(1) == approx(5)",
        "import operator\nassert operator.eq(f(1), 5)",
        "from solution import *\nassert abs(f(1) - 5) < 1",
    ):
        assert box.check_tests(program, tests, limits=LIMITS).passed == 0
