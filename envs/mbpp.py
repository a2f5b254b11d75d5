"""MBPP: write a Python function from a sentence and one example call."""

from __future__ import annotations

from pathlib import Path

from ..sandbox import Sandbox, problem_from_mbpp
from ..verifiers import Code, Rubric
from .data import Row, checked, read_rows
from .source import Rows, Split
from .task import Task
from .text_env import TextEnv

_FIELDS = {"task_id": int, "text": str, "code": str, "test_list": list}


class MBPP(TextEnv):
    """Write a function (Austin et al. 2021, arXiv:2108.07732).

    Observation: what the function must do, and the first test, which names it. Action: a
    program, bare or in a ```` ```python ```` block.
    Reward: 1.0 where every test passes in the sandbox.
    End: after one step.

    Args:
        data: a JSONL file in the public layout, plain or ``.gz``, a folder saved by
            ``datasets``, or a hub name.
        split: which split, where the data has several.
        sandbox: where programs run; ``None`` opens one on first use.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read, or a row's tests cannot be used.
    """

    def __init__(
        self,
        data: str | Path = "google-research-datasets/mbpp",
        split: Split = "test",
        *,
        sandbox: Sandbox | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.data = data
        rows = read_rows(data, fields=_FIELDS, split=split)
        tasks = [_task(row, f"{data}, row {i}") for i, row in enumerate(rows)]
        rubric = Rubric({"accuracy": Code(sandbox)})
        super().__init__(Rows(tasks), rubric, render_mode=render_mode)


def _task(row: Row, place: str) -> Task:
    problem = checked(f"{place} (MBPP/{row['task_id']})", problem_from_mbpp, row)
    return Task(
        prompt=f"{row['text']}\nReply with a Python program in a ```python block. "
        f"It must pass tests such as:\n\n{row['test_list'][0]}",
        reference=problem,
        id=f"MBPP/{row['task_id']}",
        solution=row["code"],
    )
