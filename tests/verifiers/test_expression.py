# ruff: noqa: E501  # a row of examples is read as a row
"""Formulas: what is one, what differs, and what is left to algebra because readers differ."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Math
from assay.verifiers.maths.conventions import Conventions
from assay.verifiers.maths.equal import compare_answers, comparison


def same(gold: str, answer: str) -> bool | None:
    return compare_answers(gold, answer, comparison(Conventions()))


PERCENT = [
    (r"\frac{50}{3}\sqrt2\%", r"\frac{50\sqrt2}{3}\%", True), (r"\frac{\sqrt2}{2}", r"50\sqrt2\%", True),
    (r"\frac{\sqrt2}{2}\%", r"50\sqrt2", False),
]  # fmt: skip
OPEN = [
    ("f(2x)", "2f(x)"), (r"\frac{x}{2}", "1/2x"), ("x^{10}", "x^10"), (r"\sin^2 x", r"\sin(x)^2"),
    ("2", r"\log 100"), (r"\sqrt{x^2}", "x"), (r"2\ln x", r"\ln(x^2)"), ("x", r"(x^2)^{1/2}"),
    ("-2", r"(-8)^{1/3}"), (r"-x^{1/3}", r"(-x)^{1/3}"), (r"\phi(2)", r"2\phi"), ("y(2)", "2y"),
    ("x^{-1}f", "f^{-1}(x)"), (r"\cos(n\pi)", "(-1)^n"), (r"n\bmod k", r"k\bmod n"), ("n mod k", "k mod n"),
    (r"2\frac{5}{3}", r"\frac{10}{3}"), (r"3^2\frac13", r"\frac{28}{3}"), (r"x", r"\arcsin(\sin x)"),
    (r"\sin x/2", r"\sin(x/2)"), ("a^b^c", "a^{bc}"), ("[x]", "x"), (r"\tan^{-1}x", r"\cot x"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer", "equal"), PERCENT)
def test_shares_that_no_reference_may_be(gold: str, answer: str, equal: bool) -> None:
    assert same(gold, answer) is equal
    assert same(answer, gold) is equal


@pytest.mark.parametrize(("gold", "answer"), OPEN)
def test_what_readers_read_differently_is_never_paid_here(gold: str, answer: str) -> None:
    assert same(gold, answer) is not True


# -- random formulas, written in several styles ------------------------------------------------

LETTERS = ("x", "y", "a", r"\theta", "x_1", "e", "i")


@st.composite
def trees(draw, depth: int = 3):
    kind = draw(
        st.sampled_from(
            ("number", "letter")
            if depth == 0
            else ("number", "letter", "sum", "product", "power", "frac", "sqrt", "sin")
        )
    )
    if kind == "number":
        return ("number", draw(st.integers(1, 40)))
    if kind == "letter":
        return ("letter", draw(st.sampled_from(LETTERS)))
    if kind == "power":
        return ("power", draw(trees(depth - 1)), draw(st.integers(2, 4)))
    if kind in {"sqrt", "sin"}:
        return (kind, draw(trees(depth - 1)))
    return (kind, draw(trees(depth - 1)), draw(trees(depth - 1)))


def written(tree, style: int) -> str:
    """The tree as LaTeX, in one of three styles; turned around in the odd one."""
    kind, *parts = tree
    if kind in {"number", "letter"}:
        return str(parts[0])
    inner = [written(part, style) if isinstance(part, tuple) else str(part) for part in parts]
    if kind == "sum":
        left, right = inner[::-1] if style % 2 else inner
        return rf"\left({left}+{right}\right)" if style == 2 else f"({left} + {right})"
    if kind == "product":
        left, right = inner[::-1] if style % 2 else inner
        times = (r" \cdot ", r"\times ", "*")[style]
        return f"({left}){times}({right})"
    if kind == "power":
        return f"({inner[0]})^{{{inner[1]}}}"
    if kind == "frac":
        return (
            rf"\frac{{{inner[0]}}}{{{inner[1]}}}",
            rf"\dfrac{{{inner[0]}}}{{{inner[1]}}}",
            f"(({inner[0]})/({inner[1]}))",
        )[style]
    return rf"\sqrt{{{inner[0]}}}" if kind == "sqrt" else rf"\sin({inner[0]})"


@settings(deadline=None, derandomize=True, max_examples=300)
@given(trees(), st.sampled_from((1, 2)))
def test_a_formula_equals_itself_in_another_style(tree, style: int) -> None:
    found = same(written(tree, 0), written(tree, style))
    assert found is not False
    if "i" not in written(tree, 0):
        assert found is True or "sqrt" in written(tree, 0)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(trees(), st.sampled_from((0, 1, 2)), st.sampled_from(("+1", "-x", r"\cdot 2", "+10^{-12}")))
def test_a_changed_formula_never_equals(tree, style: int, change: str) -> None:
    gold = written(tree, 0)
    wrong = f"({written(tree, style)}){change}"
    assert same(gold, wrong) is not True


@settings(deadline=None, derandomize=True, max_examples=800)
@given(
    st.text(alphabet=r"0123456789xyi.,/-+=e^_{}()[]|!\frac\sqrt\sum<> $%", max_size=40)
    | st.text(alphabet=r"kntxyC0123=<>,.:;|+-()\{}^_ \in\mathbb{Z}\text{ for all }\pi\approx\pm", max_size=50),
    st.sampled_from(("x", "7", "2x+1", "(1,2)", r"\{1,2\}", "x>3", "x=5", r"3\sqrt{13}", "3:4", "f(x)=x",
                     r"2\pi k, k\in\mathbb{Z}", r"12\pi\approx37.7", r"x<2 \text{ or } x=3", "y=Ce^x", r"\{1\pm\sqrt2\}")),
)  # fmt: skip
def test_comparing_never_raises_and_is_repeatable(text: str, gold: str) -> None:
    first = same(gold, text)
    assert first in {True, False, None}
    assert same(gold, text) is first


def test_an_integral_is_as_exact_as_a_formula() -> None:
    assert Math().verify(r"\boxed{\int_0^1 (3+10^{-90})\,dx}", "3").score == 0.0
    assert Math().verify(r"\boxed{\int_0^1 3\,dx}", "3").score == 1.0


def test_a_reference_is_no_rounded_value_if_nothing_is() -> None:
    strict = Math(rounded_digits=None)
    assert strict.verify(r"\boxed{\frac{1059}{61}}", "17.36").score == 0.0
    assert strict.verify(r"\boxed{0.5555555555555556}", r"\frac59").score == 1.0
