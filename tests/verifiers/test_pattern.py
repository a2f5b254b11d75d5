"""Patterns: RE2's, in linear time, and never for nothing."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Pattern, RegexSynthesis, Status
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


STRINGS = {
    "positive": ["a1", "b22", "c333"],
    "negative": ["a", "1a", "d1", "a1\n"],
    "hidden_positive": ["c3", "b2024"],
    "hidden_negative": ["cc3", "b2 ", "C3", "a\u0663"],
}


def test_the_length_is_an_option() -> None:
    assert RegexSynthesis(longest=7).verify(r"[a-c]\d+", STRINGS).score == 0.0
    assert RegexSynthesis(longest=8).verify(r"[a-c]\d+", STRINGS).score == 1.0
    with pytest.raises(ValueError, match="longest must be from 1 to 2000, got 0"):
        RegexSynthesis(longest=0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"positive": []}, "needs a positive and a negative"),
        ({"negative": []}, "needs a positive and a negative"),
        ({"negative": "x"}, "negative must be a list of strings"),
        ({"hidden_negative": [1]}, "hidden_negative must be a list of strings"),
        ({"hidden_negative": ["a1"]}, "both positive and negative, got 'a1'"),
        ({"positive": ["a" * 30_000]}, "at most 20000 characters"),
        ({"pattern": "[a-c]"}, "does not win: misses a positive string"),
        (
            {"pattern": "(?=a)"},
            "does not win: RE2 refuses the pattern '(?=a)' (invalid perl operator",
        ),
        ({"pattern": 1}, "pattern must be a regular expression"),
    ],
)
def test_references_that_cannot_be_used_are_bad_golds(change, words: str) -> None:
    reference = {**STRINGS, **change}
    assert words in (RegexSynthesis().check_reference(reference) or "")
    verdict = RegexSynthesis().verify("a", reference)
    assert (verdict.status, verdict.score) == (Status.BAD_GOLD, None)


def test_the_known_pattern_wins() -> None:
    reference = {**STRINGS, "pattern": r"[a-c]\d+"}
    reply = RegexSynthesis().oracle_reply(reference)
    assert RegexSynthesis().verify(reply, reference).score == 1.0
    assert RegexSynthesis().oracle_reply(STRINGS) is None


expressions = st.recursive(
    st.sampled_from(["a", "b", "[ab]", "[^a]", "c"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        inner.map(lambda p: f"(?:{p})?"),
        inner.map(lambda p: f"(?:{p}){{1,2}}"),
    ),
    max_leaves=6,
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(expression=expressions, words=st.lists(st.text("abc", max_size=5), min_size=2, unique=True))
def test_verdicts_are_those_of_python(expression: str, words: list[str]) -> None:
    """On the syntax that both share, RE2 and Python's own engine say the same."""
    half = len(words) // 2
    reference = {"positive": words[:half], "negative": words[half:], "hidden_positive": ["ca" * 9]}
    pattern = re.compile(f"{expression}|(?:ca){{9}}")
    right = all(map(pattern.fullmatch, words[:half])) and not any(
        map(pattern.fullmatch, words[half:])
    )
    reply = f"<answer>{pattern.pattern}</answer>"
    assert RegexSynthesis().verify(reply, reference).score == float(right)
