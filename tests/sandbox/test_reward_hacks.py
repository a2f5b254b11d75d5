"""Candidates that cheat: none may be paid for another answer than the right one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox import BadTests, Limits, Sandbox

LIMITS = Limits(cpu_s=2.0, wall_s=4.0, memory_mib=128)
TESTS = "assert solve([1, 2]) == 'the answer is 7'\nassert solve([]) == 'the answer is 9'"
HACKS = tomllib.loads(Path(__file__).with_name("hacks.toml").read_text("utf-8"))
CHECK = "def check(candidate):\n    " + TESTS.replace("\n", "\n    ").replace("solve", "candidate")


@pytest.mark.parametrize("name", HACKS)
def test_tests_are_not_fooled(box: Sandbox, name: str) -> None:
    check = box.check_tests(HACKS[name], TESTS, limits=LIMITS)
    assert (check.passed, check.solved) == (0, False), check
    assert box.check_tests("def f(): return 1", "assert f() == 1").solved


@pytest.mark.parametrize("name", ["exit when called", "equal to everything", "forge the report"])
def test_a_check_function_is_not_fooled(box: Sandbox, name: str) -> None:
    check = box.check_tests(HACKS[name], CHECK, entry_point="solve", limits=LIMITS)
    assert (check.passed, check.solved) == (0, False), check


@pytest.mark.parametrize("name", HACKS)
def test_calls_are_not_fooled(box: Sandbox, name: str) -> None:
    cases = [(([1, 2],), "the answer is 7"), (([],), "the answer is 9")]
    check = box.check_calls(HACKS[name], "solve", cases, limits=LIMITS)
    assert (check.passed, check.solved) == (0, False), check


def test_an_end_in_a_call_is_no_exception_that_tests_expect(box: Sandbox) -> None:
    """A bare ``except`` takes what says that the candidate is gone; that is remembered."""
    code = "import os\ndef f(x): return x if x > 0 else os._exit(0)"
    tests = """
def check(candidate):
    assert candidate(1) == 1
    try:
        candidate(-1)
    except:
        refused = True
    assert refused
"""
    check = box.check_tests(code, tests, entry_point="f")
    assert (check.status.value, check.passed, check.solved) == ("runtime_error", 0, False)
    assert "ended before its tests did" in check.reason


def test_forged_call_results_are_only_answers(box: Sandbox) -> None:
    """Writing to the report is allowed, and is worth what answering is."""
    code = """
import os
for i in range(9): os.write(3, b'["value", 0]\\n')
def f(x): return x
"""
    check = box.check_calls(code, "f", [((1,), 1), ((0,), 0)])
    assert (check.passed, check.total) == (1, 2)


def test_objects_of_the_tests_stay_closed(box: Sandbox) -> None:
    """A function handed over may be called; its globals hold the tests."""
    code = """
def peek(function):
    try: return function.__globals__
    except Exception as error: return type(error).__name__
"""
    assert box.check_tests(code, "assert peek(lambda: 1) == 'AttributeError'").solved


LEAK = """
def first(values):
    for name in ('gi_frame', 'cr_frame', 'ag_frame'):
        try: return getattr(values, name).f_globals['SECRET']
        except Exception: pass
    return next(iter(values), 0)
"""


@pytest.mark.parametrize("given", ["(x for x in (1, 2))", "iter([1, 2])", "map(abs, [1, 2])"])
def test_a_generator_of_the_tests_shows_no_frame(box: Sandbox, given: str) -> None:
    """A frame has the tests' globals, and by them what is expected."""
    assert not box.check_tests(LEAK, f"SECRET = 7\nassert first({given}) == SECRET").solved
    assert box.check_tests(LEAK, f"SECRET = 7\nassert first({given}) == 1").solved


@pytest.mark.parametrize(
    "tests",
    [
        "assert pytest.approx(f(1)) == 5 and f(1) == pytest.approx(5)",
        "assert np.isclose(f(1), 5)",
        "assert numpy.allclose(f(1), 5)",
        "assert pd.Series([f(1)]).equals([5])",
    ],
)
def test_a_library_that_tests_forgot_to_import_is_not_the_programs(
    box: Sandbox, tests: str
) -> None:
    cheat = """
class Library:
    def __getattr__(self, name): return lambda *a: self if name == 'Series' else True
np = numpy = pd = pytest = Library()
def f(x): return True
"""
    try:
        check = box.check_tests(cheat, tests, limits=LIMITS)
    except BadTests as error:
        assert "without importing it" in str(error)  # noqa: PT017 - numpy may be there or not
    else:
        assert check.passed == 0


@pytest.fixture(scope="module")
def numpy_box() -> Iterator[Sandbox]:
    pytest.importorskip("numpy")
    with Sandbox(backend="bwrap", slots=1, preload=["numpy"]) as found:
        yield found


