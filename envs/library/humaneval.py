"""HumanEval: complete a Python function so that its hidden tests pass."""

from __future__ import annotations

from pathlib import Path

from ...sandbox import Sandbox, problem_from_humaneval
from ...verifiers import Code, Rubric
from ..bad_rows import OnBadRows
from ..data import Row
from ..task import Task
from .data_env import DataEnv, question_in

_FIELDS = dict.fromkeys(("task_id", "prompt", "entry_point", "canonical_solution", "test"), str)


class HumanEval(DataEnv):
    """Write a function (Chen et al. 2021, arXiv:2107.03374).

    Observation: a signature and docstring. Action: the function's body, or a whole program in
    a ```` ```python ```` block.
    Reward: 1.0 if every hidden test passes in the sandbox.
    End: after one step.

    Args:
        data: rows in the public layout: a file, a folder or a hub name; by default, the sample.
        sandbox: where programs run; ``None`` opens one on first use.
        on_bad_rows: ``"skip"`` to leave out rows that cannot be used, and list them.
        check_solutions: run each row's own solution, and take a row whose solution fails for bad.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read, or a row's tests cannot be used.
    """

    fields = _FIELDS
    hub = "openai/openai_humaneval"
    benchmark = True

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        sandbox: Sandbox | None = None,
        on_bad_rows: OnBadRows = "raise",
        check_solutions: bool = False,
        render_mode: str | None = None,
    ) -> None:
        rubric = Rubric({"accuracy": Code(sandbox)})
        super().__init__(
            data,
            "test",
            rubric,
            on_bad_rows=on_bad_rows,
            check_solutions=check_solutions,
            render_mode=render_mode,
        )

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
