"""Strict JSON: what is read, what is refused, and where a reply's JSON is."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assay.verifiers import JsonFields, Status
from assay.verifiers.form.json_text import NotJson, as_json, hashable_json, read_json

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(
        st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=150)
@given(value=values, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_what_json_writes_is_read(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert read_json(text) == value
    assert as_json(value) == value


REFUSED = {
    "": "not JSON", "{": "not JSON", "[1,]": "not JSON", '{"a": 1,}': "not JSON",
    "{'a': 1}": "not JSON", "{a: 1}": "not JSON", "[1] // one": "Extra data",
    "[1] [2]": "Extra data", "[1]]": "Extra data", "[01]": "not JSON", "[+1]": "not JSON",
    "[.5]": "not JSON", "[1.]": "not JSON", "[0x1F]": "not JSON", "[1_000]": "not JSON",
    "[True]": "not JSON", "[NaN]": "NaN", "[-Infinity]": "-Infinity", "[1e999999]": "out of range",
    "[-1e309]": "out of range", "[1e-999999]": "out of range", '["a\nb"]': "Invalid control",
    '["\\x41"]': "Invalid", '["\\ud800"]': "surrogate", '["\ud800"]': "surrogate",
    '{"\\udc00": 1}': "surrogate", '{"a": 1, "a": 1}': "twice",
    '[{"b": {"a": 1, "c": 2, "\\u0061": 3}}]': "twice", "[" + "9" * 1001 + "]": "1000 digits",
    "[" + "9" * 10**5 + "]": "longer", "[" * 65 + "]" * 65: "deeper", "[" * 90_000: "deeper",
    '{"a":' * 15_000: "deeper", '["' + "\\" * 90_001: "not JSON", '"' + '\\"' * 45_000: "not JSON",
    "\u00a0[1]": "not JSON",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:20]))
def test_what_is_no_strict_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson, match=REFUSED[text]):
        read_json(text)


READ = {
    "\ufeff[1]": [1], "\r\n [1]\t\r\n": [1], '["\\ud83d\\ude00"]': ["😀"], '["\\u0000"]': ["\0"],
    '["[[[[{{{{"]': ["[[[[{{{{"], '["\\\\", "\\"["]': ["\\", '"['], "[-0, -0.0, 0e9]": [0, 0, 0],
    "[" * 64 + "1" + "]" * 64: None, "[" + "9" * 1000 + "]": [int("9" * 1000)],
}  # fmt: skip


@pytest.mark.parametrize("text", READ, ids=lambda text: repr(text[:20]))
def test_what_is_odd_but_json_is_read(text: str) -> None:
    expected = READ[text]
    assert expected is None or read_json(text) == expected
    assert read_json(text) is not None


def test_equal_values_are_equal_as_json_has_it() -> None:
    assert hashable_json(1) == hashable_json(1.0)
    assert hashable_json({"a": [1, 2], "b": None}) == hashable_json({"b": None, "a": [1.0, 2]})
    for a, b in ((True, 1), (False, 0), (None, 0), (None, False), ("1", 1), ([], {}), ([1], 1)):
        assert hashable_json(a) != hashable_json(b)
    assert hashable_json([True]) != hashable_json([1])
    assert hashable_json(10**30) != hashable_json(10**30 + 1)


GOLD = {"a": 1, "b": {"c": "x y", "d": [True, None]}, "e": []}  # leaves: 1, "x y", true, null, []


@pytest.mark.parametrize(
    ("given", "score"),
    [
        (GOLD, 1.0),
        ({**GOLD, "a": 2}, 8 / 10),
        ({**GOLD, "a": "1"}, 8 / 10),
        ({**GOLD, "a": True}, 8 / 10),
        ({**GOLD, "extra": 1}, 10 / 11),
        ({**GOLD, "extra": [1, 2, 3]}, 10 / 13),
        ({"a": 1}, 2 / 6),
        ({"a": 1, **{f"k{i}": i for i in range(19)}}, 2 / 25),
        ({"a": 1, **{f"k{i}": i for i in range(20)}}, 0.0),  # a dump
        ({"b": {"d": [False, None]}, "e": []}, 0.0),  # what agrees says nothing
        ({"b": {"d": [None, True]}}, 0.0),
        ({}, 0.0),
        ([GOLD], 0.0),
    ],
)
def test_fields_are_paid_by_f1(given: Any, score: float) -> None:
    verdict = JsonFields().verify(json.dumps(given), GOLD)
    assert verdict.score == pytest.approx(score)
    whole = JsonFields(all_or_nothing=True).verify(json.dumps(given), GOLD)
    assert whole.score == math.floor(score)


@pytest.mark.parametrize(
    ("given", "score"),
    [
        ({"a": 1, "n": None, "in": [{"x": 2, "m": None}]}, 1.0),
        ({"a": 1, "in": [{"x": 2}]}, 1.0),
        ({"a": 1, "n": 3, "in": [{"x": 2}]}, 4 / 6),
        ({"a": 1}, 2 / 4),  # of in[0] it says nothing
        ({"in": []}, 0.0),
        ({}, 0.0),
    ],
)
def test_a_field_whose_reference_is_null_may_be_left_out(given: Any, score: float) -> None:
    """A column of Parquet gives each record the fields of all others, as null."""
    gold = {"a": 1, "n": None, "in": [{"x": 2, "m": None}]}
    assert JsonFields().verify(json.dumps(given), gold).score == pytest.approx(score)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(gold=st.dictionaries(st.text("ab"), values, min_size=1, max_size=4), other=values)
@example(gold={"a": -0.0}, other={"a": 0})
def test_a_record_equals_itself_and_what_json_says_is_equal(gold: Any, other: Any) -> None:
    fields = JsonFields()
    if fields.check_reference(gold) is not None:
        return
    assert fields.verify(json.dumps(gold), gold).score == 1.0
    verdict = fields.verify(json.dumps(other), gold)
    if not isinstance(other, dict):
        assert verdict.score == 0.0
    elif hashable_json(other) == hashable_json(gold):
        assert verdict.status is Status.CORRECT