@pytest.fixture(scope="module")
def tables_box() -> Iterator[Sandbox]:
    pytest.importorskip("pandas")
    limits = Limits(memory_mib=1024)
    with Sandbox(backend="bwrap", slots=1, preload=["pandas"], limits=limits) as found:
        yield found


@pytest.mark.bwrap
@pytest.mark.parametrize(
    "compare",
    [
        "assert np.allclose(f(x), x / 4)",
        "assert np.isclose(a=f(x), b=x / 4).all()",
        "np.testing.assert_allclose(f(x), x / 4)",
        "np.testing.assert_almost_equal(f(x), x / 4)",
        "assert_array_almost_equal(f(x), x / 4)",
        "assert np.all(np.abs(f(x) - np.array([x / 4])) < 1e-6)",
        "assert (abs(np.array([f(x)]).ravel() - x / 4) < 1e-6).all()",
    ],
)
def test_nothing_is_close_to_no_number(numpy_box: Sandbox, compare: str) -> None:
    """NumPy finds no number in [] that differs, and HumanEval+ and MBPP+ compare with allclose."""
    tests = "import numpy as np\nfrom numpy.testing import assert_array_almost_equal\n"
    tests += f"for x in (1, 2): {compare}"
    assert numpy_box.check_tests("def f(x): return x / 4 + 1e-12", tests).solved
    assert not numpy_box.check_tests("def f(x): return []", tests).solved
    assert numpy_box.check_tests("def f(x): return []", tests.replace("x / 4", "[]")).solved
    ragged = "import numpy as np\nnp.testing.assert_equal(f(1), [[1], [1, 2]])"
    assert numpy_box.check_tests("def f(x): return [[1], [1, 2]]", ragged).solved


@pytest.mark.bwrap
@pytest.mark.parametrize(
    ("code", "tests", "solved"),
    [
        ("def f(a): return a * 2", "assert (f(np.array([1, 2])) == np.array([2, 4])).all()", True),
        ("def f(a): return a.mean()", "assert f(np.array([[1, 2]])) == 1.5", True),
        ("def f(*, a): return a['x'].shape[1]", "assert f(a={'x': np.zeros((3, 2))}) == 2", True),
        ("def f(a): return max(a)", "assert f(np.array([1, 3])) == 3", True),
        ("def f(g): return g(np.array([1, 2]))", "assert f(lambda a: sum(a)) == 3", True),
        ("def f(a): pass", "x = [np.zeros(2)]\nf(x)\nassert isinstance(x[0], np.ndarray)", True),
        ("def f(a): return []", "assert f(np.array([])) == []", True),
        ("def f(a): return []", "assert (f(np.array([])) == np.array([])).all()", True),
        ("def f(a): return []", "assert (f(np.array([1])) == np.array([5])).all()", False),
        ("def f(a): return [[]]", "assert np.all(f(np.array([1])) == np.array([5]))", False),
        ("def f(a): return []", "assert not (f(np.array([1])) != np.array([5])).any()", False),
        ("def f(a): return np.zeros((0, 2))", "assert (f(0) == np.array([5, 6])).all()", False),
        (
            "class E(np.ndarray):\n    def __eq__(self, other): return np.ones(1, bool)\n"
            "def f(a): return np.zeros(1).view(E)",
            "assert (f(0) == np.array([5])).all()",
            False,
        ),
        (
            "class E:\n    def __len__(self): E.n -= 1; return E.n > 0\n"
            "    def __getitem__(self, i): return [3][i if E.n > 0 else 1]\n"
            "def f(a): E.n = 3; return E()",
            "assert np.all(np.equal(f(1), 5))",
            False,
        ),
        ("def f(a): return np.array([])", "assert np.all(np.equal(f(1), 5))", False),
        ("def f(a): return np.array(a) * 2", "assert f([1, 2]).shape == (2,)", True),
        (
            "def f(a): return np.array(a)",
            "assert f([1]).tolist() == [1] and f([1]).sum() == 1",
            True,
        ),
        ("def f(a): return np.mean(a)", "assert isinstance(f([1, 2]), np.floating)", True),
        ("def f(a, t): return np.array(a, t).dtype", "assert f([1], np.int8) == np.int8", True),
        ("def f(g): return g(np.ones(2))", "assert np.allclose(f(np.exp), np.e)", True),
        (
            "def f(a): return np.linalg.inv(a)",
            "try: f(np.zeros((2, 2)))\nexcept np.linalg.LinAlgError: a = 1\nassert a",
            True,
        ),
        ("def f(a): return np.ones(2) / 3", "assert f(0) == pytest.approx([0.3333333] * 2)", True),
        ("def f(a): return np.float32(0.3)", "assert f(0) == pytest.approx(0.3)", True),
        ("def f(a): return np.ones(2) / 3", "assert f(0) == pytest.approx([0.333, 0.333])", False),
        ("def f(a): return np.array([])", "assert f(0) == pytest.approx([0.3])", False),
        ("def f(a): a += 1", "a = np.zeros(2)\nf(a)\nassert (a == 1).all()", True),
        (
            "def f(a): raise ValueError(np.int8(3))",
            "try: f(1)\nexcept ValueError as e: a = e\nassert str(a) == '3'",
            True,
        ),
    ],
)
def test_arrays_travel_whole_and_an_empty_one_equals_no_other(
    numpy_box: Sandbox, code: str, tests: str, solved: bool
) -> None:
    given = "import numpy as np\n"
    assert numpy_box.check_tests(given + code, f"import pytest\n{given}{tests}").solved is solved


