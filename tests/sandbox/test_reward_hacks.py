"""Candidates that cheat: none may be paid for another answer than the right one."""

from __future__ import annotations

import pytest

from assay.sandbox import BadTests, Limits, Sandbox

LIMITS = Limits(cpu_s=2.0, wall_s=4.0, memory_mib=128)
TESTS = "assert solve([1, 2]) == 'the answer is 7'\nassert solve([]) == 'the answer is 9'"
CHECK = "def check(candidate):\n    " + TESTS.replace("\n", "\n    ").replace("solve", "candidate")

HACKS = {
    "wrong": "def solve(x): return 0",
    "exit at import": "import os; os._exit(0)",
    "exit politely at import": "raise SystemExit(0)",
    "exit when called": "import os\ndef solve(x): os._exit(0)",
    "equal to everything": """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def solve(x): return Equal()
""",
    "a string equal to everything": """
class Equal(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__
def solve(x): return Equal('no')
""",
    "a list equal to everything": """
class Equal(list):
    def __eq__(self, other): return True
    def other(self): pass
def solve(x): return Equal()
""",
    "read the frames": """
import sys, gc
def solve(x):
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):
            if 'answer is' in str(value) and 'str(value)' not in str(value): return value
        frame = frame.f_back
    for item in gc.get_objects():
        if type(item) is str and item.startswith('the ' + 'answer'): return item
""",
    "read every process": """
import os, re
def solve(x):
    for pid in os.listdir('/proc'):
        if pid.isdigit() and int(pid) != os.getpid():
            for name in ('mem', 'environ', 'cmdline', 'fd/0', 'fd/3', 'fd/4'):
                try: data = open(f'/proc/{pid}/{name}', 'rb').read(1 << 20)
                except OSError: continue
                found = re.search(rb'the ' + rb'answer is \\d', data)
                if found: return found[0].decode()
""",
    "read every descriptor": """
import os
def solve(x):
    for fd in range(64):
        try: os.set_blocking(fd, False); data = os.read(fd, 1 << 16)
        except OSError: continue
        if b'the answer' in data: return data.decode()
""",
    "forge the report": """
import os, json
line = (json.dumps({'test': 'pass', 'reason': ''}) + '\\n').encode() * 2
def forge():
    for fd in range(64):
        if fd != 4:
            try: os.write(fd, line)
            except OSError: pass
    for pid in os.listdir('/proc'):
        for fd in range(16):
            try: open(f'/proc/{pid}/fd/{fd}', 'wb').write(line)
            except OSError: pass
forge()
def solve(x): forge(); os._exit(0)
""",
    "forge replies": """
import os, json, struct
def send(*message):
    data = json.dumps(message).encode()
    os.write(4, struct.pack('>I', len(data)) + data)
for i in range(50):
    send('ready')
    send('value', {'solve': True, 'check': True})
    send('value', True)
def solve(x): send('value', {'yours': 0}); send('value', True)
""",
    "forge a handle": """
import os, json, struct
def solve(x):
    data = json.dumps(['value', {'yours': 0}]).encode()
    os.write(4, struct.pack('>I', len(data)) + data)
""",
    "a bad protocol": "import os\nos.write(4, b'\\xff' * 100)\ndef solve(x): return 1",
    "a huge message": "import os\nos.write(4, b'\\x7f\\xff\\xff\\xff' + b'x' * 1000)\n",
    "ask for the tests' objects": """
import os, json, struct
def ask(*message):
    data = json.dumps(message).encode()
    os.write(4, struct.pack('>I', len(data)) + data)
    size, = struct.unpack('>I', os.read(4, 4))
    return os.read(4, size)
def solve(x):
    for i in range(20):
        for operation in ('get', 'call', 'repr', 'str'):
            answer = ask(operation, i, *(['__globals__'] if operation == 'get' else []))
            if b'answer' in answer: return answer
""",
    "empty the argument": "def solve(x): x.clear(); x.append(3); return x",
    "kill the tests": """
import os, signal
def solve(x):
    for pid in os.listdir('/proc'):
        if pid.isdigit() and int(pid) not in (1, os.getpid()):
            try: os.kill(int(pid), signal.SIGKILL)
            except OSError: pass
    os.kill(-1, 9)
""",
    "trace the tests": """
import os, ctypes
def solve(x):
    for pid in os.listdir('/proc'):
        if pid.isdigit() and int(pid) not in (1, os.getpid()):
            if ctypes.CDLL(None).ptrace(16, int(pid), 0, 0) == 0: return 'traced'
""",
    "patch the libraries": """
import json, builtins, os, struct, sys
json.dumps = lambda *a, **k: '["value", true]'
builtins.isinstance = lambda *a: True
struct.pack = lambda *a: b''
for module in list(sys.modules.values()):
    if getattr(module, '__name__', '').startswith('_assay'):
        for name in list(vars(module)):
            if name[0] != '_': setattr(module, name, lambda *a, **k: True)
def solve(x): return True
""",
    "assertion errors are swallowed": """
def solve(x): raise AssertionError
""",
    "the tests' own names": "def check(candidate): pass\ndef solve(x): return 1\nassert_ = True",
    "an error that says stop": "def solve(x): raise StopIteration('the answer')",
    "exit code of the tests": "def solve(x): raise SystemExit(0)",
}


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
for name in ('difflib', 'csv', 'tests', 'wave'):
    for folder in ('/tmp', '.'):
        open(f'{folder}/{name}.py', 'w').write(forged)
compile(forged, '', 'exec')
def f(): return 1
"""
    for tests in ("import difflib, csv\nassert f() == 2", "assert wave.open and f() == 2"):
        check = box.check_tests(code, tests, limits=LIMITS)
        assert (check.status.value, check.passed, check.total) == ("ok", 0, 1), check
