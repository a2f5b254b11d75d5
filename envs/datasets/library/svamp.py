"""SVAMP: word problems of one step, some with a number too many."""

from __future__ import annotations

from functools import partial

from ....verifiers import Math, read_number
from ...task import Task
from ..reading import Row
from .data_env import AnswerEnv, id_of, question_in
from .prompts import BOXED, asked, solved


class SVAMP(AnswerEnv):
    r"""Solve a short word problem (Patel et al. 2021, arXiv:2103.07191).

    Observation: the story, the question and how to answer it. Action: the reply.
    Reward: 1.0 if the final number equals the gold one: the last ``\boxed{}``, or the last
    number. With ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        data: rows in the public layout (``Body``, ``Question``, ``Answer``, a number or a text
            that is one): a file, a folder or a hub name; by default, the sample.

    Raises:
        DataError: the data cannot be read, or an answer is no number.
    """

    fields = {"Body": str, "Question": str, "Answer": (str, int, float)}
    optional = {"ID": (str, int), "Equation": str, "Type": str}
    verifier = partial(Math, worked_out=True)
    hub = "ChilleD/SVAMP"

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row; its body may lack the final full stop."""
        gold = read_number(str(row["Answer"]))
        if gold is None or isinstance(row["Answer"], bool):
            raise ValueError(f"'Answer' must be a number, got {row['Answer']!r:.80}")
        body, question = row["Body"].strip(), question_in(row, "Question")
        story = f"{body}{'' if body.endswith(('.', '?', '!', ',')) else '.'} {question}"
        answer = str(row["Answer"]).removesuffix(".0")
        return Task(
            prompt=asked(story, BOXED, think=self.think),
            reference=answer,
            id=id_of(row, "ID", default=f"{self.split}-{number}"),
            metadata={"type": row["Type"]} if row.get("Type") else {},
            solution=solved(str(row.get("Equation") or ""), answer, think=self.think),
        )
