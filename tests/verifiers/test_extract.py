import time

import pytest

from assay.verifiers.extract import Answer, boxed_or_bare, final_answer

CASES = [
    (r"so $\boxed{7}$.", "7"),
    (r"first \boxed{1}, no: \boxed{2} it is", "2"),
    (r"\boxed{1}, \boxed{2}", "1 , 2"),
    (r"\boxed{1} and $\boxed{2}$", "1 , 2"),
    (r"$\boxed{1}$ \quad \text{or} \quad $\boxed{2}$", "1 , 2"),
    (r"\boxed{7} \boxed{7}", "7"),
    (r"\fbox{3}", "3"),
    (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
    (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
    (r"\boxed{\left\{ 1 \right.}", r"\left\{ 1 \right."),
    (r"\boxed{\boxed{5}}", "5"),
    (r"\boxed {5}", "5"),
    (r"} stray { \boxed{5}", "5"),
    (r"<think>\boxed{7}</think> it is \boxed{8}", "8"),
    ("<think>a</think><answer> 42 </answer>", "42"),
    ("<answer>1</answer> no <answer>2</answer>", "2"),
    ("16 - 3 = 13\n#### 13", "13"),
    ("#### $1,024.\nThat is all.", "$1,024."),
    ("#### Step 3\nWe get 12", "12"),
    ("The final answer is $(0, 1)$. I hope it is correct.", "(0, 1)"),
    ("I think 7 is not the answer; the answer is 9.", "9"),
    ("Answer: 3.5\nDone 4", "3.5"),
    ("**Answer:** 12", "12"),
    ("He pays 3 dollars and then $1,250.50 more.", "1,250.50"),
    ("it is -5", "-5"),
    ("it is 8-5", "5"),
    ("a loss of -$5", "-5"),
    ("3/4 of it", "3/4"),
    ("it rose by 12%", "12%"),
]


@pytest.mark.parametrize(("reply", "expected"), CASES)
def test_the_answer_is_found(reply: str, expected: str) -> None:
    assert final_answer(reply).text == expected


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no answer found"),
        ("I don't know", "no answer found"),
        (r"<think>\boxed{7}", "never closed"),
        (r"<think>a</think><think>\boxed{7}", "never closed"),
        (r"<think>\boxed{7}</think>", "no answer found"),
        (r"\boxed{7", "never closed"),
        (r"\boxed{7} so \boxed{\frac{1}{2}", "never closed"),
        (r"\boxed{}", "empty"),
        ("<answer>7", "never closed"),
        (r"\boxed{" + "1" * 2001 + "}", "longer than 2000"),
    ],
)
def test_a_reply_without_an_answer_says_why(reply: str, reason: str) -> None:
    found = final_answer(reply)
    assert found.text is None
    assert reason in found.reason


def test_the_first_rule_that_applies_decides() -> None:
    reply = r"\boxed{1} #### 2"
    assert final_answer(reply).text == "1"
    assert final_answer(reply, ("hash", "boxed")).text == "2"
    assert final_answer("about 3", ("boxed",)) == Answer(None, "", "no answer found by boxed")
    assert final_answer("so $x^2$ it is", ("last_math",)).text == "x^2"


@pytest.mark.parametrize("rules", [(), ("box",), "boxed"])
def test_unknown_rules_are_refused(rules: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="extract must be a sequence of rules from boxed"):
        final_answer("1", rules)


@pytest.mark.parametrize(
    "piece",
    ["\\boxed{", "{", "}", "\\", "$", "\\[", "<think>", "</think>", "<answer>", "#### a\n",
     "answer is ", "1", "1,", "-", " ", "a", "\\boxed{1}, ", "\\boxed{\\boxed{1}}", "\n", "\\\\{"],
)  # fmt: skip
def test_a_megabyte_of_anything_is_read_in_a_moment(piece: str) -> None:
    """The bound is a guard against quadratic scanning, which would take hours here."""
    reply = piece * (1_000_000 // len(piece))
    started = time.process_time()
    for rules in (("boxed",), ("answer",), ("hash",), ("phrase",), ("last_math", "last_number")):
        final_answer(reply, rules)
    assert time.process_time() - started < 20


def test_a_reference_may_come_in_a_box() -> None:
    assert boxed_or_bare(r"$\frac{1}{2}$") == r"\frac{1}{2}"
    assert boxed_or_bare(r"Adding up, $x = \boxed{5}$.") == "5"
    assert boxed_or_bare(" 18 ") == "18"


@pytest.mark.parametrize(
    "reply",
    ["5 or 6", "either 5, or 6", "between 5 and 6", "not 6", "It isn't 6.", "It is not equal to 6",
     "6 is wrong", "6 is not right", "5? 6?", "It cannot be $6$", "x \\neq 6", "6 or more"],
)  # fmt: skip
def test_a_last_number_that_is_hedged_or_taken_back_is_no_answer(reply) -> None:
    found = final_answer(reply, ("last_number",))
    assert (found.text, found.reason) == (None, "the last number is hedged or taken back")


@pytest.mark.parametrize(
    "reply",
    ["It is not 5 but 6", "Not 5, so 6.", "6", "3 + 3 = 6", "It is wrong to say 5; it is 6.",
     "For 5 days, or a week, she pays. In all: 6", "Between them and us: 6", "nor ever: 6"],
)  # fmt: skip
def test_a_last_number_that_is_stood_by_is_the_answer(reply) -> None:
    assert final_answer(reply, ("last_number",)).text == "6"
