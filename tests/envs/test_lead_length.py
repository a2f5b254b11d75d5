"""GRPO-LEAD's length reward, and a group rubric that pays it alone."""

import math

import pytest

from assay.envs import Episode, GroupRubric, LeadLength, Task
from assay.verifiers import Status, Verdict

TASK = Task("Why?", "x", id="t")


def said(text: str, verdict: Verdict | None = None) -> Episode:
    right = text.startswith("r")
    verdict = verdict or (Verdict.correct() if right else Verdict.wrong("no"))
    return Episode("t", ({"role": "assistant", "content": text},), verdict)


def test_rewards_are_the_papers_in_the_range_of_ours() -> None:
    episodes = [said("r"), said("rrr"), said("rrrrr"), said("w" * 50)]
    bound = math.exp(0.05 * 3 / 2)  # of four replies none is more than 1.5 deviations short
    paper = [math.exp(0.05), 1.0, math.exp(-0.05)]
    wanted = [*((r + 1) / (bound + 1) for r in paper), 0.0]
    assert LeadLength().rewards(TASK, episodes) == pytest.approx(wanted, abs=1e-6)
    alone = LeadLength().rewards(TASK, [said("rrrr"), *episodes[3:] * 3])
    assert alone == pytest.approx([2 / (bound + 1), 0, 0, 0])
    assert LeadLength().rewards(TASK, [said("w")]) == [0.0]


def test_no_reward_leaves_the_range() -> None:
    for count in (1, 2, 3, 8, 64):
        group = [said("r"), *[said("r" * 900)] * (count - 1)]
        for alpha in (0.0, 0.05, 10.0):
            found = LeadLength(alpha=alpha, penalty=0.0).rewards(TASK, group)
            assert all(0.0 <= x <= 1.0 for x in found)
            assert found[0] == max(found)


def test_a_rubric_can_pay_it_alone() -> None:
    rubric = GroupRubric({"lead": LeadLength()}, weights={"rubric": 0.0})
    gone = said("r", Verdict.fault(Status.SANDBOX_ERROR, "gone"))
    half = said("w", Verdict.wrong("half", score=0.5))
    judged = rubric.judged(TASK, [said("r"), gone, said("rrr"), half])
    expected = LeadLength().rewards(TASK, [said("r"), said("rrr"), half])
    assert [e.reward for e in judged] == [expected[0], None, expected[1], 0.0]
    assert judged[0].rewards["rubric"] == 1.0
    assert judged[0].status is Status.CORRECT
    with pytest.raises(ValueError, match="one weight must be above 0"):
        GroupRubric({"lead": LeadLength()}, weights={"rubric": 0.0, "lead": 0.0})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": -0.1}, r"alpha must be in \[0, 10\], got -0.1"),
        ({"alpha": float("nan")}, "alpha must be in"),
        ({"penalty": -1.0}, "penalty must be 0 or more, got -1.0"),
        ({"penalty": math.inf}, "penalty must be 0 or more"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LeadLength(**options)