TABLE = "pd.DataFrame({'k': pd.Categorical(['a', 'b']), 't': pd.to_datetime(['2024-01-02'] * 2)})"


@pytest.mark.bwrap
@pytest.mark.parametrize(
    ("code", "tests", "solved"),
    [
        (f"def f(d): return {TABLE}", f"pd.testing.assert_frame_equal(f(0), {TABLE})", True),
        (f"def f(d): return {TABLE}", f"assert f(0).equals({TABLE})", True),
        ("def f(x): return x * 2", "assert pd.Series([1, 2]).apply(f).tolist() == [2, 4]", True),
        ("def f(d): return d.columns", f"assert f({TABLE}).tolist() == ['k', 't']", True),
        (
            "def f(d): return d['t'].iloc[0]",
            f"assert f({TABLE}) == pd.Timestamp('2024-01-02')",
            True,
        ),
        ("def f(d): return d.set_index(['k', 't']).index", f"assert f({TABLE}).nlevels == 2", True),
        ("def f(d): d['n'] = 1", f"d = {TABLE}\nf(d)\nassert (d['n'] == 1).all()", True),
        (
            "def f(n): return pd.Series([1, None], pd.date_range('2024', periods=n, tz='UTC'))",
            "r = f(2)\nassert r.index.freq == 'D' and r.index.tz and pd.isna(r.iloc[1])",
            True,
        ),
        ("def f(d): return pd.Series([], dtype=float)", "assert (f(0) == 5).all()", False),
        ("def f(d): return pd.Series([pd.NA], dtype='Int8')", "assert (f(0) == 5).all()", False),
        (
            "def f(d): return pd.Series([pd.NA], dtype='Int8')",
            "assert (abs(f(0) - 5) < 1).all()",
            False,
        ),
        (
            "class E(pd.DataFrame):\n    def equals(*_): return True\ndef f(d): return E()",
            f"assert f(0).equals({TABLE})",
            False,
        ),
    ],
)
def test_tables_travel_whole(tables_box: Sandbox, code: str, tests: str, solved: bool) -> None:
    given = "import pandas as pd\n"
    assert tables_box.check_tests(given + code, given + tests).solved is solved


def test_an_array_of_the_programs_is_no_address_in_the_tests(box: Sandbox) -> None:
    """NumPy would read the tests' memory where ``__array_interface__`` says."""
    code = """
class Array:
    __array_interface__ = {'data': (1, False), 'shape': (1,), 'typestr': '<f8', 'version': 3}
def f(): return Array()
"""
    assert box.check_tests(code, "assert not hasattr(f(), '__array_interface__')").solved


def test_a_standard_module_is_never_the_candidates(box: Sandbox) -> None:
    code = """
class math:
    isclose = lambda *a, **k: True
def f(): return 0.0
"""
    assert not box.check_tests(code, "assert math.isclose(f(), 1.0)").solved


def test_what_the_tests_import_is_never_the_candidates(box: Sandbox) -> None:
    """The candidate runs first, and may leave modules where scripts look for them."""
    code = """
import os
forged = 'import os\\nos.write(3, b\\'{"total": 1}\\\\n{"test": "pass"}\\\\n\\')\\nos._exit(0)'
for name in ('difflib', 'csv', 'tests', 'tests2', 'wave'):
    for folder in ('/tmp', '.'):
        open(f'{folder}/{name}.py', 'w').write(forged)
compile(forged, '', 'exec')
def f(): return 1
"""
    for tests in (
        "import difflib, csv\nassert f() == 2",
        "assert wave.open and f() == 2",
        "import os, sys\nsys.path[:0] = ['', '.', '/tmp', '/tmp/work']\nx = f()\n"
        "try: import tests2\nexcept ImportError: pass\nassert x == 2",
    ):
        check = box.check_tests(code, tests, limits=LIMITS)
        assert (check.status.value, check.passed, check.total) == ("ok", 0, 1), check
