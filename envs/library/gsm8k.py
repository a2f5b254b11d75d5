"""GSM8K: grade-school word problems with one number as the answer."""

from __future__ import annotations

from pathlib import Path

from ...verifiers import Math, read_number
from ..accuracy import accuracy_rubric
from ..bad_rows import OnBadRows
from ..data import Row
from ..task import Task
from .data_env import DataEnv, question_in
from .final_number import BOXED, asked

_FIELDS = {"question": str, "answer": str}


class GSM8K(DataEnv):
    r"""Solve a word problem (Cobbe et al. 2021, arXiv:2110.14168).

    Observation: the question and how to answer it. Action: the reply.
    Reward: 1.0 if the final number equals the gold one: the last ``\boxed{}``, or what
    follows ``####``, or the last number. With ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        data: rows in the public layout (``question``, ``answer`` with the gold number after
            ``####``): a file, a folder or a hub name; by default, the sample.
        split: the split to read; ``None`` for the only one that the data has.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
        on_bad_rows: ``"skip"`` to leave out rows that cannot be used, and list them.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read, or an answer does not end in ``####`` and a number.
    """

    fields = _FIELDS
    hub = "openai/gsm8k:main"

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        think: bool = False,
        on_bad_rows: OnBadRows = "raise",
        render_mode: str | None = None,
    ) -> None:
        self.think = think
        rubric = accuracy_rubric(Math(worked_out=True), think=think)
        super().__init__(data, split, rubric, on_bad_rows=on_bad_rows, render_mode=render_mode)

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row; the reference follows the last ``####``."""
        steps, marker, gold = (part.strip() for part in row["answer"].rpartition("####"))
        if not marker or read_number(gold) is None:
            raise ValueError(
                f"'answer' must end in '####' and the gold number, got {row['answer'][-80:]!r}"
            )
        thought = f"<think>{steps}</think><answer>{gold}</answer>"
        return Task(
            prompt=asked(question_in(row, "question"), BOXED, think=self.think),
            reference=gold,
            id=f"{self.split}-{number}",
            metadata={"steps": steps.count("<<")},
            solution=thought if self.think else row["answer"],
        )
