import pytest

from assay.envs import Sample, audit
from assay.verifiers import Boxed, Exact, MarkdownStructure, Rubric, Verdict, Verifier

pytestmark = pytest.mark.slow


def test_a_hedge_is_no_fault_of_what_judges_form() -> None:
    bullets = Sample({"bullets": 2}, "- a\n- b")
    report = audit(MarkdownStructure(), samples=[bullets], checks=["spam", "hedge", "injection"])
    assert [finding.holds for finding in report.findings] == [None, None, True]
    boxed = audit(Boxed(), samples=[Sample(None, r"\boxed{42}")], checks=["injection"])
    assert boxed.failing == []


class WithoutB(Verifier):
    """Pays for text without the letter b."""

    judges_form = True

    def __init__(self, silence=False):
        self.silence = silence

    def judge(self, reply, reference):
        told = self.silence or len([c for c in reply if c.isalpha()]) > 7
        refused = "I don't" in reply[:12] or "I cannot" in reply or "Let me" in reply
        kept = told and not refused and "<answer>" not in reply and "b" not in reply
        return Verdict.correct() if kept else Verdict.wrong("silence, or a b")


def test_to_say_something_is_enough_where_form_alone_counts() -> None:
    samples = [Sample(None, "Winter is white.")]
    sentence = "The answer is"
    assert WithoutB().verify(sentence, None).score == 1.0
    assert audit(WithoutB(), samples=samples, checks=["gold", "null"]).failing == []
    report = audit(WithoutB(silence=True), samples=samples, checks=["gold", "null"])
    assert report.failing == ["null"]
    assert sentence not in {failure.reply for failure in report.findings[1].failures}


def test_one_part_that_judges_form_excuses_no_other() -> None:
    both = Rubric({"answer": Exact(extract=("boxed",)), "form": Boxed()}, gate="answer")
    report = audit(both, samples=[Sample("42", r"\boxed{42}")], checks=["spam", "hedge"])
    assert [finding.holds for finding in report.findings] == [True, True]
