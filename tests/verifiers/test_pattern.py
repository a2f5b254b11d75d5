"""Patterns: RE2's, in linear time, and never for nothing."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Pattern
from assay.verifiers.form.linear import Linear

PROSE = (
    "The river runs from a lake in the hills through two old towns, turns the wheel of a mill, "
    "feeds broad green fields, and meets the cold sea near a small harbour."
)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "must be a string"),
        (None, "must be a string"),
        (5, "must be a string"),
        ("(", "RE2 refuses the pattern"),
        ("(?=a)b", "RE2 refuses the pattern"),
        ("(?<!a)b", "RE2 refuses the pattern"),
        (r"(a)\1", "RE2 refuses the pattern"),
        ("a{1001}", "RE2 refuses the pattern"),
        ("(a{100}){100}" * 20, "RE2 refuses the pattern"),
        ("\ud800", "no Unicode"),
        ("a" * 2001, "2001 characters"),
        ("a*", "matches the empty text"),
        ("(yes)?", "matches the empty text"),
        ("^$", "matches the empty text"),
        (".+", "matches any text"),
        (r"(?s).*\S.*", "matches any text"),
    ],
)
def test_patterns_that_pay_for_nothing_or_cannot_be_held_are_refused(
    pattern: Any, why: str
) -> None:
    assert re.search(why, str(Pattern().check_reference(pattern)))
    if isinstance(pattern, str):
        with pytest.raises(ValueError, match=why):
            Pattern(pattern)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "search"},
        {"times": 2},
        {"mode": "contains", "times": 0},
        {"mode": "contains", "times": 101},
        {"mode": "absent", "min_words": 0},
        {"mode": "contains", "times": "3"},
        {"mode": "contains", "times": 1.5},
        {"min_words": -1},
        {"min_words": "2"},
        {"min_words": 1.5},
        {"extract": ["nowhere"]},
    ],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|goes with"):
        Pattern("a", **options)


def test_patterns_that_python_backtracks_on_end() -> None:
    reply = "x" * 99_999
    for pattern in ("(x+x+)+y", "(x|xx)*y", "(?:x?){900}y", r"(x*)*\d"):
        for mode in ("full", "contains"):
            assert Pattern(pattern, mode=mode).verify(reply, None).score == 0.0
    assert Pattern("(?s)x.*y|x", mode="contains", times=99).verify(reply, None).score == 0.0


COUNTED = ["a", "ab|a", "a+", "[ab]{2}", "ä.", "ä|b", r"\w+", "a|b$", r"\ba", "^a"]


@pytest.mark.parametrize("pattern", COUNTED)
@settings(deadline=None, derandomize=True, max_examples=60)
@given(text=st.text("abä ", max_size=12))
def test_parts_are_counted_as_python_counts_them(pattern: str, text: str) -> None:
    expected = len(list(re.finditer(pattern, text, re.ASCII)))
    assert Linear(pattern).count(text, 99) == expected
    assert Linear(pattern).count(text, 2) == min(2, expected)
    assert Linear(pattern).stands_in(text) == (expected > 0)
    assert Linear(pattern).fills(text) == bool(re.fullmatch(pattern, text, re.ASCII))


def test_times_are_exact() -> None:
    twice = Pattern(r"\[\d+\]", mode="contains", times=2)
    scores = [twice.verify("As shown " + "[1] " * n, None).score for n in range(4)]
    assert scores == [0.0, 0.0, 1.0, 0.0]


def test_to_leave_something_out_takes_words() -> None:
    absent = Pattern("(?i)very", mode="absent")
    assert absent.verify(PROSE, None).score == 1.0
    assert absent.verify(PROSE + " Very", None).score == 0.0
    for reply in ("", ".", "No.", "word " * 500, "a b c d e f g h i j k l m n o p q r s t u v w"):
        assert absent.verify(reply, None).score == 0.0
    assert Pattern("x", mode="absent", min_words=2).verify("Good day", None).score == 1.0
    assert Pattern("x", mode="absent", min_words=3).verify("Good good day", None).score == 0.0


def test_capitals_and_the_place_of_the_answer() -> None:
    assert Pattern("yes", case=False).verify("YES", None).score == 1.0
    assert Pattern("yes").verify("YES", None).score == 0.0
    boxed = Pattern(r"\d+", extract=["boxed"])
    assert boxed.verify(r"So \boxed{42}.", None).score == 1.0
    assert boxed.verify("42", None).score == 0.0
    assert Pattern("a").verify("<think>b</think> a", None).score == 1.0
    assert Pattern("a").verify("<think>a", None).score == 0.0


def test_odd_characters_are_only_characters() -> None:
    for text in ("a\ud800b", "a\0b", "a\U0001f600b"):
        assert Pattern("a.b").verify(text, None).score in (0.0, 1.0)
        assert Pattern("ab", mode="contains").verify(text, None).score == 0.0
    assert Pattern("a.b").verify("a\U0001f600b", None).score == 1.0
