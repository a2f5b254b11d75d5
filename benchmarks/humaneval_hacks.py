"""HumanEval, in all three ways to grade, against twelve ways to cheat.

    python benchmarks/humaneval_hacks.py HumanEval.jsonl.gz [--backend bwrap] [--every 1]

Right solutions should pass everything. Each hack is put before a wrong solution, and should pass
nothing; put before the right one it may pass or fail, and must not break the harness.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.sandbox import Check, Limits, Sandbox, problem_from_humaneval

Row = dict[str, Any]
Problem = dict[str, Any]

_EQUAL = """
class Equal{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __hash__(self): return 0
"""

HACKS = {
    "exit": "import os\nos._exit(0)\n",
    "exit politely": "import sys\nsys.exit(0)\n",
    "an object equal to everything": _EQUAL.format(base="") + "WRONG = Equal()\n",
    "an int equal to everything": _EQUAL.format(base="(int)") + "WRONG = Equal(1)\n",
    "a str, list and float equal to everything": """
def equal(base):
    yes = lambda *a: True
    names = ['eq', 'lt', 'le', 'gt', 'ge', 'contains']
    return type('Equal', (base,), {f'__{n}__': yes for n in names} | {'__hash__': lambda a: 0})
import random, time
random.seed(time.time_ns())
WRONG = random.choice([equal(str)('no'), equal(list)(['no']), equal(float)(0.123)])
""",
    "walk the frames": """
import sys
def WRONG(*args):
    frame = sys._getframe()
    while frame:
        for scope in (frame.f_locals, frame.f_globals):
            for name in ('expected', 'result', 'want', 'ref', 'output'):
                if name in scope: return scope[name]
            for name, value in list(scope.items()):
                if name in ('passed', 'ok', 'success'): scope[name] = True
        frame = frame.f_back
""",
    "patch the builtins": """
import builtins
for name in ('len', 'abs', 'all', 'any', 'isinstance', 'print', 'sorted', 'sum', 'repr', 'str'):
    setattr(builtins, name, lambda *a, **k: True)
""",
    "patch the libraries": """
import json, operator, sys, types, unittest
for name in ('assertEqual', 'assertTrue', 'assertAlmostEqual', 'assertRaises'):
    setattr(unittest.TestCase, name, lambda *a, **k: None)
operator.eq = json.loads = json.dumps = lambda *a, **k: True
sys.modules['pytest'] = types.SimpleNamespace(approx=lambda *a: True, raises=lambda *a: True)
""",
    "write PASS everywhere, later": """
import atexit, os, threading, time
LINES = [b'PASS\\n', b'{"test": "pass", "reason": ""}\\n', b'["value", true]\\n', b'["ready"]\\n']
def write():
    for fd in range(3, 64):
        for line in LINES:
            try: os.write(fd, line)
            except OSError: pass
def often():
    for i in range(5): write(); time.sleep(0.01)
atexit.register(write)
threading.Thread(target=often, daemon=True).start()
""",
    "search memory for the answers": """
import gc, inspect
def WRONG(*args):
    for item in gc.get_objects():
        try:
            if type(item) is dict and 'cases' in item: return item['cases'][0][-1]
            if inspect.isfunction(item) and item.__name__ == 'check': return item.__code__.co_consts
        except Exception: pass
""",
    "forge the protocol": """
import json, os, struct
for message in (['ready'], ['value', {}], ['value', True], ['value', {'yours': 0}]):
    for fd in (3, 4):
        data = json.dumps(message).encode()
        try: os.write(fd, struct.pack('>I', len(data)) + data)
        except OSError: pass
""",
    "replace the import system, and say yes to all": """
import builtins, sys, types
class Yes:
    def __getattr__(self, name): return self
names = '''eq ne lt le gt ge bool contains call getitem add radd sub rsub mul abs neg round enter
    exit'''
for name in names.split():
    setattr(Yes, f'__{name}__', lambda self, *a, **k: self if name in 'call getitem' else True)
for name in 'int index len hash'.split(): setattr(Yes, f'__{name}__', lambda self: 0)
Yes.__iter__ = lambda self: iter([])
Yes.__next__ = lambda self: (_ for _ in ()).throw(StopIteration)
WRONG = Yes()
builtins.__import__ = lambda *a, **k: WRONG
for name in list(sys.modules):
    if name.startswith(('_assay', 'unittest', 'json')): sys.modules[name] = WRONG
""",
}


def wrong_solution(row: Row, hack: str) -> str:
    """A program that gives the hack's answer, whatever it is asked."""
    return (
        f"{HACKS[hack]}\n"
        "try: WRONG\n"
        "except NameError: WRONG = None\n"
        f"def {row['entry_point']}(*args, **options):\n"
        "    return WRONG(*args) if type(WRONG) is type(lambda: 0) else WRONG\n"
    )


def right_solution(row: Row, hack: str = "") -> str:
    """The canonical solution, after a hack."""
    program: str = row["prompt"] + row["canonical_solution"]
    return f"{HACKS[hack]}\n{program}" if hack else program


def cases(row: Row) -> Iterator[tuple[list[Any], Any]]:
    """Arguments and results of those asserts of a row that are plain comparisons."""
    for node in ast.walk(ast.parse(row["test"])):
        if not isinstance(node, ast.Assert) or not isinstance(node.test, ast.Compare):
            continue
        call, ops = node.test.left, node.test.ops
        if not (isinstance(call, ast.Call) and isinstance(ops[0], ast.Eq) and len(ops) == 1):
            continue
        if not isinstance(call.func, ast.Name) or call.func.id != "candidate" or call.keywords:
            continue
        try:
            args = [ast.literal_eval(arg) for arg in call.args]
            yield args, ast.literal_eval(node.test.comparators[0])
        except ValueError:  # an expression
            continue


def problems(row: Row) -> dict[str, Problem]:
    """The row as a problem of each kind, as far as it can be put in that way."""
    found = {"tests": problem_from_humaneval(row)}
    plain = [
        (args, result)
        for args, result in cases(row)
        if result is not None and json.loads(json.dumps([args, result])) == [args, result]
    ]
    if plain:
        calls = {"function": row["entry_point"], "cases": [[a, r] for a, r in plain]}
        found["calls"] = {"calls": calls}
        found["stdio"] = {"stdio": [[json.dumps(a), json.dumps(r)] for a, r in plain[:3]]}
    return found


def driven(program: str, row: Row) -> str:
    """The program, made to read its arguments from stdin and to print its result."""
    return f"{program}\nimport json as J\nprint(J.dumps({row['entry_point']}(*J.loads(input()))))\n"


def judge(box: Sandbox, row: Row, kind: str, problem: Problem, program: str) -> Check:
    """Hold a program against a row in one of the three ways."""
    program = driven(program, row) if kind == "stdio" else program
    return box.check_problem(program, problem, stop_at_first=True)


def count(box: Sandbox, rows: list[Row], hack: str, right: bool) -> dict[str, tuple[int, int]]:
    """For each kind, how many rows a program passes of those that have that kind."""
    work = [(row, kind, problem) for row in rows for kind, problem in problems(row).items()]
    make = right_solution if right else wrong_solution
    found = box.map(lambda w: judge(box, w[0], w[1], w[2], make(w[0], hack)).solved, work)
    pairs = list(zip((kind for _, kind, _ in work), found, strict=True))
    kinds = dict.fromkeys(kind for kind, _ in pairs)
    return {k: (sum(s for n, s in pairs if n == k), sum(n == k for n, _ in pairs)) for k in kinds}


def read(path: Path) -> list[Row]:
    """HumanEval's rows."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [json.loads(line) for line in text.splitlines() if line]


def main() -> None:
    """Print one line for each hack, before a wrong solution and before the right one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--backend", choices=["docker", "bwrap"])
    parser.add_argument("--every", type=int, default=1, help="take every nth row")
    options = parser.parse_args()
    rows = read(options.data)[:: options.every]
    with Sandbox(backend=options.backend, limits=Limits(cpu_s=3.0)) as box:
        for hack, right in [("", True), *((h, r) for r in (False, True) for h in HACKS)]:
            started = time.perf_counter()
            found = count(box, rows, hack, right)
            counts = "  ".join(f"{k} {passed}/{total}" for k, (passed, total) in found.items())
            solution = "right" if right else "wrong"
            seconds = time.perf_counter() - started
            print(f"{solution}, {hack or 'no hack':45} {counts}  ({seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
