"""The same program gives the same result: in any slot, after any other, on a loaded machine."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from assay.sandbox import Limits, Result, Sandbox

pytestmark = pytest.mark.slow

TELL = r"""
import datetime, locale, os, random, sys, threading, time
old = os.umask(0)
os.umask(old)
print(list({"alpha", "beta", "gamma", "delta", "epsilon"}), hash("x"))
print(random.random(), random.sample(range(1000), 5))
print(time.tzname, time.timezone, datetime.datetime.fromtimestamp(0))
print(oct(old), locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(False))
print(sys.stdin.encoding, sys.stdout.encoding, sys.stdin.seekable(), sys.stdout.seekable())
print(sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.errors, sys.argv)
print(sys.getrecursionlimit() > 1000, sys.flags.hash_randomization, threading.active_count())
print(sorted(os.environ.items()), os.getcwd())
"""

LIMITS = Limits(cpu_s=0.7, wall_s=2.0, memory_mib=96, output_bytes=10_000)

PROGRAMS = {
    # On a sixth of a core, what 8 loops leave it here, this takes longer than its wall limit.
    "worker": "import time\nwhile time.process_time() < 0.45: pass",
    "sleeper": "import time; time.sleep(60)",
    "looper": "while True: pass",
    "hoarder": "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "talker": "while True: print('x' * 1000)",
    "raiser": "1 / 0",
    "reader": "print(len(input()))",
    "parent": "import os, time\nif os.fork() == 0:\n  while time.process_time() < 0.2: pass\n"
    "else: print(os.wait()[1])",
}

EXPECTED = {
    "worker": "ok",
    "sleeper": "timeout",
    "looper": "timeout",
    "hoarder": "memory",
    "talker": "output_limit",
    "raiser": "runtime_error",
    "reader": "ok",
    "parent": "ok",
}


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Processes that want all of a core, for as long as the block lasts, or a minute."""
    code = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    command = [sys.executable, "-I", "-S", "-c", code]
    # In sessions of their own, which Linux would otherwise give one share of the cores together.
    loops = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def statuses(box: Sandbox) -> dict[str, str]:
    results = box.run_many([(code, "hello\n") for code in PROGRAMS.values()], limits=LIMITS)
    return dict(zip(PROGRAMS, (result.status.value for result in results), strict=True))


def test_every_slot_shows_a_program_the_same_world(make_box) -> None:
    with make_box(slots=2) as box:
        together = threading.Barrier(2)

        def run(_: int) -> Result:
            together.wait()
            return box.run(TELL)

        found = [box.run(TELL), *box.map(run, [1, 2]), *box.map(run, [3, 4])]
    assert {result.stderr for result in found} == {""}
    assert len({result.stdout for result in found}) == 1
    lines = found[0].stdout.splitlines()
    assert lines[2] == "('UTC', 'UTC') 0 1970-01-01 00:00:00"
    assert lines[3].startswith("0o22 ")
    assert lines[3].endswith(" UTF-8")
    assert lines[4] == "utf-8 utf-8 True False"
    assert lines[5] == "False True surrogateescape ['main.py']"


def test_both_backends_show_a_program_the_same_world(make_docker, make_bwrap) -> None:
    worlds = []
    for make in (make_docker, make_bwrap):
        with make(slots=1) as box:
            worlds.append(box.run(TELL).stdout)
    assert worlds[0] == worlds[1]


def test_modules_ask_to_be_called_after_a_programs_own_forks(box: Sandbox) -> None:
    """``random`` seeds itself anew in a child, as it does outside; ``threading`` cleans up."""
    code = """
import os, random, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, f"{random.random()} {threading.active_count()}".encode())
    os._exit(0)
os.wait()
theirs, threads = os.read(reader, 100).split()
print(float(theirs) != random.random(), threads == b"1")
"""
    assert box.run(code).stdout == "True True\n"


def test_statuses_hold_on_a_loaded_machine(make_box) -> None:
    with make_box(slots=2, limits=LIMITS) as box:
        box.run_many(["", ""])
        with busy_loops(8):
            assert statuses(box) == EXPECTED


def test_busy_children_buy_a_sleeper_no_time(make_box) -> None:
    """They keep each other waiting, but their CPU time counts."""
    code = """
import os, time
for _ in range(20):
    if os.fork() == 0:
        while True: pass
time.sleep(600)
"""
    with make_box(slots=1, limits=LIMITS) as box:
        result = box.run(code)
    assert (result.status, result.exit_code) == ("timeout", None)
    assert result.wall_s < LIMITS.ceiling_seconds + 10
