"""Countdown: any right expression wins, and nothing else does."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Countdown, Status

PROBLEM = {"numbers": [3, 7, 25], "target": 46}


@pytest.mark.parametrize(
    ("reply", "status"), [("(" * 4000, Status.UNPARSEABLE), ("9" * 4000, Status.UNPARSEABLE)]
)
def test_nothing_else_does(reply, status) -> None:
    verdict = Countdown().verify(reply, PROBLEM)
    assert (verdict.score, verdict.status) == (0.0, status), verdict


def test_some_numbers_may_be_left_over_only_where_that_is_asked_for() -> None:
    problem = {"numbers": [3, 7, 25], "target": 28}
    assert Countdown().verify("25+3", problem).reason == "leaves 7 unused"
    assert Countdown(use_all=False).verify("25+3", problem).score == 1.0
    assert Countdown(use_all=False).verify("25+3+3-3", problem).score == 0.0


@pytest.mark.parametrize(
    "reference",
    [None, {}, {"numbers": [], "target": 1}, {"numbers": [1.5], "target": 1},
     {"numbers": [-1], "target": -1}, {"numbers": [10**9], "target": 10**9},
     {"numbers": [1], "target": "1"}, {"numbers": [True], "target": 1}],
)  # fmt: skip
def test_references_that_cannot_be_used_are_bad_golds(reference) -> None:
    verdict = Countdown().verify("1", reference)
    assert (verdict.score, verdict.status) == (None, Status.BAD_GOLD)


expressions = st.recursive(
    st.integers(0, 99).map(lambda n: (str(n), Fraction(n), [n])),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner)
    .filter(lambda t: t[1] != "/" or t[2][1] != 0)
    .map(
        lambda t: (
            f"({t[0][0]}{t[1]}{t[2][0]})",
            {"+": Fraction.__add__, "-": Fraction.__sub__, "*": Fraction.__mul__,
             "/": Fraction.__truediv__}[t[1]](t[0][1], t[2][1]),
            t[0][2] + t[2][2],
        )
    ),
    max_leaves=8,
)  # fmt: skip


@settings(deadline=None, derandomize=True)
@given(expressions)
def test_values_are_exact(expression) -> None:
    text, value, numbers = expression
    if value.denominator == 1:
        reference = {"numbers": numbers, "target": int(value)}
        assert Countdown().verify(text, reference).score == 1.0
        assert Countdown().verify(text, {**reference, "target": int(value) + 1}).score == 0.0


@settings(deadline=None, derandomize=True)
@given(st.text() | st.text("0123456789+-*/() =<answer>\\boxed{}"))
def test_no_reply_raises_or_wins_by_accident(reply) -> None:
    assert Countdown().verify(reply, {"numbers": [97, 98], "target": 95061}).score == 0.0
