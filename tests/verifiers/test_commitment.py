import pytest

from assay.verifiers import Commits

WHY = (
    "Six rows of seven stones each make as many as seven rows of six do, and counting them one by "
    "one, or by the table, gives what you asked for."
)


@pytest.mark.parametrize(
    "reply",
    [
        rf"{WHY} So it is \boxed{{42}}.",
        f"{WHY}\n#### 42",
        f"{WHY} The answer is 42.",
        f"<think>Is it 41 or 42? I don't know yet.</think>{WHY} <answer>42</answer>",
        rf"{WHY} So \boxed{{42}}, as I said: \boxed{{42}}.",
        rf"I don't know the trick, but {WHY * 30} So it is \boxed{{42}}.",
        rf"{WHY} It follows that \boxed{{\text{{the set has no largest element}}}}.",
    ],
)
def test_replies_that_commit(reply: str) -> None:
    assert Commits().verify(reply, None).score == 1.0, Commits().verify(reply, None)


@pytest.mark.parametrize(
    "end",
    [
        "", r"\boxed{}", r"\boxed{42", r"\boxed{42 or 43}", r"\boxed{42 \text{ or } 43}",
        r"\boxed{\text{maybe }42}", r"\boxed{42?}", r"\boxed{?}", r"\boxed{\text{unknown}}",
        r"\boxed{\text{I don't know}}", r"\boxed{N/A}", r"\boxed{41} or else \boxed{42}",
        "<answer>41</answer> <answer>42</answer>", r"I am not sure: \boxed{42}",
        r"I don’t know, so \boxed{42}", r"Just a guess: \boxed{42}", r"It is not \boxed{42}",
        r"\boxed{42} is wrong.", "The answer is 42 or 43.", "The answer is 42?",
        "<think>The answer is 42.", "I cannot help with that.", "The answer is unknown.",
    ],
)  # fmt: skip
def test_replies_that_do_not(end: str) -> None:
    assert Commits().verify(f"{WHY} {end}", None).score == 0.0


def test_an_answer_without_a_word_of_explanation_is_a_guess() -> None:
    assert Commits().verify(r"\boxed{42}", None).score == 0.0
    assert Commits(content=1).verify(r"So \boxed{42}", None).score == 1.0
    assert Commits().verify(rf"\boxed{{\text{{{WHY}}}}}", None).score == 0.0
    with pytest.raises(ValueError, match="content must be"):
        Commits(content=0)
    with pytest.raises(ValueError, match="extract must be"):
        Commits(extract=("box",))
