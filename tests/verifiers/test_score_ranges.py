"""Rewards of any declared range: totals follow, and what is undeclared or not finite is a fault."""

import asyncio
import functools
import math
import pickle
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.verifiers import Exact, FunctionVerifier, Rubric, Status, Verdict, Verifier


def given_back(reply: str, reference: Any) -> Any:
    """The reference is what the function returns, or raises."""
    if isinstance(reference, BaseException):
        raise reference
    return reference


class Signed(Verifier):
    """The reply is its score."""

    score_range = (-2.0, 2.0)

    def judge(self, reply: str, reference: Any) -> Verdict:
        status = Status.CORRECT if reply == "2" else Status.INCORRECT
        return Verdict(status, float(reply))


class SignedBatch(Verifier):
    """The same, without a range."""

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        return [Verdict.wrong("", score=float(reply)) for reply in replies]


def judged(value: Any, **options: Any) -> Verdict:
    return Rubric({"r": given_back}, **options).verify("", value)


@pytest.mark.parametrize(
    ("bounds", "value", "status", "score"),
    [
        ((-1, 1), -1, Status.INCORRECT, -1.0), ((-1, 1), 0, Status.INCORRECT, 0.0),
        ((-1, 1), 1, Status.CORRECT, 1.0), ((0, 10), 7.5, Status.INCORRECT, 7.5),
        ((0, 10), 10, Status.CORRECT, 10.0), ((-50, 0), -3, Status.INCORRECT, -3.0),
        ((-50, 0), 0, Status.CORRECT, 0.0), ((2, 5), 2, Status.INCORRECT, 2.0),
        ([-0.5, 0.5], 0.5, Status.CORRECT, 0.5),
    ],
)  # fmt: skip
def test_a_score_in_the_declared_range_is_the_total(bounds, value, status, score) -> None:
    verdict = judged(value, ranges={"r": bounds})
    assert (verdict.status, verdict.score, verdict.parts) == (status, score, {"r": score})
    assert Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize("value", [-1, -0.001, 1.001, 2, 1e308, -5])
@pytest.mark.parametrize("wrap", [FunctionVerifier, lambda f: Rubric({"r": f})])
def test_a_score_outside_an_undeclared_range_names_value_rule_and_remedy(wrap, value) -> None:
    verdict = wrap(given_back).verify("", value)
    assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
    for said in (f"must be in [0, 1], got {value:g}", "declare the range", "ranges={"):
        assert said in verdict.reason
    assert wrap(given_back).verify_many(["", ""], [value, 0.5])[1].score == 0.5


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.nan, np.float32("inf")])
@pytest.mark.parametrize("ranges", [{}, {"r": (-1e9, 1e9)}])
def test_what_is_not_finite_is_a_fault_in_any_range(value, ranges) -> None:
    verdict = judged(value, ranges=ranges)
    assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
    assert "finite number" in verdict.reason


@pytest.mark.parametrize(
    "bounds", [(1, 0), (1, 1), (0,), (0, 1, 2), 1, "01", (0, math.inf), (math.nan, 1), ("0", "1")]
)
def test_a_range_is_two_finite_numbers(bounds) -> None:
    with pytest.raises(ValueError, match="must be two finite numbers, the lower one first, got"):
        Rubric({"r": given_back}, ranges={"r": bounds})


def test_a_range_belongs_to_a_function_of_the_rubric() -> None:
    with pytest.raises(ValueError, match="no part 's'"):
        Rubric({"r": given_back}, ranges={"s": (0, 2)})
    with pytest.raises(ValueError, match="let Exact declare its own"):
        Rubric({"r": Exact()}, ranges={"r": (0, 2)})


def test_a_verifier_declares_its_own_range() -> None:
    rubric = Rubric({"signed": Signed(), "form": lambda *_: 1.0})
    assert rubric.score_range == (-1.0, 1.5)
    found = rubric.verify_many(["-2", "0", "2", "3"], [None] * 4)
    assert [v.score for v in found] == [-0.5, 0.5, 1.5, None]
    assert "must be in [-2, 2], got 3" in found[3].reason
    undeclared = Rubric({"signed": SignedBatch()}).verify_many(["-2", "1"], [None] * 2)
    assert [v.score for v in undeclared] == [None, 1.0]


def test_a_shut_gate_pays_the_lowest_score_of_each_other_part() -> None:
    rubric = Rubric(
        {"right": lambda reply, _: reply == "right", "short": given_back},
        gate="right", weights={"short": 0.5}, ranges={"short": (-1, 1)},
    )  # fmt: skip
    assert rubric.score_range == (-0.5 / 1.5, 1.0)
    wrong = [rubric.verify("wrong", score) for score in (-1, 0, 1)]
    assert [v.score for v in wrong] == [-0.5 / 1.5] * 3
    assert [v.parts["short"] for v in wrong] == [-1.0, 0.0, 1.0]
    right = [rubric.verify("right", score).score for score in (-1, 0, 1)]
    assert right == [0.5 / 1.5, 1 / 1.5, 1.0]


