import itertools
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Boxed, Citations, Format
from assay.verifiers.form.citations import (
    contains_quotation,
    normalize_quote,
    quotations,
    shield_quotations,
)

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


def test_a_thought_and_a_bare_answer() -> None:
    bare = Format(tags=("think",))
    verdict = bare.verify("<think>6 by 7</think>\n\nIt is <b>42</b>.</s>", None)
    assert (verdict.score, verdict.extracted) == (1.0, "It is <b>42</b>.")
    assert bare.verify("<think>6 by 7</think>\n\n", None).reason == "the answer is empty"
    assert bare.verify("6 by 7</think>42", None).score == 0.0
    prefilled = Format(tags=("think",), prefilled_think=True)
    assert prefilled.verify("6 by 7</think>42", None).score == 1.0
    assert prefilled.verify("<think>6 by 7</think>42", None).score == 0.0


def test_a_list_of_tags_is_as_good_as_a_tuple() -> None:
    assert Format(tags=["a", "b"]) == Format(tags=("a", "b"))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    st.lists(st.sampled_from(["a", "b", "7", " ", "\n", ".", "$"]), max_size=8), st.integers(0, 4)
)
def test_only_the_right_number_of_boxes_wins(words: list[str], number: int) -> None:
    reply = "".join(words) + r"\boxed{4}, ".join([""] * (number + 1))
    for count in (1, 2, 3):
        assert Boxed(count=count).verify(reply, None).score == float(number == count)


SOURCES = {
    "sources": [
        "Water boils at 100 °C at sea level. It is heated until the vapour escapes.",
        "Ice floats on\n water, because it's lighter.",
        "Steam burns.",
    ]
}


def test_quotations_are_read_whole() -> None:
    text = shield_quotations('He said: “It is so. Is it?” And «that!» Then "a b" of a 3" bar.')
    assert quotations(text) == ["It is so. Is it?", "that!", "a b"]
    assert quotations(shield_quotations('"a" and "b"')) == ["a", "b"]


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=12), st.data())
def test_whatever_words_are_copied_are_held(source: list[str], data: st.DataObject) -> None:
    left, right = sorted(data.draw(st.tuples(*[st.integers(0, len(source))] * 2)))
    whole = " \n".join(source)
    assert contains_quotation(normalize_quote(whole), " ".join(source[left:right]))
    assert not contains_quotation(normalize_quote(whole), whole + " d")
    assert not contains_quotation(normalize_quote(whole), whole + "d")


def test_a_quotation_ends_where_words_of_its_source_do() -> None:
    source = normalize_quote("Water boils at 100 °C. 水在一百度沸腾。")
    assert contains_quotation(source, "water ... at 100 °C")
    assert contains_quotation(source, "在一百度")
    assert not contains_quotation(source, "water boils at 10")
    assert not contains_quotation(source, "ater boils at 100")
    assert not contains_quotation(source, "the ... b ... 100")


def test_long_quotations_are_looked_up_in_a_moment() -> None:
    sources = {"sources": ["ab " * 30_000 + "x", *["a" * 30_000] * 9]}
    quote = '"' + "ab " * 600 + 'y" '
    started = time.process_time()
    assert Citations(most=9).verify(f"{quote} [1-9]. " * 40, sources).score == 0.0
    assert Citations().verify('"a a b b" [1]. ' * 200, sources).reason == "more than 50 quotations"
    assert time.process_time() - started < 40
