"""HumanEval: complete a Python function so that its hidden tests pass."""

from __future__ import annotations

from pathlib import Path

from ..sandbox import Sandbox, problem_from_humaneval
from ..verifiers import Code, Rubric
from .data import checked, read_rows
from .source import Rows
from .task import Task
from .text_env import TextEnv

_FIELDS = dict.fromkeys(("task_id", "prompt", "entry_point", "canonical_solution", "test"), str)


class HumanEval(TextEnv):
    """Write a function (Chen et al. 2021, arXiv:2107.03374).

    Observation: a signature and docstring. Action: the function's body, or a whole program in
    a ```` ```python ```` block.
    Reward: 1.0 where every hidden test passes in the sandbox.
    End: after one step.

    Args:
        data: a JSONL file in the public layout, plain or ``.gz``, a folder saved by
            ``datasets``, or a hub name.
        sandbox: where programs run; ``None`` opens one on first use.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read, or a row's tests cannot be used.
    """

    def __init__(
        self,
        data: str | Path = "openai/openai_humaneval",
        *,
        sandbox: Sandbox | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.data = data
        rows = read_rows(data, fields=_FIELDS, split="test")
        tasks = [
            Task(
                prompt="Complete this Python function. Reply with the whole program in a "
                f"```python block.\n\n{row['prompt']}",
                reference=checked(
                    f"{data}, row {i} ({row['task_id']})", problem_from_humaneval, row
                ),
                id=str(row["task_id"]),
                solution=row["canonical_solution"],
            )
            for i, row in enumerate(rows)
        ]
        rubric = Rubric({"accuracy": Code(sandbox)})
        super().__init__(Rows(tasks), rubric, render_mode=render_mode)
