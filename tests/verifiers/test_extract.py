import time

import pytest

from assay.verifiers.text.answer import Answer
from assay.verifiers.text.boxes import boxed_or_bare
from assay.verifiers.text.extract import final_answer
from assay.verifiers.text.thought import without_end_tokens

KEPT = [
    ("42<|im_end|>\n<|endoftext|>", "42"),
    ("42" + "<|endoftext|>" * 1000, "42"),
    ("42<|eot_id|>" + "\n" * 1000, "42"),
    ("42\n<|END_OF_TURN_TOKEN|>", "42"),
    ("42 <EOT>", "42 <EOT>"),
    ("2 > 1 and 1 <2>", "2 > 1 and 1 <2>"),
    ("42 \n", "42 \n"),
    ("</s>", ""),
    ("", ""),
]


@pytest.mark.parametrize(("reply", "left"), KEPT, ids=[reply[:20] for reply, _ in KEPT])
def test_end_tokens_go_however_many_there_are(reply, left) -> None:
    assert without_end_tokens(reply) == left


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
    ("it is 8 - 5 = 3", "3"),
    (r"So the chance is $\frac{3}{4}$.", r"\frac{3}{4}"),
    (r"It is $-\dfrac{3}{4}$.", r"-\dfrac{3}{4}"),
    ("It is 42 million.", "42 million"),
    ("Answer\n42", "42"),
    ("$$\n42\n$$", "42"),
    ("\\[\n42\n\\]", "42"),
    ("so **42** it is", "42"),
    ("It makes $1,000/month.", "1,000"),
    ("an angle of $30^\\circ$", "30"),
    ("#### **42**", "42"),
    ("#### 42</s>", "42"),
    ("The answer is 42.<|im_end|>\n", "42"),
    ("The answer is therefore $42$.", "42"),
    ("The answer is `42`.", "42"),
    ("Answer = 42", "42"),
    ("The answer is option B.", "B"),
    ("The answer is $x=2$ or $x=3$.", "x=2 or x=3"),
    ("The answer is $5 or $6.", "5 or 6"),
    (r"$x = \boxed{2}$ or $x = \boxed{3}$", "2 , 3"),
    ("The answer is 42. A common wrong answer is 41.", "42"),
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


def test_nested_boxes_are_read_once() -> None:
    reply = r"\boxed{" * 70_000 + "7" + "}" * 70_000
    started = time.process_time()
    assert final_answer(reply).text is None
    assert time.process_time() - started < 10


def test_a_reference_may_come_in_a_box() -> None:
    assert boxed_or_bare(r"$\frac{1}{2}$") == r"\frac{1}{2}"
    assert boxed_or_bare(r"Adding up, $x = \boxed{5}$.") == "5"
    assert boxed_or_bare(" 18 ") == "18"


@pytest.mark.parametrize(
    "reply",
    ["5 or 6", "either 5, or 6", "between 5 and 6", "not 6", "It isn't 6.", "It is not equal to 6",
     "6 is wrong", "6 is not right", "5? 6?", "It cannot be $6$", "x \\neq 6", "6 or more",
     "5, 6", "(5, 6)", "5; 6", "5 | 6", "5:6", "5 to 6", "5–6", "4 5 6", "5 and 6", "at least 6",
     "x > 6", r"x \ge 6", "more than 6", "up to 6", "other than 6", "anything but 6", "no longer 6",
     "wrong: 6", "minus 6", "5, alternatively 6", "6 (or 7)", r"\text{not } 6",
     "not x = 6", r"\neq x = 6", "anything but $x_1$ = 6", "perhaps n = 6", "42 x = 6"],
)  # fmt: skip
def test_a_last_number_that_is_hedged_or_taken_back_is_no_answer(reply: str) -> None:
    found = final_answer(reply, ("last_number",))
    assert found.text is None
    assert "hedged, taken back or part of" in found.reason


@pytest.mark.parametrize(
    "reply",
    ["8-5", "3 + 5", "x + 5", "$3x+5$", "3 * 5", "2**5", r"3 \times 5", "3±5", "x^5", "x^{5}",
     "2^5",
     r"\sqrt{5}", "√5", r"$\frac{x}{5}$", "a_5", "f(5)", "5x", "5 x", "5i", "5²", r"5\pi", "log 5",
     "Step 5", "Equation (5)", r"\binom{7}{5}", "[5]", "A5"],
)  # fmt: skip
def test_a_last_number_that_is_part_of_something_else_is_no_answer(reply: str) -> None:
    found = final_answer("So it is " + reply, ("last_number",))
    assert found.text is None or "frac" in found.text


