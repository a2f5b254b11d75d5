"""GSM8K: grade-school word problems with one number as the answer."""

from __future__ import annotations

from functools import partial

from ....verifiers import Math, read_number
from ...accuracy import thought
from ...task import Task
from ..reading import Row
from .data_env import AnswerEnv, question_in
from .prompts import BOXED, asked


class GSM8K(AnswerEnv):
    r"""Solve a word problem (Cobbe et al. 2021, arXiv:2110.14168).

    Observation: the question and how to answer it. Action: the reply.
    Reward: 1.0 if the final number equals the gold one: the last ``\boxed{}``, or what
    follows ``####``, or the last number. With ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        data: rows in the public layout (``question``, ``answer`` with the gold number after
            ``####``): a file, a folder or a hub name; by default, the sample.

    Raises:
        DataError: the data cannot be read, or an answer does not end in ``####`` and a number.
    """

    fields = {"question": str, "answer": str}
    verifier = partial(Math, worked_out=True)
    hub = "openai/gsm8k:main"

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row; the reference follows the last ``####``."""
        steps, marker, gold = (part.strip() for part in row["answer"].rpartition("####"))
        if not marker or read_number(gold) is None:
            raise ValueError(
                f"'answer' must end in '####' and the gold number, got {row['answer'][-80:]!r}"
            )
        return Task(
            prompt=asked(question_in(row, "question"), BOXED, think=self.think),
            reference=gold,
            id=f"{self.split}-{number}",
            metadata={"steps": steps.count("<<")},
            solution=thought(steps, gold) if self.think else row["answer"],
        )
