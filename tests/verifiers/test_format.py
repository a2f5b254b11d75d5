import itertools
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Format

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


def test_many_tags_are_read_in_a_moment() -> None:
    started = time.process_time()
    for piece in ("<think></think>", "<think>", "</answer>", "<"):
        assert Format().verify(piece * 100_000, None).score == 0.0
    assert time.process_time() - started < 10
