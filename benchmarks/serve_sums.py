"""Environments of the benchmarks of servers: sums, and programs that run in a sandbox."""

from __future__ import annotations

from assay.envs import Rows, Task, TextEnv, register
from assay.verifiers import Code, Exact

ROWS = 512


def question(row: int) -> str:
    """The prompt of a row."""
    return f"{row % 89 + 3} and {row % 97 + 5}?"


def answer(row: int) -> str:
    """Its known answer."""
    return str(row % 89 + 3 + row % 97 + 5)


def reply(row: int) -> str:
    """What a client replies: right for every other row."""
    return answer(row) if row % 2 == 0 else "no idea"


class Sums(TextEnv):
    """Say a sum; one turn, text compared."""

    def __init__(self) -> None:
        tasks = [Task(question(i), answer(i), solution=answer(i)) for i in range(ROWS)]
        super().__init__(Rows(tasks), Exact())


class Programs(TextEnv):
    """Write a function; its test runs in a sandbox."""

    def __init__(self) -> None:
        tests = [{"tests": f"assert f(1) == {i + 1}"} for i in range(ROWS)]
        super().__init__(Rows([Task(f"Add {i}.", test) for i, test in enumerate(tests)]), Code())


def program(row: int, request: int) -> str:
    """A reply to a row of programs: right for every other row, and unlike all others."""
    added = row if row % 2 == 0 else row + 1
    return f"```python\ndef f(x):\n    return x + {added}  # {request}\n```"


register("bench/Sums-v0", Sums)
register("bench/Programs-v0", Programs)
