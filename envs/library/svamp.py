"""SVAMP: word problems of one step, some with a number too many."""

from __future__ import annotations

from pathlib import Path

from ...verifiers import Math, read_number
from ..accuracy import accuracy_rubric
from ..bad_rows import OnBadRows
from ..data import Row, Types
from ..task import Task
from .data_env import DataEnv, id_of, question_in
from .final_number import BOXED, asked, solved

_FIELDS: dict[str, Types] = {
    "Body": str,
    "Question": str,
    "Answer": (str, int, float),
}
_OPTIONAL: dict[str, Types] = {"ID": (str, int), "Equation": str, "Type": str}


class SVAMP(DataEnv):
    r"""Solve a short word problem (Patel et al. 2021, arXiv:2103.07191).

    Observation: the story, the question and how to answer it. Action: the reply.
    Reward: 1.0 if the final number equals the gold one: the last ``\boxed{}``, or the last
    number. With ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        data: rows in the public layout (``Body``, ``Question``, ``Answer``, a number or a text
            that is one): a file, a folder or a hub name; by default, the sample.
        split: the split to read; ``None`` for the only one that the data has.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
        on_bad_rows: ``"skip"`` to leave out rows that cannot be used, and list them.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read, or an answer is no number.
    """

    fields = _FIELDS
    optional = _OPTIONAL
    hub = "ChilleD/SVAMP"

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
