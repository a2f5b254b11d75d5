"""Plain values there and back, and comparison with what a program wrote."""

from __future__ import annotations

import datetime
import enum
import json
import math
from collections import Counter, OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.sandbox.grading.compare import check_tolerance, same_lines, same_output, same_value
from assay.sandbox.guest import arrays, wire
from assay.sandbox.guest.channel import Peer, PeerGone
from assay.sandbox.guest.copies import update
from assay.sandbox.guest.wire import decode, encode

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**30)
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.binary()
    | st.fractions()
    | st.decimals(allow_nan=False)
    | st.datetimes()
    | st.dates()
    | st.timedeltas()
)
KEYS = st.integers() | st.text() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.frozensets(KEYS, max_size=4)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=12,
)


def same_types(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return all(map(same_types, a, b))
    return True


@settings(deadline=None, derandomize=True)
@given(VALUES)
def test_values_come_back_as_they_were(value: object) -> None:
    text = json.dumps(encode(value))
    found = decode(json.loads(text))
    assert found == value
    assert same_types(found, value)
    assert same_value(value, json.loads(text))


@settings(deadline=None, derandomize=True)
@given(VALUES, VALUES)
def test_comparison_is_that_of_python(a: object, b: object) -> None:
    assert same_value(a, json.loads(json.dumps(encode(b)))) == (a == b)


@settings(deadline=None, derandomize=True)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["int", "set", "x"]), inner)
        ),
        max_leaves=8,
    )
)
def test_any_json_is_compared_and_never_raises(data: object) -> None:
    for expected in (1, "a", [1], {1: 2}, {1}, (1,), None, Decimal(1)):
        assert same_value(expected, data) in (True, False)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (namedtuple("P", "x y")(1, 2), (1, 2)),
        (enum.IntEnum("E", "A").A, 1),
        (bytearray(b"x"), bytearray(b"x")),
        (range(1, 9, 2), range(1, 9, 2)),
        (int, int),
        (-0.0, 0.0),
    ],
)
def test_subclasses_travel_as_their_content(value: object, content: object) -> None:
    found = decode(json.loads(json.dumps(encode(value))))
    assert found == content
    assert type(found) is type(content)


def test_the_sign_of_zero_and_infinities_travel() -> None:
    back = decode(json.loads(json.dumps(encode([-0.0, math.inf, math.nan]))))
    assert math.copysign(1, back[0]) == -1
    assert back[1] == math.inf
    assert math.isnan(back[2])


def test_what_is_not_plain_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        encode([object()])
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="deep"):
        encode(endless)


def test_long_numbers_are_not_reduced() -> None:
    """Reducing this fraction would take minutes of the host's time."""
    data = {"Fraction": [{"int": "0x" + "f" * 400_000}, {"int": "0x" + "e" * 400_001}]}
    assert not same_value(1, data)
    assert not same_value(Fraction(1, 2), data)


def test_a_set_of_another_size_is_not_built() -> None:
    colliding = [n * (2**61 - 1) for n in range(50_000)]
    assert not same_value({1, 2}, {"set": colliding})
    assert not same_value({1: 2}, {"dict": [[n, 0] for n in colliding]})


