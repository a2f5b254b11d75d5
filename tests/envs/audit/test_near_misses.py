"""Near misses fail what pays them, and nothing that declares that it may."""

import pytest

from assay.envs import Sample, audit
from assay.envs.audit.near_misses import constant_programs, near_misses
from assay.verifiers import (
    Code,
    CosineLength,
    Exact,
    Format,
    FunctionVerifier,
    Math,
    Rubric,
    Verdict,
    Verifier,
)

pytestmark = pytest.mark.slow

RIGHT = ["gold", "long", "repeated"]
WRONG = ["null", "near", "final", "spam", "hedge", "neighbour", "injection"]


@pytest.mark.parametrize(
    ("answer", "among", "never"),
    [
        ("53", {"54", "52", "-53", "35", "5", "55.12"}, {"53"}),
        ("-8", {"-7", "-9", "8"}, {"-8"}),
        ("4711", {"4899", "4523", "4753", "7411", "471", "4710"}, set()),
        ("2.50", {"2", "2.51", "3.50", "2.52250"}, {"2.5"}),
        ("1,305", {"1306", "130"}, {"1305"}),
        ("5/8", {"8/5", "6/8", "5/9", "-5/8", "1"}, set()),
        (r"-\frac{2}{9}", {r"-\frac{9}{2}", r"\frac{2}{9}", "-0"}, set()),
        ("7/7", {"8/7"}, {"7/7"}),
        ("0", {"1", "-1"}, {"0", "-0", "0.00"}),
        ("D", {"A", "B", "C", "E"}, {"D"}),
        ("Vienna", {"Wienna", "Viennb"}, {"Vienna"}),
        (r"\text{odd}", {r"\text{pdd}", r"\text{ode}"}, set()),
        (r"6\sqrt{11}", {r"7\sqrt{11}"}, set()),
        ("a_3", set(), {"a_4"}),  # a name, which may not count
    ],
)
def test_near_misses_are_close_and_not_equal(answer, among, never) -> None:
    found = {text for _, text in near_misses(answer)}
    assert among <= found
    assert not never & found


@pytest.mark.parametrize(
    "golds",
    [
        ["7", "18", "86", "1.00"],
        ["1", "0", "-16", "105"],
        ["2/9", r"\frac{7}{4}", "0.125", r"\text{odd}"],
        ["3.14159", "2500", r"5\sqrt{3}", "(4, 9)"],
    ],
)
def test_math_itself_passes_whatever_its_references(golds) -> None:
    report = audit(Math(), samples=[Sample(gold) for gold in golds], checks=RIGHT + WRONG)
    report.raise_for_failures()
    assert report.unchecked == []


class Close(Verifier):
    """Pays for a number with a relative error of 2 %."""

    def judge(self, reply, reference):
        said = reply.rpartition("\n")[2]
        try:
            right = abs(float(said) - reference) <= 0.02 * abs(reference)
        except ValueError:
            right = False
        return Verdict.correct() if right else Verdict.wrong("not close")

    def oracle_reply(self, reference):
        return str(reference)


class Declared(Close):
    """Says so."""

    tolerance = 0.02


def test_a_tolerance_that_is_declared_is_no_fault() -> None:
    samples = [Sample(300), Sample(41.5)]
    checks = [*RIGHT, "near"]
    assert audit(Close(), samples=samples, checks=checks).failing == ["near"]
    assert audit(Close(), samples=samples, checks=checks, tolerance=0.02).failing == []
    assert audit(Declared(), samples=samples, checks=checks).failing == []
    too_close = audit(Declared(), samples=[Sample(4000)], checks=["near"])
    assert too_close.failing == []  # 4001 is within 2 % as well


def signed(low, high):
    def reward(reply, reference):
        return high if reply.rpartition("\n")[2] == reference else low

    return FunctionVerifier(reward, score_range=(low, high))


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 10.0), (1.0, 5.0), (-2.0, 0.5)])
def test_full_marks_are_the_end_of_the_declared_range(low, high) -> None:
    samples = [Sample("31", "31"), Sample("64", "64"), Sample("5", "5")]
    report = audit(signed(low, high), samples=samples, checks=RIGHT + WRONG)
    report.raise_for_failures()
    assert report.unchecked == []


def test_rewards_of_form_and_length_are_no_faults() -> None:
    tagged = Sample("31", "<think>I add.</think><answer>31</answer>")
    rubric = Rubric({"answer": Exact(extract=("answer",)), "form": Format()}, gate="answer")
    report = audit(rubric, samples=[tagged], checks=[*RIGHT, "final"])
    assert (report.failing, report.unchecked) == ([], ["repeated"])
    shaped = CosineLength(Math(), most=500, free=10)
    report = audit(shaped, samples=[Sample("31")], checks=RIGHT)
    assert (report.failing, report.unchecked) == ([], ["long"])


def test_a_constant_output_is_tried_on_programs() -> None:
    stdio = {"stdio": [["1\n", "odd\n"], ["2\n", "even\n"], ["3\n", "odd\n"]]}
    assert list(constant_programs(stdio)) == ["print('odd\\n', end='')"]
    assert list(constant_programs({"stdio": [["1\n", "odd\n"]]})) == []
    calls = {"calls": {"function": "Box.area", "cases": [[[2], 4], [[3], 9]]}}
    (program,) = constant_programs(calls)
    scope: dict = {}
    exec(program, scope)  # noqa: S102  # our own
    assert scope["Box"]().area(3) == 4


def test_tests_that_a_constant_passes_are_found(monkeypatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "bwrap")
    program = "```python\ndef even(n):\n    return n % 2 == 0\n```"
    weak = Sample({"tests": "assert even(2) == True\nassert even(8) == True"}, program)
    sound = Sample({"tests": "assert even(2) == True\nassert even(5) == False"}, program)
    assert audit(Code(), samples=[weak], checks=["near"]).failing == ["near"]
    assert audit(Code(), samples=[sound], checks=["near"]).failing == []
