"""IFEval's 25 constraints and IFBench's: replies that follow each, and near misses.

Each line of ``instructions.jsonl`` has an instruction's id and arguments, with replies that
``follow`` it and replies that ``do_not``.
"""

import json
from pathlib import Path

import pytest

from assay.verifiers.instructions import CONSTRAINTS, LEFT_OUT, read_instructions

TEXT = Path(__file__).with_name("instructions.jsonl").read_text(encoding="utf-8")
ROWS = [json.loads(line) for line in TEXT.splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_it_is_told_who_follows(row) -> None:
    (instruction,) = read_instructions([{"id": row["id"], **row["arguments"]}])
    for reply in row["follow"]:
        assert instruction.followed_by(reply), f"should be followed: {reply[:200]!r}"
    for reply in row["do_not"]:
        assert not instruction.followed_by(reply), f"should not be followed: {reply[:200]!r}"


def test_all_are_here_but_two() -> None:
    told = {row["id"] for row in ROWS}
    assert told == set(CONSTRAINTS)
    assert len(told) == 25 + 58 + 29 - len(LEFT_OUT)