@pytest.mark.parametrize(
    "reply",
    ["A wrong answer is 6.", "Incorrect answer: 6", "Not the answer: 6", "Suppose the answer is 6.",
     "One might think the answer is 6. But it is 7.", "The answer is 6. That is wrong.",
     "The answer is 6? No.", "Is the answer: 6?", "The answer is 6. Actually, the rest is 7."],
)  # fmt: skip
def test_an_answer_that_is_supposed_or_taken_back_is_none(reply: str) -> None:
    found = final_answer(reply, ("phrase", "last_number"))
    assert (found.text, found.rule) == (None, "phrase")


@pytest.mark.parametrize(
    "reply",
    ["It is not 5 but 6", "Not 5, so 6.", "6", "3 + 3 = 6", "It is wrong to say 5; it is 6.",
     "For 5 days, or a week, she pays. In all: 6", "Between them and us: 6", "nor ever: 6"],
)  # fmt: skip
def test_a_last_number_that_is_stood_by_is_the_answer(reply) -> None:
    assert final_answer(reply, ("last_number",)).text == "6"


@pytest.mark.parametrize(
    "reply",
    [r"\boxed{7} is wrong.", r"$\boxed{7}$. Wait, that is wrong.", r"$\boxed{7}$? No.",
     r"It is not $\boxed{7}$.", r"A wrong answer is $\boxed{7}$."],
)  # fmt: skip
def test_a_box_that_is_denied_is_no_answer(reply: str) -> None:
    assert final_answer(reply).text is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [(r"either $\boxed{7}$ or 5", "7 , 5"), (r"$\boxed{7}$, or seven", "7"),
     (r"\boxed{7}. It is not 5.", "7"),
     (r"It is not 5 but \boxed{7}", "7"), (r"$\boxed{7}$. But that is another story.", "7")],
)  # fmt: skip
def test_the_words_beside_a_box_are_read(reply: str, expected: str) -> None:
    assert final_answer(reply).text == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (r"So the final answer is $\$15$.", r"\$15"),
        ("The answer is $15, since she had $20 and spent $5.", "$15"),
        ("Therefore, the answer is 3, as required.", "3"),
        ("The answer is C because A is wrong.", "C"),
        ("20 - 5 = <<20-5=15>>15", "15"),
        ("<answer>The answer is 18</answer>", "18"),
        ("<answer>answer sheet</answer>", "answer sheet"),
    ],
)
def test_money_reasons_and_annotations_do_not_hide_the_answer(reply: str, expected: str) -> None:
    assert final_answer(reply).text == expected


def test_an_answer_that_is_said_to_be_wrong_after_a_comma_is_none() -> None:
    assert final_answer("The answer is 15, which is wrong.").text is None


LAST_FORMULA = ("last_math", "last_number")


@pytest.mark.parametrize(
    "reply",
    ["It cannot be $15$.", "$16$, not $15$", "maybe $15$", "Is it $15$?", "$15$ is wrong.",
     r"It isn't \(15\)."],
)  # fmt: skip
def test_a_last_formula_that_is_denied_or_doubted_is_no_answer(reply: str) -> None:
    assert final_answer(reply, LAST_FORMULA).text is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("$14$ or $15$", "14 , 15"), (r"\(14\), or \(15\)", "14 , 15"), (r"It costs $\$15$.", r"\$15"),
     (r"We get $x=15$, so it costs \$15.", "x=15"), ("$$15$$", "15")],
)  # fmt: skip
def test_the_last_formula_is_found_whole(reply: str, expected: str) -> None:
    assert final_answer(reply, LAST_FORMULA).text == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (r"$\boxed{7}$, or maybe $8$", "7 , 8"),
        (r"\boxed{7} (or 8)", "7 , 8"),
        (r"\boxed{7}? Not sure.", None),
    ],
)
def test_a_hedge_after_a_box_counts(reply: str, expected: str | None) -> None:
    assert final_answer(reply).text == expected


@pytest.mark.parametrize(
    ("reply", "found"),
    [("68\n68", "68"), ("68\n\n68\n68", "68"), ("-5\n-5", "-5"), ("50%\n50%", "50%"),
     ("12\n68", None), ("6\n68", None), ("5\n-5", None)],
)  # fmt: skip
def test_a_number_said_twice_is_one_answer_and_two_numbers_are_none(reply, found) -> None:
    answer = final_answer(reply, ("last_number",))
    assert (answer and answer.text) == found
