"""APPS: programs for competition problems, from introductory ones to the hardest."""

from __future__ import annotations

import json

from ....sandbox import problem_from_apps
from ...task import Task
from ..reading import Row
from .data_env import ProgramEnv, id_of, question_in
from .prompts import program_prompt


class APPS(ProgramEnv):
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
        difficulty: only problems of this one, such as ``"introductory"``; empty for all.

    Raises:
        DataError: the data cannot be read, a row's cases cannot be used, or no row has the
            difficulty.
    """

    fields = {"question": str, "input_output": (str, dict)}
    optional = {
        "problem_id": (str, int),
        "id": (str, int),
        "starter_code": str,
        "difficulty": str,
        "solutions": (str, list),
    }

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
