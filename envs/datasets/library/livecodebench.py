"""LiveCodeBench: programs for contest problems, by the date of the contest."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from ....sandbox import Sandbox, problem_from_livecodebench
from ...task import Task
from ..bad_rows import OnBadRows
from ..reading import Row
from .data_env import ProgramEnv, id_of, question_in
from .prompts import program_prompt


class LiveCodeBench(ProgramEnv):
    """Write a program (Jain et al. 2024, arXiv:2403.07974).

    Observation: the problem, and the form of the program. Action: a program, bare or in a
    ```` ```python ```` block.
    Reward: 1.0 if it passes every public and private case in the sandbox; with ``partial``,
    the share.
    End: after one step.

    Args:
        data: rows in the public layout (``question_content``, ``public_test_cases``,
            ``private_test_cases``, ``starter_code``, ``metadata``, ``difficulty``,
            ``contest_date``): a file, a folder or a hub name; by default, the sample. A
            ``solution``, if a row has one, is a program that passes.
        difficulty: only problems of this one: ``"easy"``, ``"medium"``, ``"hard"``; empty for all.
        since: only contests of this day and later, as ``"2024-08-01"``: later than what a model
            was trained on; empty for all.

    Raises:
        DataError: the data cannot be read, a row's cases cannot be used, or no row is left.
        ValueError: ``since`` is no date.
    """

    fields = {"question_content": str}
    optional = {
        "question_id": (str, int),
        "starter_code": str,
        "public_test_cases": (str, list),
        "private_test_cases": (str, list),
        "metadata": (str, dict),
        "difficulty": str,
        "contest_date": (str, date),
        "solution": str,
    }
    benchmark = True

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        difficulty: str = "",
        since: str = "",
        partial: bool = False,
        sandbox: Sandbox | None = None,
        on_bad_rows: OnBadRows = "raise",
        check_solutions: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if since:
            try:
                since = date.fromisoformat(since).isoformat()  # it also reads 20240801
            except ValueError as error:
                raise ValueError(f"since must be a date as 2024-08-01, got {since!r}") from error
        self.since = since
        super().__init__(
            data,
            split,
            difficulty=difficulty,
            partial=partial,
            sandbox=sandbox,
            on_bad_rows=on_bad_rows,
            check_solutions=check_solutions,
            render_mode=render_mode,
        )

    def wants(self, row: Row) -> bool:
        """Return whether a row has the requested difficulty and time."""
        held = str(row.get("contest_date") or "")[:10]
        return super().wants(row) and (not self.since or held >= self.since)

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row; public and private cases are judged alike."""
        problem = problem_from_livecodebench(row)
        metadata = {"difficulty": row.get("difficulty"), "date": row.get("contest_date")}
        return Task(
            prompt=program_prompt(
                question_in(row, "question_content"), row.get("starter_code") or "", problem
            ),
            reference=problem,
            id=f"LiveCodeBench/{id_of(row, 'question_id', default=number)}",
            metadata={key: str(value) for key, value in metadata.items() if value},
            solution=row.get("solution"),
        )
