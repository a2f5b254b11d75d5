# ruff: noqa: E501  # a row of examples is read as a row
r"""Answers of words, units and names: words are no products, and a unit never changes the value."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings

from assay.verifiers import Math, Status
from assay.verifiers.maths.number_words import read_number_words

math = Math()

PLAIN = (
    "apples", "students", "people", "blue marbles", "tennis balls", "square units", "hours", "kg",
    "miles per hour", "games in total", "cups of flour", "different ways", "children", "books left",
)  # fmt: skip
CHANGING = (
    "dozen", "half", "lakh", "bn", "million", "tripled", "halved", "quarters", "nineteenths", "modulo three",
    "times two", "versus three", "less two", "plus", "squared", "out of ten", "or so", "or four", "point two",
    "pairs", "scores", "googols", "permille", "reciprocal", "to the fourth", "max", "off", "K", "fewer",
    "hundred apples", "half apples", "more apples", "nil", "sextillion", "tenfold", "base eight", "unlikely",
    "/ six", "with remainder two", "by nine", "through nine", "per nine", "and a bit", "decreased by one",
)  # fmt: skip


def score(answer: str, gold: object) -> float | None:
    return math.verify(rf"So $\boxed{{{answer}}}$.", gold).score


@pytest.mark.parametrize("form", [r"8\text{ %s}", "8 %s"])
def test_only_units_and_plain_nouns_may_be_added_to_a_number(form: str) -> None:
    assert [words for words in PLAIN if score(form % words, "8") != 1.0] == []
    assert [words for words in CHANGING if score(form % words, "8") != 0.0] == []
    assert [
        words for words in CHANGING if score(rf"3\sqrt{{2}}\text{{ {words}}}", r"3\sqrt{2}") != 0.0
    ] == []


numbers = st.integers(2, 400)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    numbers,
    numbers,
    st.sampled_from(
        [
            "%d R %d", r"%d\text{ boys }%d\text{ girls}", r"\text{day }%d\text{ page }%d",
            r"\text{Tim}=%d,\text{Ida}=%d", r"\beta=%d,\rho=%d", "%d km %d m",
        ]
    ),
)  # fmt: skip
def test_exchanged_values_are_never_paid(a: int, b: int, form: str) -> None:
    assume(a != b and (a < 1000 and b < 1000))
    assert score(form % (a, b), form % (a, b)) == 1.0
    assert score(form % (b, a), form % (a, b)) == 0.0


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.integers(0, 999_999))
def test_numbers_in_words_are_read_back(n: int) -> None:
    assert read_number_words(in_words(n)) == n
    assert n == 0 or read_number_words(f"minus {in_words(n)}") == -n


def in_words(n: int) -> str:
    small = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
        "nineteen",
    ]  # fmt: skip
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    if n < 20:
        return small[n]
    if n < 100:
        return tens[n // 10 - 2] + (f"-{small[n % 10]}" if n % 10 else "")
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if n >= size:
            rest = f" {in_words(n % size)}" if n % size else ""
            return f"{in_words(n // size)} {name}{rest}"
    raise AssertionError(n)


# -- several references, tolerances --------------------------------------------------------------


def test_any_of_several_references_wins() -> None:
    gold = [r"\frac{1}{3}", "0.33", "a third"]
    assert [score(answer, gold) for answer in ("1/3", "0.33", "0.34")] == [1.0, 1.0, 0.0]
    assert score(r"2\pi", {"answer": ["1", r"2\pi"]}) == 1.0
    assert math.oracle_reply(gold) == r"\boxed{\frac{1}{3}}"
    replies, golds = [r"\boxed{1}", r"\boxed{2}", r"\boxed{2}"], [["1", "3"], ["1", "3"], "2"]
    assert [v.score for v in math.verify_many(replies, golds)] == [1.0, 0.0, 1.0]


def test_a_tolerance_of_the_verifier_holds_for_rows_without_one() -> None:
    loose = Math(tolerance=0.5)
    reply = r"\boxed{3.4}"
    assert loose.verify(reply, "3").score == 1.0
    assert loose.verify(reply, {"answer": "3", "tolerance": 0.1}).score == 0.0
    assert "within the tolerance" in loose.verify(reply, "3").reason
    assert Math.from_json(loose.to_json()) == loose


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ([], "1 to 100"),
        (["1", r"\frac{"], "cannot be used"),
        ({"answer": "1", "tol": 1}, "'tolerance'"),
        ({"tolerance": 1}, "'answer'"),
        ({"answer": "1", "tolerance": -1}, "at least 0"),
        ({"answer": "1", "relative_tolerance": "1%"}, "finite number"),
        ([["1"]], "a list of these"),
    ],
)
def test_a_reference_of_a_wrong_shape_is_named_when_data_is_loaded(
    gold: object, reason: str
) -> None:
    assert reason in (math.check_reference(gold) or "")
    assert math.verify(r"\boxed{1}", gold).status is Status.BAD_GOLD
