"""What both servers of ``serve.py`` serve: a row, and a reply that must be equal to its answer."""

from __future__ import annotations

from assay.envs import Rows, Task, TextEnv, register
from assay.verifiers import Exact

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


register("bench/Sums-v0", Sums)
