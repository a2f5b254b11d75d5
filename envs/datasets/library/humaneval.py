"""HumanEval: complete a Python function so that its hidden tests pass."""

from __future__ import annotations

from ....sandbox import problem_from_humaneval
from ...task import Task
from ..reading import Row
from .data_env import ProgramEnv, question_in


class HumanEval(ProgramEnv):
    """Write a function (Chen et al. 2021, arXiv:2107.03374).

    Observation: a signature and docstring. Action: the function's body, or a whole program in
    a ```` ```python ```` block.
    Reward: 1.0 if every hidden test passes in the sandbox.
    End: after one step.

    Args:
        data: rows in the public layout: a file, a folder or a hub name; by default, the sample.

    Raises:
        DataError: the data cannot be read, or a row's tests cannot be used.
    """

    fields = dict.fromkeys(("task_id", "prompt", "entry_point", "canonical_solution", "test"), str)
    hub = "openai/openai_humaneval"
    benchmark = True

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row; the prompt is the beginning of the program."""
        question_in(row, "prompt")
        return Task(
            prompt="Complete this Python function. Reply with the whole program in a "
            f"```python block.\n\n{row['prompt']}",
            reference=problem_from_humaneval(row),
            id=str(row["task_id"]),
            solution=row["canonical_solution"],
        )
