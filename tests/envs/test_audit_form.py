from assay.envs import Sample, audit
from assay.verifiers import Boxed, Exact, MarkdownStructure, Rubric


def test_a_hedge_is_no_fault_of_what_judges_form() -> None:
    bullets = Sample({"bullets": 2}, "- a\n- b")
    report = audit(MarkdownStructure(), samples=[bullets], checks=["spam", "hedge", "injection"])
    assert [finding.holds for finding in report.findings] == [None, None, True]
    boxed = audit(Boxed(), samples=[Sample(None, r"\boxed{42}")], checks=["injection"])
    assert boxed.failing == []


def test_one_part_that_judges_form_excuses_no_other() -> None:
    both = Rubric({"answer": Exact(extract=("boxed",)), "form": Boxed()}, gate="answer")
    report = audit(both, samples=[Sample("42", r"\boxed{42}")], checks=["spam", "hedge"])
    assert [finding.holds for finding in report.findings] == [True, True]
