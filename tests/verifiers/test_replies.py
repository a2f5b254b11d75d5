"""Right replies and wrong ones to one reference, by verifier.

Each line of ``replies.jsonl`` has a verifier, a reference, ``right`` replies, and for each
``wrong`` one the status and words of the reason.
"""

import json
from pathlib import Path

import pytest

from assay.verifiers import Verifier

TEXT = Path(__file__).with_name("replies.jsonl").read_text(encoding="utf-8")
ROWS = [json.loads(line) for line in TEXT.splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row["verifier"]["name"] for row in ROWS])
def test_right_replies_win_and_wrong_ones_do_not(row) -> None:
    verifier = Verifier.from_json(row["verifier"])
    for reply in row["right"]:
        verdict = verifier.verify(reply, row["reference"])
        assert (verdict.status, verdict.score) == ("correct", 1.0), (reply, verdict)
    for reply, (status, words) in row["wrong"].items():
        verdict = verifier.verify(reply, row["reference"])
        assert (verdict.status, verdict.score) == (status, 0.0), (reply, verdict)
        assert words in verdict.reason, (reply, verdict)
