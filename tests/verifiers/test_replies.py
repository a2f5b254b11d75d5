"""Right replies and wrong ones to one reference, by verifier.

Each line of ``replies.jsonl`` has a verifier, a reference and what it ``says`` of the replies:
``right`` ones; for each ``wrong`` one the status and words of the reason; ``lost`` ones by status;
``paid`` ones with status and score. Other lines list references that cannot be used: ``bad`` ones,
or ``refused`` ones, each with words of the fault.
"""

import json
from pathlib import Path

import pytest

from assay.verifiers import Verifier

TEXT = Path(__file__).with_name("replies.jsonl").read_text(encoding="utf-8")
ROWS = [json.loads(line) for line in TEXT.splitlines()]


@pytest.mark.parametrize(
    "row", ROWS, ids=[row.get("says", row["verifier"]["name"]) for row in ROWS]
)
def test_replies_are_judged_as_a_line_says(row) -> None:
    verifier = Verifier.from_json(row["verifier"])
    expected = [(reply, "correct", 1.0, "") for reply in row.get("right", ())]
    expected += [(r, status, 0.0, words) for r, (status, words) in row.get("wrong", {}).items()]
    expected += [(r, status, 0.0, "") for status, lost in row.get("lost", {}).items() for r in lost]
    expected += [(*paid, "") for paid in row.get("paid", ())]
    for reply, status, score, words in expected:
        verdict = verifier.verify(reply, row["reference"])
        assert (verdict.status, verdict.score) == (status, pytest.approx(score)), (reply, verdict)
        assert words in verdict.reason, (reply, verdict)
    for reference, words in [*((r, "") for r in row.get("bad", ())), *row.get("refused", ())]:
        fault = verifier.check_reference(reference)
        assert fault, reference
        assert words in fault, fault
        assert verifier.verify("a", reference).status == "bad_gold", reference
