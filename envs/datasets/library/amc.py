"""AMC: problems with five options, or with a number as the answer."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from ....verifiers import Math, MultipleChoice, Rubric, read_number
from ...accuracy import accuracy_rubric
from ...task import Task
from ..reading import Row
from .choices import options_of, right_letter, shown
from .data_env import AnswerEnv, id_of, question_in
from .prompts import BOXED, asked, solved, whole_number

_HOW = "Solve the problem step by step, then put the letter of the right option in \\boxed{}."


class AMC(AnswerEnv):
    r"""Solve a problem in the manner of the American Mathematics Competitions.

    Observation: the problem, its options if it has any, and how to answer it. Action: the
    reply.
    Reward: 1.0 if the final answer is right: the letter of the option or its text, or, in
    data without options, a number that equals the gold one. With ``think``, a sixth of it is
    paid for the format.
    End: after one step.

    Args:
        data: rows with ``problem`` and ``answer``: a number, or, if all rows have
            ``choices``, a letter, an index from 0, or the text of an option; perhaps ``year``,
            ``id``: a file, a folder or a hub name; by default, the sample.

    Raises:
        DataError: the data cannot be read, or an answer is no number, or none of the choices.
    """

    fields = {"problem": str, "answer": (str, int, float)}
    optional = {"id": (str, int), "steps": str, "choices": (list, dict)}
    hub = "AI-MO/aimo-validation-amc"
    benchmark = True

    def rubric_of(self, rows: Sequence[Row]) -> Rubric:
        """Return a rubric for options or for numbers, as the first row has them."""
        self.has_choices = rows[0].get("choices") is not None
        verifier = MultipleChoice() if self.has_choices else Math(worked_out=True)
        return accuracy_rubric(verifier, think=self.think)

    def task_of(self, row: Row, number: int) -> Task:
        """Read one of the options, or a number."""
        if (row.get("choices") is not None) != self.has_choices:
            has = "'choices'" if self.has_choices else "no 'choices'"
            raise ValueError(f"the first row has {has}, so every row must have the same")
        problem, reference = question_in(row, "problem"), row["answer"]
        if self.has_choices:
            options, labels = options_of(row["choices"], "choices")
            answer = right_letter(row["answer"], options, labels, "answer")
            problem = f"{problem}\n\n{shown(options)}"
            reference = {"answer": answer, "options": options}
            answer = f"{answer}) {options[ascii_uppercase.index(answer)]}"
        else:
            answer = reference = str(row["answer"]).removesuffix(".0")
            if read_number(answer) is None:
                raise ValueError(f"'answer' must be a number, got {row['answer']!r:.80}")
        year = whole_number(row.get("year"))
        return Task(
            prompt=asked(problem, _HOW if self.has_choices else BOXED, think=self.think),
            reference=reference,
            id=f"AMC/{id_of(row, 'id', default=number)}",
            metadata={} if year is None else {"year": year},
            solution=solved(row.get("steps") or "", answer, think=self.think),
        )
