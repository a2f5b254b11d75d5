r"""The one answer of a reply: which text each rule finds, and what it refuses.

Each line of ``extract.jsonl`` says what its replies have in common: the rules (by default all),
``found`` with the answer by reply, ``refused`` with words of the reason by reply.
"""

import json
import time
from pathlib import Path

import pytest

from assay.verifiers.text.answer import Answer
from assay.verifiers.text.boxes import boxed_or_bare
from assay.verifiers.text.extract import DEFAULT_RULES, final_answer
from assay.verifiers.text.thought import without_end_tokens

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("extract.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("row", ROWS, ids=[row["says"] for row in ROWS])
def test_an_answer_is_found_or_refused(row) -> None:
    rules = row.get("rules", DEFAULT_RULES)
    found = {reply: final_answer(reply, rules).text for reply in row.get("found", {})}
    assert found == row.get("found", {})
    for reply, words in row.get("refused", {}).items():
        answer = final_answer(reply, rules)
        assert answer.text is None, reply
        assert words in answer.reason, reply


KEPT = [
    ("42<|im_end|>\n<|endoftext|>", "42"), ("42" + "<|endoftext|>" * 1000, "42"),
    ("42<|eot_id|>" + "\n" * 1000, "42"), ("42\n<|END_OF_TURN_TOKEN|>", "42"),
    ("42 <EOT>", "42 <EOT>"), ("2 > 1 and 1 <2>", "2 > 1 and 1 <2>"), ("42 \n", "42 \n"),
    ("</s>", ""), ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "left"), KEPT, ids=[reply[:20] for reply, _ in KEPT])
def test_end_tokens_go_however_many_there_are(reply, left) -> None:
    assert without_end_tokens(reply) == left


def test_the_first_rule_that_applies_decides() -> None:
    reply = r"\boxed{1} #### 2"
    assert final_answer(reply).text == "1"
    assert final_answer(reply, ("hash", "boxed")).text == "2"
    assert final_answer("about 3", ("boxed",)) == Answer(None, "", "no answer found by boxed")
    assert final_answer("so $x^2$ it is", ("last_math",)).text == "x^2"
    assert final_answer("\\boxed{3}\n#### 8", ("boxed",)).text == "3"
    assert final_answer("A wrong answer is 6.", ("phrase", "last_number")).rule == "phrase"
    assert "longer than 2000" in final_answer(r"\boxed{" + "1" * 2001 + "}").reason


@pytest.mark.parametrize("rules", [(), ("box",), "boxed"])
def test_unknown_rules_are_refused(rules: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="extract must be a sequence of rules from boxed"):
        final_answer("1", rules)


def test_nested_boxes_are_read_once() -> None:
    reply = r"\boxed{" * 70_000 + "7" + "}" * 70_000
    started = time.process_time()
    assert final_answer(reply).text is None
    assert time.process_time() - started < 10


def test_a_reference_may_come_in_a_box() -> None:
    assert boxed_or_bare(r"$\frac{1}{2}$") == r"\frac{1}{2}"
    assert boxed_or_bare(r"Adding up, $x = \boxed{5}$.") == "5"
    assert boxed_or_bare(" 18 ") == "18"
