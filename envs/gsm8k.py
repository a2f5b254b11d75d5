"""GSM8K: grade-school word problems with one number as the answer."""

from __future__ import annotations

from pathlib import Path

from ..verifiers import Math, read_number
from .accuracy import THINK, accuracy_rubric
from .data import Row, read_rows
from .source import Rows, Split
from .task import Task
from .text_env import TextEnv

BOXED = "Solve the problem step by step, then put the final number in \\boxed{}."


class GSM8K(TextEnv):
    r"""Solve a word problem (Cobbe et al. 2021, arXiv:2110.14168).

    Observation: the question and how to answer it. Action: the reply.
    Reward: 1.0 where the final number equals the gold one: the last ``\boxed{}``, or what
    follows ``####``, or the last number. With ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        data: a JSONL file in the public layout (``question``, ``answer`` with the gold number
            after ``####``), a folder saved by ``datasets``, or a hub name.
        split: which split, where the data has several.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read.
        ValueError: an answer does not end in ``####`` and a number.
    """

    def __init__(
        self,
        data: str | Path = "openai/gsm8k",
        split: Split = "test",
        *,
        think: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.data = data
        rows = read_rows(data, fields={"question": str, "answer": str}, split=split, config="main")
        tasks = [
            _task(row, f"{split}-{i}", think, f"{data}, row {i}") for i, row in enumerate(rows)
        ]
        super().__init__(Rows(tasks), accuracy_rubric(Math(), think=think), render_mode=render_mode)


def _task(row: Row, name: str, think: bool, place: str) -> Task:
    steps, marker, gold = (part.strip() for part in row["answer"].rpartition("####"))
    if not marker or read_number(gold) is None:
        raise ValueError(
            f"{place}: the answer must end in '####' and the gold number, "
            f"got {row['answer'][-80:]!r}. Correct or remove this row"
        )
    return Task(
        prompt=f"{row['question']}\n\n{THINK if think else BOXED}",
        reference=gold,
        id=name,
        metadata={"steps": steps.count("<<")},
        solution=f"<think>{steps}</think><answer>{gold}</answer>" if think else row["answer"],
    )
