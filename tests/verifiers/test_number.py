"""Numbers are what is written, and one value is one number however it is written."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers.maths.expression import read_expression
from assay.verifiers.maths.number import read_number
from assay.verifiers.puzzles.exact_number import to_exact


def exact_value(text: str) -> Fraction | None:
    tree = read_expression(text)
    return tree.value if tree is not None and tree.kind == "number" else None


@pytest.mark.parametrize(
    "text",
    ["", "x", "5x", "5xy", "5i", "1,2", "12,34", "1 2", "3:2", "7_8", "1/0", r"\frac{1}{0}",
     "1e999999999", r"10^{999999999}", r"7 \text{ is wrong}", "7 or 8", "not 7", "--5", "5-3",
     "7?", "$", "%", r"\frac{1}{", "NaN", "inf", "٣"],
)  # fmt: skip
def test_what_is_no_number_is_none(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("2+3", 5), ("2^{10}", 1024), (r"6\times7", 42), ("2(3+4)", 14), (r"\frac{2+4}{3}", 2),
     ("-2^2", -4), ("(-2)^2", 4), ("7-3-2", 2), ("12/4/3", 1), ("2^{-1}", "1/2"), ("3*-2", -6),
     ("5!", 120),     ("1,000+1", 1001)],
)  # fmt: skip
def test_plain_arithmetic_has_an_exact_value(text: str, value: int | str) -> None:
    assert exact_value(text) == Fraction(value)


@pytest.mark.parametrize(
    "text",
    ["", "x", "2+", "(2", "2)", "1/0", "0^{-1}", "2^10", "9^{9^{9^{9}}}", "2^{9999999}", "2 3",
     "(" * 300 + "1" + ")" * 300, "2^{1/2}", r"\sqrt{4}", "1+" * 500 + "1", "1/2(3)",
     "0^0"],
)  # fmt: skip
def test_other_texts_have_none(text: str) -> None:
    assert exact_value(text) is None


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.fractions())
def test_every_fraction_is_read_back(value: Fraction) -> None:
    sign = "-" if value < 0 else ""
    text = rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    number = read_number(text)
    assert number is not None
    assert number.value == value
    assert exact_value(text) == value


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.text(alphabet=r"0123456789.,/-+eE^{}()\fractimes $%_ ", max_size=60))
def test_reading_never_raises(text: str) -> None:
    read_number(text)
    exact_value(text)


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
