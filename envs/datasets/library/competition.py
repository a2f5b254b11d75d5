r"""MATH: competition mathematics whose answer is any expression, in five levels."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import Any

from ....verifiers import Math
from ....verifiers.text.boxes import boxes
from ...task import Task
from ..bad_rows import OnBadRows
from ..reading import Row
from .data_env import AnswerEnv, id_of, question_in
from .prompts import BOXED_ANSWER, asked, solved


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
    fields = {}  # the layouts share no field
    optional = {
        "answer": (str, int, float, list),
        "answers": list,
        "final_answer": (str, list),
        "is_multiple_answer": bool,
        "tolerance": (str, int, float),
        "relative_tolerance": (str, int, float),
        "error": (str, int, float),
        "problem": str,
        "question": str,
        "solution": (str, list),
        "level": (str, int),
        "type": str,
        "subject": str,
        "unique_id": (str, int),
    }
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
            if boxes(solution)[0] and not self.think
            else solved(solution, gold, think=self.think),
        )


def level_of(value: Any) -> int | None:
    """Parse a level written as ``3``, ``"3"`` or ``"Level 3"``; ``None`` for ``"Level ?"``."""
    text = str(value).removeprefix("Level").strip()
    return int(text) if text.isdecimal() and len(text) < 4 else None


_TOLERANCES = ("tolerance", "relative_tolerance")


def known_answer(row: Row, solution: str) -> Any:
    r"""Return a row's reference for :class:`~assay.verifiers.Math`.

    It is ``answer``, or the list ``answers`` any of which is correct, or ``final_answer``, whose
    ``error`` is a tolerance, as OlympiadBench has them (He et al. 2024, arXiv:2402.14008): with
    ``is_multiple_answer`` all of its members are asked for. A row without these has its answer in
    the last ``\boxed{}`` of the solution. ``tolerance`` is absolute, ``relative_tolerance`` a
    share of the reference.

    Raises:
        ValueError: there is no answer, or a tolerance is not a number of at least 0.
    """
    field = next((f for f in ("answer", "answers", "final_answer") if row.get(f) is not None), "")
    value = row[field] if field else _boxed_last(solution)
    several = isinstance(value, list)
    if several and not value:
        raise ValueError(f"{field!r} must hold at least one answer, got []")
    if several and field == "final_answer" and row.get("is_multiple_answer"):
        value, several = ", ".join(map(_bare, value)), False
    known = [_bare(one) for one in value] if several else _bare(value)
    if several and len(known) == 1:
        known = known[0]
    given = {name: _number(row, name) for name in _TOLERANCES}
    if field == "final_answer" and given["tolerance"] is None:
        given["tolerance"] = _number(row, "error")
    tolerances = {name: number for name, number in given.items() if number is not None}
    return {"answer": known, **tolerances} if tolerances else known


def first_answer(reference: Any) -> str:
    """Return one answer that a reference of :func:`known_answer` pays for."""
    answer = reference["answer"] if isinstance(reference, dict) else reference
    return str(answer[0] if isinstance(answer, list) else answer)


def _bare(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value != value:
        raise ValueError(f"an answer must be text or a number, got {value!r:.80}")
    return str(value).strip()


def _number(row: Row, field: str) -> float | None:
    value = row.get(field)
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{field!r} must be a number of at least 0, got {value!r:.80}")
    return number


def _boxed_last(solution: str) -> str:
    closed, unclosed = boxes(solution)
    bare = [] if closed else re.findall(r"\\boxed\s+([^${}][^$]*)\$", solution)
    if bare:  # $\boxed 2$, as some rows of MATH have it
        return str(bare[-1]).strip()
    if not closed or unclosed:
        raise ValueError(
            "the row must have an 'answer', or a 'solution' with the answer in \\boxed{}, "
            f"got the solution {solution[-80:]!r}"
        )
    return closed[-1][2]
