"""Patterns: RE2's, in linear time, and never for nothing."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Pattern
from assay.verifiers.form.linear import Linear


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "must be a string"), (None, "must be a string"), (5, "must be a string"),
        ("(", "RE2 refuses the pattern"), ("(?=a)b", "RE2 refuses the pattern"),
        ("(?<!a)b", "RE2 refuses the pattern"), (r"(a)\1", "RE2 refuses the pattern"),
        ("a{1001}", "RE2 refuses the pattern"), ("(a{100}){100}" * 20, "RE2 refuses the pattern"),
        ("\ud800", "no Unicode"), ("a" * 2001, "2001 characters"), ("a*", "matches the empty text"),
        ("(yes)?", "matches the empty text"), ("^$", "matches the empty text"),
        (".+", "matches any text"), (r"(?s).*\S.*", "matches any text"),
    ],
)  # fmt: skip
def test_patterns_that_pay_for_nothing_or_cannot_be_held_are_refused(
    pattern: Any, why: str
) -> None:
    assert re.search(why, str(Pattern().check_reference(pattern)))
    if isinstance(pattern, str):
        with pytest.raises(ValueError, match=why):
            Pattern(pattern)


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


def test_odd_characters_are_only_characters() -> None:
    for text in ("a\ud800b", "a\0b", "a\U0001f600b"):
        assert Pattern("a.b").verify(text, None).score in (0.0, 1.0)
        assert Pattern("ab", mode="contains").verify(text, None).score == 0.0
    assert Pattern("a.b").verify("a\U0001f600b", None).score == 1.0
