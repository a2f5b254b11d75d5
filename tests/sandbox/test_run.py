"""How programs run and end, under every backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox

QUICK = Limits(cpu_s=0.5, wall_s=10.0, memory_mib=128)  # of programs that are to reach it


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("print('hi')", "ok"),
        ("", "ok"),
        ("exit()", "ok"),
        ("import os; os._exit(0)", "ok"),
        ("1 / 0", "runtime_error"),
        ("exit(3)", "runtime_error"),
        ("raise SystemExit('no')", "runtime_error"),
        ("import os; os.kill(os.getpid(), 9)", "runtime_error"),
        ("import os; os.kill(os.getpid(), 15)", "runtime_error"),
        ("print(", "compile_error"),
        ("return 1", "compile_error"),
        ("x = '\0'", "compile_error"),
        ("x = '\ud800'", "compile_error"),
        ("x = " + "(" * 500, "compile_error"),
        ("while True: pass", "timeout"),
        ("x = b'x' * (1 << 30)", "memory"),
        ("x = [b'x' * 10 ** 6 for i in range(10 ** 4)]", "memory"),
        ("print('x' * 10 ** 7)", "output_limit"),
        ("import sys; sys.stderr.write('x' * 10 ** 7)", "output_limit"),
    ],
)
def test_every_end_has_its_status(box: Sandbox, code: str, status: str) -> None:
    result = box.run(code, limits=QUICK if status == "timeout" else None)
    assert (result.status, result.attempts) == (status, 1), result


def test_stdin_stdout_stderr_and_the_exit_code(box: Sandbox) -> None:
    code = "import sys\nprint(input()[::-1])\nprint('no', file=sys.stderr)\nsys.exit(7)"
    result = box.run(code, "abc\n")
    assert (result.stdout, result.stderr, result.exit_code) == ("cba\n", "no\n", 7)


def test_text_is_utf8_and_other_bytes_are_escaped(box: Sandbox) -> None:
    code = "import os\nprint(input() + 'ü')\nos.write(2, b'\\xff')"
    result = box.run(code, "日本")
    assert (result.stdout, result.stderr) == ("日本ü\n", "\\xff")


INPUTS = {
    "stdin": lambda box, text: box.run("print(1)", text),
    "stdin of a script": lambda box, text: box.run("echo 1", text, language="bash"),
    "stdin of a case": lambda box, text: box.check_stdio("print(1)", [(text, "1")]),
    "arguments": lambda box, text: box.check_calls("def f(x): return 1", "f", [((text,), 1)]),
    "tests": lambda box, text: box.check_tests("def f(): return 1", f"assert f() == 1 #{text}"),
}
PROGRAMS = {
    "program": lambda box, text: box.run(text),
    "script": lambda box, text: box.run(text, language="bash"),
    "program with cases": lambda box, text: box.check_stdio(text, [("", "1")]),
    "program with a function": lambda box, text: box.check_calls(text, "f", [((), 1)]),
    "program with tests": lambda box, text: box.check_tests(text, "assert f() == 1"),
}


@pytest.fixture(scope="module")
def small(make_box) -> Iterator[Sandbox]:
    with make_box(slots=1, limits=Limits(memory_mib=64)) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_fills_the_memory_is_refused_and_no_programs_fault(
    small: Sandbox, name: str
) -> None:
    fault = r"has \d+\.\d MiB, more than half of memory_mib=64.*Limits\(memory_mib="
    with pytest.raises(ValueError, match=fault):
        INPUTS[name](small, "x" * (33 << 20))
    assert small.run("print(1)").attempts == 1  # no slot was lost


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_fills_its_memory_by_its_text_is_at_fault(small: Sandbox, name: str) -> None:
    found = PROGRAMS[name](small, "#" * (33 << 20))
    assert (found.status, "64 MiB" in found.reason) == (RunStatus.MEMORY, True), found
    assert small.run("print(1)").attempts == 1


def test_an_input_of_half_the_memory_is_read(small: Sandbox) -> None:
    code = "import sys\nprint(sum(len(line) for line in sys.stdin))"
    result = small.run(code, "123456789abcdef\n" * (32 << 16))
    assert (result.status, result.stdout) == (RunStatus.OK, f"{32 << 20}\n"), result


def test_large_input_and_output_come_through(box: Sandbox) -> None:
    text = "0123456789" * 200_000
    limits = Limits(output_bytes=4 << 20, memory_mib=128)
    result = box.run("print(input())", text, limits=limits)
    assert result.stdout == text + "\n"


def test_a_traceback_shows_the_program_only(box: Sandbox) -> None:
    result = box.run("def f():\n    return 1 / 0\nf()")
    assert result.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert 'File "main.py", line 2, in f' in result.stderr
    assert "return 1 / 0" in result.stderr
    assert "<assay" not in result.stderr


def test_cpu_time_of_children_counts(box: Sandbox) -> None:
    code = "import os\nfor i in range(3): os.fork()\nwhile True: pass"
    result = box.run(code, limits=QUICK)
    assert result.status is RunStatus.TIMEOUT
    assert "CPU" in result.reason


def test_wall_time_is_a_backstop(box: Sandbox) -> None:
    result = box.run("import time; time.sleep(60)", limits=Limits(wall_s=0.5, memory_mib=128))
    assert result.status is RunStatus.TIMEOUT
    assert result.cpu_s < 0.5


def test_the_first_stdout_is_flushed_at_the_end_if_a_program_replaces_it(box: Sandbox) -> None:
    code = (
        "import atexit, io, sys\nsys.stdout = io.StringIO()\n"
        "atexit.register(lambda: sys.__stdout__.write(sys.stdout.getvalue()))\nprint(12)"
    )
    assert box.run(code).stdout == "12\n"


def test_output_before_a_timeout_is_kept(box: Sandbox) -> None:
    result = box.run("print('so far', flush=True)\nwhile True: pass", limits=QUICK)
    assert (result.status, result.stdout) == (RunStatus.TIMEOUT, "so far\n")


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("import sys\nprint(1)\nsys.stdout.close()", "1\n"),
        ("import sys\nprint(1)\nsys.stderr.close()", "1\n"),
        ("import sys\nprint(1)\nsys.stdout.flush()\nsys.stdout = None", "1\n"),
        ("write = open(1, 'w').write\ndef f(): write('1')\nf()", "1"),
        ("import os\nout = os.fdopen(1, 'wb')\ndef f(): out.write(b'1')\nf()", "1"),
        ("out = open('/dev/stdout', 'w')\nout.write('1')", "1"),
        ("class A:\n    def __del__(self): print(N)\nN = 1\na = A()", "1\n"),
        ("def f():\n    try: yield 1\n    finally: print(2)\nx = f()\nprint(next(x))", "1\n2\n"),
        ("import os\nprint(1, flush=True)\nos.close(1)\nprint(2)", None),
    ],
)
def test_the_end_is_an_interpreters(box: Sandbox, code: str, printed: str | None) -> None:
    result = box.run(code)
    assert (result.stdout if result.status is RunStatus.OK else None) == printed, result


FIDELITY = [
    "import inspect\ndef f(): return 1\nassert 'return 1' in inspect.getsource(f)",
    "import pickle\nclass A: pass\nassert type(pickle.loads(pickle.dumps(A()))) is A",
    "import threading\nt = threading.Thread(target=lambda: print('late'))\nt.start()",
    "import atexit\natexit.register(print, 'late')",
    "import multiprocessing\ndef f(x): return x + 1\n"
    "with multiprocessing.Pool(2) as pool: assert pool.map(f, [1, 2]) == [2, 3]",
    "import asyncio\nasync def f(): await asyncio.sleep(0)\nasyncio.run(f())",
    "import sys, threading\nsys.setrecursionlimit(10 ** 6)\nthreading.stack_size(64 << 20)\n"
    "def f(n): return n and 1 + f(n - 1)\n"
    "t = threading.Thread(target=lambda: print(f(50_000)))\nt.start()\nt.join()",
    "X = 1\nimport __main__\nassert __name__ == '__main__' and __main__.X == 1",
    "import sys\nassert sys.argv == ['main.py'] and sys.stdin.read() == ''",
    "import signal\nsignal.signal(signal.SIGALRM, lambda *a: print('alarm'))\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.01)\nsignal.pause()",
    "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 1\nassert P() == P(1)",
    "import tempfile\nwith tempfile.NamedTemporaryFile() as f: f.write(b'x')",
    "import os\nassert 'HOME' in os.environ and len(os.environ) < 12",
    "import os\nassert os.listdir('/proc/self/fd')",
    "import sqlite3, zlib, hashlib, decimal, ssl",
    "help, exit, quit, copyright, credits",
    "\ufeff# a byte order mark",
    "def f(n): return n and 1 + f(n - 1)\nf(998)",  # what the limit of 1,000 leaves
    "import locale\nlocale.setlocale(locale.LC_ALL, '')",
    "print(int(str(7 ** 6000)) % 10)",
    "import functools, sys\nsys.setrecursionlimit(10 ** 6)\n"
    "@functools.cache\ndef f(n): return n and 1 + f(n - 1)\nassert f(50_000) == 50_000",
]


@pytest.mark.parametrize("code", FIDELITY)
def test_a_program_sees_a_normal_interpreter(box: Sandbox, code: str) -> None:
    result = box.run(code)
    assert result.status is RunStatus.OK, result


def test_a_result_names_its_backend(box: Sandbox) -> None:
    result = box.run("")
    assert result.backend == box.backend
    assert result.image == box.image
    assert result.image.startswith("sha256:") == (box.backend == "docker")
    assert result.to_json()["status"] == "ok"


def test_a_run_may_not_ask_for_more_than_the_box_has(box: Sandbox) -> None:
    with pytest.raises(ValueError, match="memory_mib=4096"):
        box.run("", limits=Limits(memory_mib=4096))


def test_a_run_may_have_less_memory(box: Sandbox) -> None:
    code = "x = b'x' * (80 << 20)\nprint(len(x))"
    assert box.run(code).status is RunStatus.OK
    assert box.run(code, limits=Limits(memory_mib=32)).status is RunStatus.MEMORY


@pytest.mark.parametrize(
    ("options", "match"),
    [({"slots": 0}, "slots"), ({"backend": "bwrap", "image": "python:3"}, "python:3")],
)
def test_bad_arguments_are_named(options: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Sandbox(**options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cpu_s", 0),
        ("cpu_s", float("nan")),
        ("cpu_s", float("inf")),
        ("wall_s", 1e9),
        ("wall_s", -1.0),
        ("memory_mib", 0),
        ("memory_mib", 1.5),
        ("pids", True),
    ],
)
def test_limits_that_the_kernel_would_not_take_are_named(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        Limits(**{name: value})


@pytest.mark.parametrize("preload", ["numpy", ["os; x"], [""], [3]])
def test_preload_takes_names_of_modules_and_nothing_else(preload: list[str]) -> None:
    with pytest.raises(ValueError, match="preload"):
        Sandbox(preload=preload)


def test_what_is_not_text_is_refused(box: Sandbox) -> None:
    with pytest.raises(ValueError, match="must be text, got 3"):
        box.run(3)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(ValueError, match="must be text, got 3"):
        box.check_stdio("print(1)", [(3, "1")])  # type: ignore[list-item]  # likewise
    with pytest.raises(ValueError, match=r"cases\[1\] must expect text, got 3"):
        box.check_stdio("1 / 0", [("", "1"), ("", 3)])  # type: ignore[list-item]  # likewise


FAST_READER = """
import os, sys
for stream in (sys.stdin, sys.stdout): assert stream.mode in 'rw' and 'b' in stream.buffer.mode
os.write(1, os.read(sys.stdin.fileno(), os.fstat(0).st_size))
"""
DEVICES = """
print('x', file=open('/dev/stderr', 'w'))
with open('/dev/stdin') as source, open('/dev/stdout', 'w') as out: out.write(source.read())
"""


@pytest.mark.parametrize("code", [FAST_READER, DEVICES])
def test_fast_readers_and_device_files_work(box: Sandbox, code: str) -> None:
    result = box.run(code, stdin="3 4\n")
    assert (result.status, result.stdout) == (RunStatus.OK, "3 4\n"), result
