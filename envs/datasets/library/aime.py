"""AIME: problems whose answer is an integer from 0 to 999."""

from __future__ import annotations

from functools import partial

from ....verifiers import Math
from ...task import Task
from ..reading import Row
from .data_env import AnswerEnv, id_of, question_in
from .prompts import asked, solved, whole_number

_HOW = (
    "The answer is a whole number of at most three digits. Solve the problem step by step, then "
    "put the final number in \\boxed{}."
)


class AIME(AnswerEnv):
    r"""Solve a problem in the manner of the American Invitational Mathematics Examination.

    Observation: the problem and how to answer it. Action: the reply.
    Reward: 1.0 if the final number equals the gold one: the last ``\boxed{}``, or the last
    number. With ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        data: rows with ``problem`` and ``answer``, an integer from 0 to 999 or a text that
            is one, such as ``"025"``; perhaps ``steps`` to the answer, ``year``, ``id``: a
            file, a folder or a hub name; by default, the sample.

    Raises:
        DataError: the data cannot be read, or an answer is no integer from 0 to 999.
    """

    fields = {"problem": str, "answer": (str, int, float)}
    optional = {"id": (str, int), "steps": str}
    verifier = partial(Math, worked_out=True)
    hub = "AI-MO/aimo-validation-aime"
    benchmark = True

    def task_of(self, row: Row, number: int) -> Task:
        """Read an integer of the range, with or without leading zeros."""
        gold = whole_number(row["answer"])
        if gold is None or not 0 <= gold <= 999:
            raise ValueError(
                f"'answer' must be a whole number from 0 to 999, got {row['answer']!r:.80}"
            )
        year = whole_number(row.get("year"))
        return Task(
            prompt=asked(question_in(row, "problem"), _HOW, think=self.think),
            reference=str(gold),
            id=f"AIME/{id_of(row, 'id', default=number)}",
            metadata={} if year is None else {"year": year},
            solution=solved(row.get("steps") or "", str(gold), think=self.think),
        )
