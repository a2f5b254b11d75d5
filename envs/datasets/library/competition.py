r"""MATH: competition mathematics whose answer is any expression, in five levels."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from ....verifiers import Math
from ....verifiers.text.boxes import boxes
from ...task import Task
from ..bad_rows import OnBadRows
from ..reading import Row, Types
from .data_env import AnswerEnv, id_of, question_in
from .final_number import BOXED_ANSWER, asked, solved
from .known_answer import FIELDS, first_answer, known_answer

_FIELDS: dict[str, Types] = {}  # the layouts share no field
_OPTIONAL: dict[str, Types] = {
    **FIELDS,
    "problem": str,
    "question": str,
    "solution": (str, list),
    "level": (str, int),
    "type": str,
    "subject": str,
    "unique_id": (str, int),
}


class MATH(AnswerEnv):
    r"""Solve a competition problem (Hendrycks et al. 2021, arXiv:2103.03874).

    Observation: the problem and how to answer it. Action: the reply.
    Reward: 1.0 if the final answer equals the gold one, in whatever form: the last
    ``\boxed{}``. Fractions must be in lowest terms, and if the reference is a number, no
    calculation is one (``2^3+5`` for 13). With ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        data: rows in the public layout (``problem``, ``solution`` with the gold answer in its
            last ``\boxed{}``, ``level``, ``type``), in that of MATH-500 (``answer`` and
            ``subject``) or of OlympiadBench (``question``, ``final_answer``, ``error``). A row
            may have several ``answers``, any of which is correct, and a ``tolerance`` or
            ``relative_tolerance``. Give a file, a folder or a hub name, with the subject as its
            configuration; by default, the sample.
        level: only problems of this level, from 1 to 5; 0 for all.

    Raises:
        DataError: the data cannot be read, a solution boxes nothing, or no row has the level.
        ValueError: ``level`` is not from 0 to 5.
    """

    # The work is the calculation, and many tasks ask for lowest terms.
    verifier = partial(Math, worked_out=True, reduced=True)
    fields = _FIELDS
    optional = _OPTIONAL
    hub = "EleutherAI/hendrycks_math:algebra"

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        level: int = 0,
        think: bool = False,
        on_bad_rows: OnBadRows = "raise",
        render_mode: str | None = None,
    ) -> None:
        if not 0 <= level <= 5:
            raise ValueError(f"level must be from 1 to 5, or 0 for all, got {level}")
        self.level = level
        super().__init__(data, split, think=think, on_bad_rows=on_bad_rows, render_mode=render_mode)

    def wants(self, row: Row) -> bool:
        """Return whether a row has the requested level."""
        return not self.level or level_of(row.get("level")) == self.level

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row, with the reference from :func:`known_answer`."""
        worked = row.get("solution") or ""
        solution = "\n\n".join(map(str, worked)) if isinstance(worked, list) else worked
        reference = known_answer(row, solution)
        gold = first_answer(reference)
        field = "question" if row.get("problem") is None and row.get("question") else "problem"
        topic = row.get("type") or row.get("subject")
        level = level_of(row.get("level"))
        metadata = {"level": level, "type": topic}
        return Task(
            prompt=asked(question_in(row, field), BOXED_ANSWER, think=self.think),
            reference=reference,
            id=id_of(row, "unique_id", default=f"{self.split}-{number}"),
            metadata={key: value for key, value in metadata.items() if value is not None},
            solution=solution
            if _boxes(solution) and not self.think
            else solved(solution, gold, think=self.think),
        )


def level_of(value: Any) -> int | None:
    """Parse a level written as ``3``, ``"3"`` or ``"Level 3"``; ``None`` for ``"Level ?"``."""
    text = str(value).removeprefix("Level").strip()
    return int(text) if text.isdecimal() and len(text) < 4 else None


def _boxes(solution: str) -> bool:
    return bool(boxes(solution)[0])
