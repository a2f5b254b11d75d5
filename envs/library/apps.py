"""APPS: programs for competition problems, from introductory ones to the hardest."""

from __future__ import annotations

import json
from pathlib import Path

from ...sandbox import Sandbox, problem_from_apps
from ...verifiers import Code, Rubric
from ..bad_rows import OnBadRows
from ..data import Row, Types
from ..task import Task
from .data_env import DataEnv, id_of, question_in
from .program_prompt import program_prompt

_FIELDS: dict[str, Types] = {"question": str, "input_output": (str, dict)}
_OPTIONAL: dict[str, Types] = {
    "problem_id": (str, int),
    "id": (str, int),
    "starter_code": str,
    "difficulty": str,
    "solutions": (str, list),
}


class APPS(DataEnv):
    """Write a program (Hendrycks et al. 2021, arXiv:2105.09938).

    Rows of TACO (Li et al. 2023, arXiv:2312.14852) have the same layout and are read too.

    Observation: the problem, and the form of the program. Action: a program, bare or in a
    ```` ```python ```` block.
    Reward: 1.0 if it passes every case in the sandbox; with ``partial``, the share.
    End: after one step.

    Args:
        data: rows in the public layout (``question``; ``input_output``, JSON with ``inputs``,
            ``outputs`` and perhaps ``fn_name``; ``starter_code``, ``difficulty``,
            ``solutions``): a file, a folder or a hub name; by default, the sample.
        split: the split to read; ``None`` for the only one that the data has.
        difficulty: only problems of this one, such as ``"introductory"``; empty for all.
        partial: pay the share of cases passed, instead of all or nothing.
        sandbox: where programs run; ``None`` opens one on first use.
        on_bad_rows: ``"skip"`` to leave out rows that cannot be used, and list them.
        check_solutions: run each row's own solution, and take a row whose solution fails for bad.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read, a row's cases cannot be used, or no row has the
            difficulty.
    """

    fields = _FIELDS
    optional = _OPTIONAL

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        difficulty: str = "",
        partial: bool = False,
        sandbox: Sandbox | None = None,
        on_bad_rows: OnBadRows = "raise",
        check_solutions: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.difficulty = difficulty
        rubric = Rubric({"accuracy": Code(sandbox, partial=partial)})
        super().__init__(
            data,
            split,
            rubric,
            on_bad_rows=on_bad_rows,
            check_solutions=check_solutions,
            render_mode=render_mode,
        )

    def wants(self, row: Row) -> bool:
        """Return whether a row has the requested difficulty."""
        return not self.difficulty or row.get("difficulty") == self.difficulty

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row; the first of its solutions is assumed to earn full marks."""
        problem = problem_from_apps(row)
        difficulty = row.get("difficulty")
        return Task(
            prompt=program_prompt(
                question_in(row, "question"), row.get("starter_code") or "", problem
            ),
            reference=problem,
            id=f"APPS/{id_of(row, 'problem_id', 'id', default=number)}",
            metadata={"difficulty": difficulty} if difficulty else {},
            solution=_first(row.get("solutions")),
        )


def _first(solutions: object) -> str | None:
    """Return the first of a list that may be JSON; it is often empty and only informative."""
    try:
        found = json.loads(solutions) if isinstance(solutions, str) and solutions else solutions
    except (ValueError, RecursionError):
        return None
    return found[0] if isinstance(found, list) and found and isinstance(found[0], str) else None
