"""MBPP: write a Python function from a sentence and one example call."""

from __future__ import annotations

from ....sandbox import problem_from_mbpp
from ...task import Task
from ..reading import Row
from .data_env import ProgramEnv, question_in


class MBPP(ProgramEnv):
    """Write a function (Austin et al. 2021, arXiv:2108.07732).

    Observation: what the function must do, and the first test, which names it. Action: a
    program, bare or in a ```` ```python ```` block.
    Reward: 1.0 if every test passes in the sandbox.
    End: after one step.

    Args:
        data: rows in the layout of the full set (``text``), of the sanitized one or of MBPP+
            (``prompt``, ``test_imports``): a file, a folder or a hub name; by default, the sample.

    Raises:
        DataError: the data cannot be read, or a row's tests cannot be used.
    """

    fields = {"task_id": (int, str), "code": str, "test_list": list}
    optional = {
        "text": str,
        "prompt": str,
        "test_setup_code": str,
        "test_imports": list,
        "test": str,
    }
    hub = "google-research-datasets/mbpp:full"

    def name_of(self, row: Row) -> str:
        """Return a name such as ``MBPP/11``."""
        return f"MBPP/{str(row['task_id']).removeprefix('Mbpp/')}"

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row; the prompt shows the first test."""
        problem = problem_from_mbpp(row)
        field = "prompt" if row.get("text") is None and row.get("prompt") else "text"
        question = question_in(row, field)
        return Task(
            prompt=f"{question}\nReply with a Python program in a ```python block. "
            f"It must pass tests such as:\n\n{row['test_list'][0]}",
            reference=problem,
            id=self.name_of(row),
            solution=row["code"],
        )