@pytest.mark.parametrize(
    ("printed", "expected", "tolerance", "same"),
    [
        ("1 2\n", "1\n2", None, True),
        ("1 2 3", "1 2", None, False),
        ("1", "1 2", None, False),
        ("", "", None, True),
        ("1.0", "1", None, False),
        ("1.0", "1", 0.0, True),
        ("0.30000000000000004", "0.3", 1e-9, True),
        ("0.31", "0.3", 1e-9, False),
        ("nan", "1", 0.5, False),
        ("inf", "1", 1e-6, False),
        ("1_0", "10", 1e-6, False),
        ("yes", "YES", None, False),
        ("a  b \r\n\r\n", "a b", None, True),
        ("\ta\v\fb", "a b", None, True),
        ("a\u00a0b", "a b", None, False),
        ("a\x1cb", "a b", None, False),
        ("a b", "a\u3000b", 1e-6, False),
        ("\ud800", "\ud800", None, True),
        (" \n", "", None, True),
        ("0", "", 1e-6, False),
        ("", "0", 1e-6, False),
        ("-0", "0", None, False),
        ("-0", "0", 1e-6, True),
        ("-0", "+00", 0.0, True),
        ("-", "0", 0.9, False),
        ("+-1", "-1", 0.9, False),
        ("--1", "1", 0.9, False),
        ("\u0663", "3", 0.9, False),
        ("-0.0", "0", 1e-6, True),
        ("+07", "7", 1e-6, True),
        ("-7", "7", 1e-6, False),
        ("1000000006", "1000000007", 1e-6, False),
        ("1000000006.0", "1000000007", 1e-6, True),
        ("1" * 400, "2" * 400, 1e-6, False),
        ("1" * 5000, "1" * 4999 + "2", 1e-6, False),
        ("1e3", "1000", 0.0, True),
        ("1E+03", "1000", 0.0, True),
        ("1e400", "1e500", 1e-6, False),
        ("1e400", "inf", 1e-6, False),
        ("Infinity", "inf", 1e-6, True),
        ("-inf", "inf", 1e-6, False),
        ("-nan", "NaN", 1e-6, True),
        ("nan", "nan", None, True),
        ("\u0661", "1", 1e-6, False),
        ("\uff11.0", "1", 1e-6, False),
        ("0x10", "16", 1e-6, False),
        ("1,5", "1.5", 1e-6, False),
    ],
)
def test_output(printed: str, expected: str, tolerance: float | None, same: bool) -> None:
    assert same_output(printed, expected, tolerance) is same


@settings(deadline=None, derandomize=True)
@given(st.integers(), st.integers(), st.sampled_from([0.0, 1e-9, 0.5]))
def test_integers_that_differ_are_never_close(a: int, b: int, tolerance: float) -> None:
    assert same_output(str(a), str(b), tolerance) is (a == b)


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("a b\n", "a b", True),
        ("a b  \r\n\n", "a b\n", True),
        ("a  b", "a b", False),
        (" a", "a", False),
        ("a\n\nb", "a\nb", False),
        ("a\nb", "a b", False),
        ("", "\n", True),
        ("\na", "a", False),
    ],
)
def test_lines(printed: str, expected: str, same: bool) -> None:
    assert same_lines(printed, expected) is same


@pytest.mark.parametrize("tolerance", [-1e-9, 1, 5.0, math.inf, math.nan])
def test_a_tolerance_that_accepts_anything_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must be from 0"):
        check_tolerance(tolerance)


@pytest.mark.parametrize(
    ("expected", "value", "tolerance", "same"),
    [
        (math.nan, math.nan, None, True),
        ([{"a": (math.nan,)}], [{"a": (math.nan,)}], None, True),
        (math.nan, 1.0, 0.5, False),
        (1.0, math.nan, 0.5, False),
        (None, math.nan, 0.5, False),
        (math.inf, -math.inf, 0.5, False),
        (1, True, None, True),
        ("1", 1, None, False),
        (b"a", "a", None, False),
        ([1], (1,), None, False),
        ({1}, [1], None, False),
        ({1}, frozenset([1]), None, True),
        ({"a": [0.3]}, {"a": [0.1 + 0.2]}, 1e-9, True),
        (((0.3,),), ((0.1 + 0.2,),), None, False),
        (3, 3.0000000001, 1e-9, True),
        (3, 3.0000000001, None, False),
        (3000000000, 3000000001, 1e-6, False),
        (10**400, 1e300, 1e-6, False),
        (True, 1.0000000001, 1e-6, False),
        ("0.3", "0.30000000000000004", 1e-9, False),
        ({0.3}, {0.1 + 0.2}, 1e-9, False),
    ],
)
def test_values(expected: object, value: object, tolerance: float | None, same: bool) -> None:
    assert same_value(expected, encode(value), tolerance) is same