def test_a_gate_of_another_range_opens_at_its_highest_score() -> None:
    gated = Rubric({"won": given_back, "form": lambda *_: 1.0}, gate="won", ranges={"won": (-1, 1)})
    assert [gated.verify("", score).score for score in (-1, 0, 1)] == [-0.5, 0.0, 1.0]


@given(
    st.lists(
        st.tuples(
            st.floats(-100, 100), st.floats(0.01, 50), st.floats(0, 1), st.floats(0.01, 9)
        ),
        min_size=1, max_size=5,
    ),
    st.booleans(),
)  # fmt: skip
def test_every_total_is_in_the_range_of_totals(parts, gated) -> None:
    names = [str(k) for k in range(len(parts))]
    bounds = {n: (low, low + width) for n, (low, width, _, _) in zip(names, parts, strict=True)}
    scores = {
        n: min(bounds[n][1], low + width * share)
        for n, (low, width, share, _) in zip(names, parts, strict=True)
    }
    rubric = Rubric(
        {n: lambda reply, _, n=n: scores[n] for n in names},
        weights=dict(zip(names, (p[3] for p in parts), strict=True)),
        gate="0" if gated else None,
        ranges=bounds,
    )
    verdict = rubric.verify("", None)
    low, high = rubric.score_range
    assert verdict.score is not None
    assert low <= verdict.score <= high


def test_ranges_are_part_of_what_a_rubric_says_of_itself() -> None:
    wide = Rubric({"r": given_back}, ranges={"r": (-1, 1)})
    assert wide != Rubric({"r": given_back})
    assert wide.digest != Rubric({"r": given_back}).digest
    assert wide == Rubric({"r": given_back}, ranges={"r": (-1.0, 1.0)})
    assert Rubric({"r": given_back}).to_json()["parts"]["r"].keys() == {"name", "function"}
    assert pickle.loads(pickle.dumps(wide)).verify("", -1).score == -1.0


def test_a_rubric_inside_a_rubric_brings_its_range() -> None:
    inner = Rubric({"r": given_back}, ranges={"r": (-1, 1)})
    outer = Rubric({"inner": inner, "other": lambda *_: 1.0})
    assert outer.score_range == (-0.5, 1.0)
    assert outer.verify("", -1).score == 0.0


# -- what functions return ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (True, 1.0), (False, 0.0), (1, 1.0), (0.25, 0.25), (np.bool_(True), 1.0),
        (np.float32(0.5), 0.5), (np.float64(0.125), 0.125), (np.array(0.75), 0.75),
        (np.int64(1), 1.0), (Fraction(1, 4), 0.25), (Decimal("0.5"), 0.5),
        (Verdict.wrong("x", score=0.3), 0.3),
    ],
)  # fmt: skip
def test_numbers_of_every_kind_are_scores(value, score) -> None:
    verdict = judged(value)
    assert (verdict.score, type(verdict.score)) == (score, float)


@pytest.mark.parametrize(
    "value",
    [None, "1.0", "", (1.0, {}), [1.0], [], {}, {"score": 1.0}, object(), 1j, b"1",
     np.array([1.0, 0.0])],
)  # fmt: skip
def test_what_is_no_number_is_a_fault_that_names_it(value) -> None:
    verdict = judged(value)
    assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
    assert "must return a bool, a number or a Verdict, got " in verdict.reason
    assert "given_back" in verdict.reason


@pytest.mark.parametrize(
    "error", [KeyError("x"), RecursionError("deep"), StopIteration(), AssertionError(), OSError(5)]
)
def test_a_function_that_raises_costs_no_neighbour_its_score(error) -> None:
    found = Rubric({"r": given_back}).verify_many(["", "", ""], [1.0, error, 0.0])
    assert [v.score for v in found] == [1.0, None, 0.0]
    assert type(error).__name__ in found[1].reason


def test_a_one_element_tensor_is_a_score() -> None:
    torch = pytest.importorskip("torch")
    assert judged(torch.tensor(0.5)).score == 0.5
    assert judged(torch.tensor([0.5, 1.0])).score is None


def test_an_asynchronous_function_is_refused_at_once() -> None:
    async def reward(reply: str, reference: Any) -> float:
        await asyncio.sleep(0)
        return 1.0

    with pytest.raises(TypeError, match="is asynchronous: give a plain one"):
        Rubric({"r": reward})  # type: ignore[dict-item]  # what it must refuse
    with pytest.raises(TypeError, match="is asynchronous: give a plain one"):
        Rubric({"r": functools.partial(reward)})  # type: ignore[dict-item]  # likewise


@pytest.mark.parametrize("value", [None, 1.0, "x", (Status.CORRECT, 1.0)])
def test_a_verifier_that_returns_no_verdict_is_at_fault(value) -> None:
    class Odd(Verifier):
        def judge(self, reply: str, reference: Any) -> Verdict:
            return value

    class OddBatch(Verifier):
        def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
            return [value] * len(replies)

    for verifier in (Odd(), Rubric({"odd": Odd()}), Rubric({"odd": OddBatch()})):
        for verdict in (verifier.verify("", None), *verifier.verify_many(["a", "b"], [None] * 2)):
            assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
            assert "must return a Verdict for each reply, got " in verdict.reason
