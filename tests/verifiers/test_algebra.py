# ruff: noqa: E501  # a row of examples is read as a row
"""Answers in other forms: other names, exact values beside decimals, cases, alternatives, families."""

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Math
from assay.verifiers.maths.conventions import Conventions
from assay.verifiers.maths.equal import same_value

CONVENTIONS = Conventions()


def test_an_integral_is_as_exact_as_a_formula() -> None:
    assert Math().verify(r"\boxed{\int_0^1 (3+10^{-90})\,dx}", "3").score == 0.0
    assert Math().verify(r"\boxed{\int_0^1 3\,dx}", "3").score == 1.0


def test_a_reference_is_no_rounded_value_if_nothing_is() -> None:
    strict = Math(rounded_digits=None)
    assert strict.verify(r"\boxed{\frac{1059}{61}}", "17.36").score == 0.0
    assert strict.verify(r"\boxed{0.5555555555555556}", r"\frac59").score == 1.0


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    st.text(
        alphabet=r"kntxyC0123=<>,.:;|+-()\{}^_ \in\mathbb{Z}\text{ for all }\pi\approx\pm", max_size=50
    ),
    st.sampled_from(
        ("f(x)=x", r"2\pi k, k\in\mathbb{Z}", r"12\pi\approx37.7", r"x<2 \text{ or } x=3", "y=Ce^x", r"\{1\pm\sqrt2\}")
    ),
)  # fmt: skip
def test_hostile_conditions_never_raise(text: str, gold: str) -> None:
    found = same_value(gold, text, CONVENTIONS)
    assert found in {True, False, None}
    assert same_value(gold, text, CONVENTIONS) is found
