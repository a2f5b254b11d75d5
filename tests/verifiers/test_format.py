import itertools
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Format

GOOD = "<think>6 by 7</think><answer>42</answer>"


def test_a_prompt_may_have_opened_the_thought() -> None:
    prefilled = Format(prefilled_think=True)
    assert prefilled.verify("6 by 7</think><answer>42</answer>", None).score == 1.0
    assert prefilled.verify(GOOD, None).reason == "<think> is in the prompt already"
    assert Format().verify("6 by 7</think><answer>42</answer>", None).score == 0.0


PIECES = ["<think>", "</think>", "<answer>", "</answer>", "a", " "]


def keeps(reply: str) -> list[bool]:
    """Which parts are kept, found without a scanner: tags by position, text by splitting."""
    order = PIECES[:4]
    at = [reply.find(tag) for tag in order]
    standing = [place for place in at if place >= 0]
    once = all(reply.count(tag) <= 1 for tag in order)
    rest = reply.partition("</think>")[2]
    blank = rest.replace("<answer>", "").replace("</answer>", "").strip() == ""
    texts = {
        tag: (reply.partition(tag)[2] if tag[1] != "/" else reply.partition(tag)[0])
        for tag, place in zip(order, at, strict=True)
        if place >= 0
    }
    beside = [
        (text.partition("<")[0] if tag[1] != "/" else text.rpartition(">")[2]).strip()
        for tag, text in texts.items()
    ]
    if not once or standing != sorted(standing) or at[1] < 0 or blank or not all(beside):
        return [False] * 5
    outside = re.sub(r"<(think|answer)>[^<]*</\1>", "", reply).strip() == ""
    whole = min(at) >= 0
    return [place >= 0 for place in at] + [whole and outside]


@settings(deadline=None, derandomize=True, max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_grades_are_those_of_the_table(reply: str) -> None:
    expected = sum(keeps(reply)) / 5
    verdict = Format(graded=True).verify(reply, None)
    assert verdict.score == pytest.approx(expected)
    assert list(verdict.parts.values()) == [float(kept) for kept in keeps(reply)]
    assert Format().verify(reply, None).score == float(expected == 1)


def test_all_short_replies_get_full_marks_only_for_the_grammar() -> None:
    form = Format(graded=True)
    full = re.compile(r" ?<think>a</think> ?<answer>a</answer> ?")
    pieces = [*PIECES[:4], "a"]
    for length in range(7):
        for chosen in itertools.product(pieces, repeat=length):
            reply = "".join(chosen)
            assert (form.verify(reply, None).score == 1.0) == bool(full.fullmatch(reply)), reply


@pytest.mark.parametrize(
    ("reply", "graded", "prefilled"),
    [
        ("<think>a</think><answer>b</answer>", 1.0, 1.0),
        ("<think>a</think> so <answer>b</answer>", 0.8, 0.75),
        ("<think>a</think><answer>b</answer> c", 0.8, 0.75),
        ("<think>a</think><answer>b", 0.6, 0.5),
        ("<think>a</think>b</answer>", 0.6, 0.5),
        ("<think>a</think>b", 0.4, 0.25),
        ("<think>a</think><answer></answer>", 0.0, 0.0),
        ("<think>a</think>", 0.0, 0.0),
        ("<think>a<answer>b</answer>", 0.0, 0.0),
        ("<think></think><answer>b</answer>", 0.0, 0.0),
        ("<think>a</think><answer>b</answer><answer>b</answer>", 0.0, 0.0),
    ],
)
def test_the_table_of_grades(reply: str, graded: float, prefilled: float) -> None:
    assert Format(graded=True).verify(reply, None).score == graded
    rest = reply.removeprefix("<think>")
    assert Format(graded=True, prefilled_think=True).verify(rest, None).score == prefilled


def test_other_names_and_any_number_of_tags() -> None:
    three = Format(tags=("plan", "think", "answer"))
    assert three.verify("<plan>a</plan><think>b</think><answer>c</answer>", None).score == 1.0
    assert "<think> comes before <plan>" in three.verify(GOOD, None).reason
    assert Format(tags=["a", "b"]) == Format(tags=("a", "b"))
    names = Format(tags=("solution", "solution-2"))
    assert names.verify("<solution>a</solution><solution-2>b</solution-2>", None).score == 1.0


def test_a_thought_and_a_bare_answer() -> None:
    bare = Format(tags=("think",))
    verdict = bare.verify("<think>6 by 7</think>\n\nIt is <b>42</b>.</s>", None)
    assert (verdict.score, verdict.extracted) == (1.0, "It is <b>42</b>.")
    assert bare.verify("<think>6 by 7</think>\n\n", None).reason == "the answer is empty"
    assert bare.verify("6 by 7</think>42", None).score == 0.0
    prefilled = Format(tags=("think",), prefilled_think=True)
    assert prefilled.verify("6 by 7</think>42", None).score == 1.0
    assert prefilled.verify("<think>6 by 7</think>42", None).score == 0.0


def test_line_feeds_may_be_asked_for() -> None:
    form = Format(line_feeds=True)
    for feed in ("\n", "\r\n"):
        tagged = GOOD.replace("k>6", f"k>{feed}6").replace("7<", f"7{feed}<")
        assert form.verify(tagged, None).reason == "there is no line feed after <answer>"
        whole = tagged.replace("42", f"{feed}42{feed}")
        assert form.verify(whole, None).score == 1.0
    assert Format(line_feeds=True, graded=True).verify(GOOD, None).score == pytest.approx(5 / 6)


@pytest.mark.parametrize("tags", [(), "think", ("think", "Think"), ("<a>",), ("",), (1,), None])
def test_tags_that_are_no_names_are_refused(tags) -> None:
    with pytest.raises(ValueError, match="tags must be one to 20"):
        Format(tags=tags)


def test_many_tags_are_read_in_a_moment() -> None:
    started = time.process_time()
    for piece in ("<think></think>", "<think>", "</answer>", "<"):
        assert Format().verify(piece * 100_000, None).score == 0.0
    assert time.process_time() - started < 10
