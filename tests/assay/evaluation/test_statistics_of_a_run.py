"""pass@k, maj@k and their intervals: expectations by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Episode, EpisodeGroup, Task, wilson_interval
from assay.evaluation import (
    Tally,
    ballots,
    bootstrap,
    majority,
    majority_at_k,
    many_answers,
    mcnemar,
)
from assay.evaluation.difference import difference
from assay.verifiers import (
    Boxed,
    Countdown,
    Exact,
    Math,
    Maze,
    RegexSynthesis,
    Rubric,
    Status,
    Verdict,
)

RIGHT, WRONG, MUTE, LOST = "right", "wrong", "mute", "lost"


def episode(task: str, kind: str, said: str | None = None) -> Episode:
    verdict = {
        RIGHT: Verdict(Status.CORRECT, 1.0, "equal", said or "4", {"accuracy": 1.0}),
        WRONG: Verdict(Status.INCORRECT, 0.0, "not 4", said or "5", {"accuracy": 0.0}),
        MUTE: Verdict(Status.UNPARSEABLE, 0.0, "no answer", None, {"accuracy": 0.0}),
        LOST: Verdict(Status.VERIFIER_ERROR, None, "it broke", None, {"accuracy": None}),
    }[kind]
    return Episode(task, ({"role": "assistant", "content": f"{kind} {said}"},), verdict)


def group(task: str, *kinds: str, **metadata) -> EpisodeGroup:
    asked = Task("2+2=", "4", id=task, metadata=metadata)
    return EpisodeGroup(asked, [episode(task, *kind.split(":")) for kind in kinds])


def test_pass_at_k_by_hand_and_none_is_no_zero() -> None:
    tally = Tally()
    tally.add(group("a", RIGHT, WRONG, WRONG, WRONG, level=1))
    tally.add(group("b", RIGHT, RIGHT, LOST, LOST, level=10))
    tally.add(group("c", LOST, LOST, LOST, LOST, level=2))
    found = tally.summary()
    assert (found["tasks"], found["replies"], found["scored"]) == (3, 12, 6)
    assert found["without_score"] == 6
    assert found["pass_at"]["1"]["value"] == pytest.approx((1 / 4 + 1) / 2)
    assert found["pass_at"]["1"]["tasks"] == 2
    assert found["pass_at"]["2"]["value"] == pytest.approx((1 / 2 + 1) / 2)  # 1 - C(3,2)/C(4,2)
    assert found["pass_at"]["4"] == {"value": 1.0, "low": None, "high": None, "tasks": 1}
    assert found["rewards"]["accuracy"] == {"mean": 0.5, "scored": 6, "without_score": 6}
    assert found["statuses"] == {"correct": 3, "incorrect": 3, "verifier_error": 6}
    assert list(found["levels"]) == ["1", "2", "10"]
    assert found["levels"]["2"]["value"] is None
    assert tally.pass_at_1 == pytest.approx(0.625)


def test_where_no_reply_has_a_score_there_is_no_number() -> None:
    tally = Tally()
    tally.add(group("a", LOST, LOST))
    found = tally.summary()
    assert found["pass_at"] == found["maj_at"] == {}
    assert found["rewards"]["total"]["mean"] is None
    assert tally.pass_at_1 is None


def test_most_votes_win_and_a_tie_is_shared() -> None:
    def vote(*kinds: str) -> float:
        return majority(ballots(group("a", *kinds).episodes, many_answers=False))

    assert vote(RIGHT, RIGHT, WRONG) == 1.0
    assert vote(RIGHT, WRONG, WRONG) == 0.0
    assert vote(RIGHT, WRONG) == 0.5
    assert vote(RIGHT, "wrong:5", "wrong:6") == pytest.approx(1 / 3)
    assert vote(RIGHT, MUTE, MUTE) == 1.0  # who says nothing has no vote
    assert vote(MUTE, MUTE) == 0.0
    assert vote("right:1/2", "right:0.5", WRONG) == 1.0  # one answer, written in two ways
    assert vote("wrong:A  b", "wrong:a B", RIGHT) == 0.0
    assert vote(RIGHT, LOST, WRONG, WRONG) == 0.0


def test_where_many_answers_are_right_they_are_kept_apart() -> None:
    replies = group("a", "right:1+3", "right:3+1", "wrong:5", "wrong:5").episodes
    assert majority(ballots(replies, many_answers=False)) == 0.5
    assert majority(ballots(replies, many_answers=True)) == 0.0


def test_maj_at_k_is_the_mean_over_all_choices() -> None:
    votes = ballots(group("a", RIGHT, RIGHT, WRONG).episodes, many_answers=False)
    # pairs: RR 1, RW 1/2, RW 1/2
    assert majority_at_k(votes, 2, "a") == pytest.approx(2 / 3)
    assert majority_at_k(votes, 1, "a") == pytest.approx(2 / 3)
    assert majority_at_k(votes, 3, "a") == 1.0
    many = ballots(group("a", *[RIGHT, WRONG] * 10).episodes, many_answers=False)
    assert majority_at_k(many, 10, "a") == majority_at_k(many, 10, "a")
    assert abs(majority_at_k(many, 10, "a") - 0.5) < 0.1
    with pytest.raises(ValueError, match=r"k must be in 1\.\.n"):
        majority_at_k(votes, 4, "a")


def test_an_interval_is_that_of_the_means_spread() -> None:
    """For 400 tasks, half of them solved, the percentiles are near 0.5 +- 1.96 * 0.025."""
    (found,) = bootstrap([[0.0, 1.0] * 200])
    assert found.value == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.006)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.006)
    assert bootstrap([[0.0, 1.0] * 200]) == [found]
    assert bootstrap([[0.0, 1.0] * 200], seed=1) != [found]


def test_no_spread_is_no_certainty_and_one_task_has_no_interval() -> None:
    sure, one, nothing = bootstrap([[1.0] * 10, [1.0, *[None] * 9], [None] * 10])
    assert (sure.low, sure.high) == wilson_interval(10, 10)
    assert (one.value, one.low, one.tasks) == (1.0, None, 1)
    assert (nothing.value, nothing.tasks) == (None, 0)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=30))
def test_an_interval_is_inside_the_values_and_finite(column) -> None:
    (found,) = bootstrap([column], draws=200)
    counted = [v for v in column if v is not None]
    assert found.tasks == len(counted)
    if found.low is not None:
        assert math.isfinite(found.low)
        assert math.isfinite(found.high)
        assert found.low <= found.high
        if min(counted) < max(counted):
            assert min(counted) - 1e-9 <= found.low
            assert found.high <= max(counted) + 1e-9


def test_mcnemar_by_hand() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(3, 3) == 1.0
    assert mcnemar(5, 0) == 2 / 32
    assert mcnemar(1, 6) == pytest.approx(2 * (1 + 7) / 128)


def test_two_runs_are_paired_by_task_and_number() -> None:
    first = [group("a", RIGHT, WRONG), group("b", WRONG, LOST), group("x", RIGHT, RIGHT)]
    second = [group("b", RIGHT, RIGHT), group("a", RIGHT, MUTE), group("y", RIGHT, RIGHT)]
    found = difference(first, second)
    assert (found.tasks, found.pairs, found.only_first, found.only_second) == (2, 4, ("x",), ("y",))
    assert [(p.task, p.copy) for p in found.flips] == [("a", 1), ("b", 0), ("b", 1)]
    assert (found.better, found.worse) == (1, 0)  # what had no score was not wrong before
    assert found.gain.value == pytest.approx((0 + 1) / 2)
    assert found.p_value is None  # replies to one task are not independent
    assert not found.same_replies
    singles = difference(
        [group("a", WRONG), group("b", WRONG)], [group("a", RIGHT), group("b", WRONG)]
    )
    assert singles.p_value == 1.0
    with pytest.raises(ValueError, match="no task in common"):
        difference(first[:1], second[:1])


def test_whether_right_answers_are_one_vote_or_many() -> None:
    """Two right expressions of Countdown are two answers; two spellings of a number are one."""
    many = Countdown(), Rubric({"accuracy": Maze(), "format": Boxed()}), RegexSynthesis()
    assert all(map(many_answers, many))
    assert not any(map(many_answers, (Math(), Exact(), Rubric({"accuracy": Math()}))))
