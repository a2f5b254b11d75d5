import pytest

from assay.verifiers import Commits

WHY = (
    "Six rows of seven stones each make as many as seven rows of six do, and counting them one by "
    "one, or by the table, gives what you asked for."
)


def test_an_answer_without_a_word_of_explanation_is_a_guess() -> None:
    assert Commits().verify(r"\boxed{42}", None).score == 0.0
    assert Commits(content=1).verify(r"So \boxed{42}", None).score == 1.0
    assert Commits().verify(rf"\boxed{{\text{{{WHY}}}}}", None).score == 0.0
    with pytest.raises(ValueError, match="content must be"):
        Commits(content=0)
    with pytest.raises(ValueError, match="extract must be"):
        Commits(extract=("box",))
