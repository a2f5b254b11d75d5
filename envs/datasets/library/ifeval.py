"""IFEval: prompts whose instructions a rule can check."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ....verifiers import Instructions, Rubric
from ...task import Task
from ..bad_rows import OnBadRows
from ..reading import Row
from .data_env import DataEnv, id_of, question_in


class IFEval(DataEnv):
    """Do what a prompt asks for, and follow its instructions (Zhou et al. 2023, arXiv:2311.07911).

    Rows of IFBench and of its training set (Pyatkin et al. 2025, arXiv:2507.02833) have the same
    layout and are read too.

    Observation: the prompt. Action: the reply.
    Reward: 1.0 if every instruction is followed; with ``partial``, the share that is. Whether
    the reply is otherwise good is not judged.
    End: after one step.

    Args:
        data: rows in the public layout (``key``, ``prompt``, ``instruction_id_list``,
            ``kwargs``): a file, a folder or a hub name; by default, the sample. A ``solution``,
            if a row has one, is a reply that follows all.
        mode: ``"strict"``, or ``"loose"``: also without first and last line, and asterisks.
        partial: pay the share of instructions that are followed.

    Raises:
        DataError: the data cannot be read, or an instruction is not known or its arguments do not
            fit.
    """

    fields = {"prompt": str, "instruction_id_list": list, "kwargs": list}
    optional = {"key": (str, int), "solution": str}
    hub = "google/IFEval"
    benchmark = True

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        mode: Literal["strict", "loose"] = "strict",
        partial: bool = False,
        on_bad_rows: OnBadRows = "raise",
        render_mode: str | None = None,
    ) -> None:
        self._verifier = Instructions(mode=mode, partial=partial)
        rubric = Rubric({"instructions": self._verifier})
        super().__init__(data, split, rubric, on_bad_rows=on_bad_rows, render_mode=render_mode)

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row, ignoring null arguments: a table has a column for each."""
        question_in(row, "prompt")
        for arguments in row["kwargs"]:
            if not isinstance(arguments, Mapping | None):
                raise ValueError(f"'kwargs' must be a list of objects, got {arguments!r:.80} in it")
        reference = {
            "prompt": row["prompt"],
            "instruction_id_list": list(row["instruction_id_list"]),
            "kwargs": [
                {name: value for name, value in (arguments or {}).items() if value is not None}
                for arguments in row["kwargs"]
            ],
        }
        fault = self._verifier.check_reference(reference)
        if fault is not None:
            raise ValueError(f"'instruction_id_list' and 'kwargs' cannot be used: {fault}")
        return Task(
            prompt=row["prompt"],
            reference=reference,
            id=f"IFEval/{id_of(row, 'key', default=number)}",
            metadata={"instructions": len(reference["kwargs"])},
            solution=row.get("solution"),
        )
