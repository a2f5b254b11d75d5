"""Numbers are what is written, and one value is one number however it is written."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.verifiers.puzzles.exact_number import to_exact


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (0.1, Fraction(1, 10)), ("0.10", Fraction(1, 10)), ("-3", -3), ("+3", 3), ("3.", 3),
        (".5", Fraction(1, 2)), ("2e3", 2000), (7.0, 7), (10**40, 10**40),
    ],
)  # fmt: skip
def test_it_is_what_is_written(written, value) -> None:
    assert to_exact(written) == value


@given(st.integers())
def test_a_whole_number_is_one_key_however_it_is_written(n) -> None:
    assert len({to_exact(n), to_exact(str(n)), to_exact(f"{n}.0"), Fraction(n)}) == 1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_float_is_rounded(x) -> None:
    assert to_exact(x) == Fraction(repr(x))


@pytest.mark.parametrize("text", ["", "-", "--3", "²", "1,000", "three"])
def test_a_text_that_is_no_number_is_refused(text) -> None:
    with pytest.raises(ValueError, match="Invalid literal"):
        to_exact(text)
