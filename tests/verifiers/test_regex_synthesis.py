"""Regex synthesis: whatever tells the strings apart wins, and nothing else does."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import RegexSynthesis, Status

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
        ({"pattern": "(?=a)"}, "does not win: RE2 cannot read it: invalid perl operator: (?="),
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
    reply = RegexSynthesis().winning_reply(reference)
    assert RegexSynthesis().verify(reply, reference).score == 1.0
    assert RegexSynthesis().winning_reply(STRINGS) is None


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
