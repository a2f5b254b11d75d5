import pytest

from assay.verifiers import Exact, Status


def test_only_the_text_itself_wins() -> None:
    exact = Exact()
    assert exact.verify(" Paris \n", "Paris").score == 1.0
    assert exact.verify("<think>Rome?</think>Paris", "Paris").score == 1.0
    for reply in ("paris", "Paris.", "Paris Paris", "", "par\u0131s"):
        assert exact.verify(reply, "Paris").score == 0.0


def test_case_and_inner_white_space_are_options() -> None:
    assert Exact(case=False).verify("PARIS", "paris").score == 1.0
    assert Exact(whitespace=False).verify("a \n b", "a b").score == 1.0
    assert Exact().verify("a  b", "a b").score == 0.0


def test_the_answer_may_be_extracted() -> None:
    tagged = Exact(extract=("answer",))
    assert tagged.verify("I say <answer> b </answer>.", "b").score == 1.0
    assert tagged.verify("b", "b").status is Status.UNPARSEABLE


@pytest.mark.parametrize("reference", ["", "  ", None, 3])
def test_a_reference_that_nothing_can_match_is_a_bad_gold(reference: object) -> None:
    assert Exact().check_reference(reference) is not None
    for reply in ("", "None", "3"):
        assert Exact().verify(reply, reference).status is Status.BAD_GOLD
