"""Comparing with a tolerance: which words are one number, whatever their spelling."""

import math
import re

from hypothesis import example, given
from hypothesis import strategies as st

from assay.sandbox.grading.compare import same_output, same_value

INTEGER = re.compile(r"([+-]?)0*([0-9]+)")
SPECIAL = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
words = st.text("0019+-.e_ni", min_size=1, max_size=8) | st.sampled_from(
    ["1e400", "-1e400", "inf", "-inf", "nan", "+NaN", "Infinity", "٣", "1_0", "0" * 20, "-00", "+0"]
)


def by_pattern(printed: str, expected: str, tolerance: float) -> bool:
    """The rule by regular expressions, whose time is the square of a run of zeros."""
    if printed == expected:
        return True
    if not (printed + expected).isascii():
        return False
    integers = INTEGER.fullmatch(printed), INTEGER.fullmatch(expected)
    if integers[0] and integers[1]:
        (sign, digits), (other_sign, other_digits) = integers[0].groups(), integers[1].groups()
        return digits == other_digits and (digits == "0" or (sign == "-") == (other_sign == "-"))
    try:
        one, other = (math.nan if "_" in word else float(word) for word in (printed, expected))
    except ValueError:
        return False
    if math.isfinite(one) and math.isfinite(other):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    said = SPECIAL.fullmatch(printed) and SPECIAL.fullmatch(expected)
    return bool(said) and (one == other or (math.isnan(one) and math.isnan(other)))


@given(printed=words, expected=words, tolerance=st.sampled_from([0.0, 1e-6, 0.1, 0.9]))
@example(printed="-0", expected="+00", tolerance=0.0)
@example(printed="-", expected="0", tolerance=0.9)
@example(printed="+-1", expected="-1", tolerance=0.9)
@example(printed="--1", expected="1", tolerance=0.9)
def test_words_are_the_same_as_by_the_pattern(printed, expected, tolerance) -> None:
    assert same_output(printed, expected, tolerance) is by_pattern(printed, expected, tolerance)


members = st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5, True, "1", 2**61 - 1, 2**62])


@given(expected=st.sets(members, max_size=4), printed=st.lists(members, max_size=5))
def test_sets_and_keys_are_equal_as_python_has_it(expected, printed) -> None:
    assert same_value(expected, {"set": printed}) is (
        len(printed) == len(expected) and set(printed) == expected
    )
    pairs = [[item, place] for place, item in enumerate(printed)]
    known = dict.fromkeys(expected, 0) | {k: v for k, v in map(tuple, pairs) if k in expected}
    assert same_value(known, {"dict": pairs}) is (
        len(printed) == len(expected) and set(printed) == expected
    )
