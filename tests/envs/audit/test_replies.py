"""What the audit plants is no answer, and where it may be one by chance, chance is told."""

import pytest

from assay.envs import Rows, Sample, Task, TextEnv, audit
from assay.envs.audit.replies import hedges
from assay.verifiers import Math, Verdict, Verifier

pytestmark = pytest.mark.slow


class Jugs(Verifier):
    """Sound: a list of numbers wins whose sum leaves ``left`` when divided by ``by``.

    So one right list after another may be a right one as well.
    """

    many_answers = True

    def judge(self, reply, reference):
        return self.paid(reply, reference)

    def paid(self, reply, reference):
        text = reply.replace("\n", ",")
        for mark in ("\\boxed{", "}", "<answer>", "</answer>"):
            text = text.replace(mark, "")
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            return Verdict.wrong("no list of numbers")
        right = sum(numbers) % reference["by"] == reference["left"]
        return Verdict.correct() if right else Verdict.wrong("another sum")


class PaysAnyBox(Jugs):
    """One of several boxes is enough."""

    def judge(self, reply, reference):
        found = [self.paid(line, reference) for line in reply.splitlines() or [""]]
        return max(found, key=lambda verdict: verdict.score)


class PaysTheFirstOfTwo(Jugs):
    """What comes after the word "or" is not read."""

    def judge(self, reply, reference):
        return self.paid(reply.split(" or ")[0], reference)


def jugs(verifier):
    made = [(3, 1), (3, 2), (4, 1), (4, 3), (5, 2), (5, 4)]
    tasks = [
        Task(f"By {by}, left {left}.", {"by": by, "left": left}, solution=f"{by}, {left}")
        for by, left in made
    ]
    return TextEnv(Rows(tasks), verifier)


@pytest.mark.parametrize(
    ("verifier", "failing"),
    [(Jugs(), []), (PaysAnyBox(), ["spam"]), (PaysTheFirstOfTwo(), ["hedge"])],
)
def test_two_answers_may_be_a_third_but_not_always(verifier, failing) -> None:
    report = audit(jugs(verifier), tasks=6, checks=["gold", "spam", "hedge"])
    assert report.failing == failing
    assert report.unchecked == []
    if not failing:  # the sound one is paid for some all the same, and that is said
        assert "happen to be right" in report.findings[1].note + report.findings[2].note


@pytest.mark.parametrize(
    ("answer", "other", "left_out"),
    [
        ("0", "1", {"0 / 1", "1 0", "0 x"}),  # it is 0
        ("-1", "0", {"0 -1"}),  # it is -1
        ("42", "43", set()),
    ],
)
def test_what_is_the_answer_by_arithmetic_is_no_hedge(answer, other, left_out) -> None:
    tried = {text for _, text in hedges(answer, other, answer)}
    alike = {f"{answer} / {other}", f"{other} {answer}", f"{answer} x"}
    assert alike - tried == left_out
    assert {f"{answer} or {other}", f"{answer}, {other}", f"not {answer}"} <= tried


def test_a_hedge_around_nought_is_still_found() -> None:
    class PaysAHedge(Verifier):
        def judge(self, reply, reference):
            right = reply.split(" or ")[0].split(", ")[0] == reference
            return Verdict.correct() if right else Verdict.wrong("no")

        def oracle_reply(self, reference):
            return reference

    noughts = [Sample("0"), Sample("00")]
    assert audit(Math(), samples=noughts, checks=["gold", "hedge"]).failing == []
    report = audit(PaysAHedge(), samples=noughts, checks=["gold", "hedge"])
    assert report.failing == ["hedge"]
    found = {failure.reply for failure in report.findings[1].failures}
    assert {"0 or 11", "0, 11"} <= found


def test_payloads_are_the_same_whatever_their_folder_is_called() -> None:
    def digits(reply, reference):
        return float(reply == reference)

    samples = [Sample(str(n), str(n)) for n in (3, 5, 6, 9)]
    reports = [audit(digits, samples=samples, checks=["injection"]) for _ in range(6)]
    assert {report.findings[0].cases for report in reports} == {reports[0].findings[0].cases}