@pytest.mark.parametrize(
    ("expected", "value", "same"),
    [
        ([1, [2]], (1, (2,)), True),
        ([1, 2], {1, 2}, False),
        ({"1": 2}, {1: 2}, True),
        ({"1.5": 2, "null": 0, "true": 1}, {1.5: 2, None: 0, True: 1}, True),
        ({1: [2]}, {1: (2,)}, True),
        ({"1": 2}, {"2": 2}, False),
        ({"1": 2}, {1: 2, "1": 2}, False),
        ("12", ("1", "2"), False),
    ],
)
def test_values_read_from_json(expected: object, value: object, same: bool) -> None:
    assert same_value(expected, encode(value), from_json=True) is same
    assert same is False or expected == {1: [2]} or not same_value(expected, encode(value))


def test_dates_travel() -> None:
    now = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    assert decode(encode(now)) == now


MEMBERS = st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5, True, "1", 2**61 - 1, 2**62])


@settings(deadline=None, derandomize=True)
@given(expected=st.sets(MEMBERS, max_size=4), printed=st.lists(MEMBERS, max_size=5))
def test_sets_and_keys_are_equal_as_python_has_it(expected, printed) -> None:
    assert same_value(expected, {"set": printed}) is (
        len(printed) == len(expected) and set(printed) == expected
    )
    pairs = [[item, place] for place, item in enumerate(printed)]
    known = dict.fromkeys(expected, 0) | {k: v for k, v in map(tuple, pairs) if k in expected}
    assert same_value(known, {"dict": pairs}) is (
        len(printed) == len(expected) and set(printed) == expected
    )


def test_arrays_stay_arrays_where_both_ends_have_numpy(monkeypatch) -> None:
    numpy = pytest.importorskip("numpy")
    peer = Peer(-1, None)
    assert peer.decode(peer.encode(numpy.array([1, 2]))) == [1, 2]
    monkeypatch.setattr(wire, "LIBRARIES", {"numpy"})
    monkeypatch.setattr(arrays, "LIBRARIES", wire.LIBRARIES)
    for array in (
        *(numpy.zeros((0, 3)), numpy.array(3.0), numpy.arange(6).reshape(2, 3).T),
        *(numpy.array(["ab", "c"]), numpy.array(["2024-01-02"], "M8[D]"), numpy.array([True])),
    ):
        found = peer.decode(peer.encode([array]))[0]
        assert (type(found), found.flags.writeable) == (numpy.ndarray, True)
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert (found == array).all()
    for value in (numpy.float32(0.5), numpy.datetime64("2024-01-02"), numpy.str_("a")):
        found = peer.decode(peer.encode(value))
        assert (type(found), found) == (type(value), value)
    objects = peer.decode(peer.encode(numpy.array([[1, "a"]], object)))
    assert (objects.dtype, objects.tolist()) == (object, [[1, "a"]])
    assert peer.decode({"ndarray": ["|b1", [2], "0200"]}).tobytes() == b"\1\0"
    assert peer.decode(peer.encode(numpy.dtype("f4"))) == numpy.float32
    assert peer.decode(peer.encode(numpy.float32)) is numpy.float32
    with pytest.raises(PeerGone):
        peer.decode({"numpy class": "load"})
    old = numpy.zeros(2)
    update(old, numpy.ones(3))
    assert old.tolist() == [0, 0]
    update(old, numpy.ones(2))
    assert old.tolist() == [1, 1]
    for forged in (["|O8", [1], "00" * 8], ["<f8", [9], "00"], ["<f8", [2, -1], ""], ["f8", 1], []):
        with pytest.raises(PeerGone):
            peer.decode({"ndarray": forged})
