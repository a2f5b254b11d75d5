import time

import pytest

from assay.verifiers import Format, Status

GOOD = "<think>6 by 7</think><answer>42</answer>"


@pytest.mark.parametrize(
    "reply", [GOOD, f"\n {GOOD}\n\n", "<think>\na < b\n</think>\n\n<answer>\n4 > 2\n</answer>"]
)
def test_the_form_is_paid(reply: str) -> None:
    assert Format().verify(reply, None).score == 1.0


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "<think> is missing"),
        ("42", "<think> is missing"),
        ("<think>a</think>", "<answer> is missing"),
        ("<think>a</think><answer>42", "</answer> is missing"),
        ("<answer>42</answer>", "<answer> comes before <think>"),
        ("<answer>42</answer><think>a</think>", "<answer> comes before <think>"),
        ("<think></think><answer>42</answer>", "the thought is empty"),
        ("<think> . </think><answer>42</answer>", "the thought is empty"),
        ("<think>a</think><answer> \n</answer>", "the answer is empty"),
        (f"hi {GOOD}", "text before"),
        (f"{GOOD} bye", "text after"),
        ("<think>a</think> so <answer>42</answer>", "text between"),
        (GOOD + GOOD, "<think> stands twice"),
        ("<think><think>a</think><answer>42</answer>", "<think> stands twice"),
        ("<think>a<answer>1</answer></think><answer>42</answer>", "<answer> comes before </think>"),
        ("<think>a</think><answer>1</answer><answer>2</answer>", "<answer> stands twice"),
        ("<think>a</think><answer>4<think>2</answer>", "<think> stands twice"),
        ("<think>_</think><answer>__</answer>", "the thought is empty"),
        ("<THINK>a</THINK><ANSWER>42</ANSWER>", "'<THINK>' is written unlike <think>"),
    ],
)
def test_any_other_form_is_not(reply: str, reason: str) -> None:
    verdict = Format().verify(reply, None)
    assert (verdict.status, verdict.score) == (Status.UNPARSEABLE, 0.0)
    assert reason in verdict.reason


def test_a_prompt_may_have_opened_the_thought() -> None:
    prefilled = Format(prefilled_think=True)
    assert prefilled.verify("6 by 7</think><answer>42</answer>", None).score == 1.0
    assert prefilled.verify(GOOD, None).reason == "<think> is in the prompt already"
    assert Format().verify("6 by 7</think><answer>42</answer>", None).score == 0.0


def test_many_tags_are_read_in_a_moment() -> None:
    started = time.process_time()
    for piece in ("<think></think>", "<think>", "</answer>", "<"):
        assert Format().verify(piece * 100_000, None).score == 0.0
    assert time.process_time() - started < 10
