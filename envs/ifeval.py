"""IFEval: prompts whose instructions a rule can check."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..verifiers import Instructions, Rubric
from .data import DataError, Row, read_rows
from .source import Rows, Split
from .task import Task
from .text_env import TextEnv

_FIELDS = {"prompt": str, "instruction_id_list": list, "kwargs": list}


class IFEval(TextEnv):
    """Do what a prompt asks for, and follow its instructions (Zhou et al. 2023, arXiv:2311.07911).

    Rows of IFBench and of its training set (Pyatkin et al. 2025, arXiv:2507.02833) have the same
    layout and are read too.

    Observation: the prompt. Action: the reply.
    Reward: 1.0 where every instruction is followed; with ``partial``, the share that is. Whether
    the reply is any good besides is not judged.
    End: after one step.

    Args:
        data: a JSONL file in the public layout (``key``, ``prompt``, ``instruction_id_list``,
            ``kwargs``), a folder saved by ``datasets``, or a hub name. A ``solution``, where a
            row has one, is a reply that follows all.
        split: which split, where the data has several.
        mode: ``"strict"``, or ``"loose"``: also without first and last line, and asterisks.
        partial: pay the share of instructions that are followed.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read, or an instruction is not known or its arguments do not
            fit.
    """

    def __init__(
        self,
        data: str | Path = "google/IFEval",
        split: Split = "train",
        *,
        mode: Literal["strict", "loose"] = "strict",
        partial: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.data = data
        verifier = Instructions(mode=mode, partial=partial)
        rows = read_rows(data, fields=_FIELDS, split=split)
        tasks = [_task(row, verifier, f"{data}, row {i}", i) for i, row in enumerate(rows)]
        super().__init__(Rows(tasks), Rubric({"instructions": verifier}), render_mode=render_mode)


def _task(row: Row, verifier: Instructions, place: str, number: int) -> Task:
    reference = {
        "prompt": row["prompt"],
        "instruction_id_list": list(row["instruction_id_list"]),
        "kwargs": [
            {name: value for name, value in (arguments or {}).items() if value is not None}
            for arguments in row["kwargs"]
        ],
    }
    fault = verifier.check_reference(reference)
    if fault is not None:
        raise DataError(f"{place}: {fault}. Correct or remove this row")
    return Task(
        prompt=row["prompt"],
        reference=reference,
        id=f"IFEval/{row.get('key', number)}",
        metadata={"instructions": len(reference["kwargs"])},
        solution=row.get("solution"),
    )
