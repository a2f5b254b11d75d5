# ruff: noqa: E501  # a row of examples is read as a row
"""Formulas: what is one, what differs, and what is left to algebra because readers differ."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers.maths.conventions import Conventions
from assay.verifiers.maths.equal import same_value

CONVENTIONS = Conventions()


def same(gold: str, answer: str) -> bool | None:
    return same_value(gold, answer, CONVENTIONS)


SAME = [
    ("2x+3", "3+2x"), ("x^{10}", "x^{5}x^{5}"), (r"\sin^2 x", r"1-\cos^2 x"),
    (r"\sin^{-1} x", r"\arcsin x"), (r"\sin 2x", r"2\sin x\cos x"), (r"\tan x", r"\frac{\sin x}{\cos x}"),
    (r"\log_2 8", "3"), (r"\log_{10} 1000", "3"), (r"\frac{\log 8}{\log 2}", "3"),
    (r"\lg 100", "2"), (r"\frac{\ln 8}{\ln 2}", "3"), (r"e^{i\pi}", "-1"), (r"2e^{i\pi/3}", r"1+\sqrt3 i"),
    (r"2(\cos 60^\circ + i\sin 60^\circ)", r"1+\sqrt{3}i"), (r"2\,\text{cis}\, 60^\circ", r"1+i\sqrt3"),
    (r"\sin 30^\circ", r"\frac12"), (r"\sqrt{-4}", "2i"), ("(1+i)^2", "2i"), (r"\frac{1}{i}", "-i"),
    (r"\sqrt[3]{-8}", "-2"), (r"\sqrt[3]{16}", r"2\sqrt[3]{2}"), (r"\sqrt[3]{x^4}", r"x\sqrt[3]{x}"),
    (r"\sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5}", "1"), (r"|x|", r"\sqrt{x^2}"), ("2|x-1|", "|2-2x|"),
    (r"\lfloor 3.7\rfloor", "3"), (r"\lceil x\rceil", r"-\lfloor -x\rfloor"),
    (r"\sum_{k=1}^{10}k", "55"), (r"\sum_{k=1}^{10} k", r"\frac{10\cdot 11}{2}"),
    (r"\sum_{k=0}^{3} x^k", "1+x+x^2+x^3"), (r"\prod_{k=1}^{5} k", "120"), (r"\sum_{k=1}^{3}2k+1", "13"),
    (r"\frac{10!}{7!3!}", r"\binom{10}{7}"), (r"{10 \choose 3}", "120"), (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
    ("(n+1)!", "(n+1)n!"), (r"\frac{n!}{(n-2)!}", "n(n-1)"), ("1000!", r"1000\cdot 999!"),
    (r"10{,}000\pi", r"10000\pi"), (r"10,000\pi", r"10000\pi"), (r"1\,200x", "1200x"), ("3{,}5", "3.5"),
    (r"0.5x", r"\frac{x}{2}"), (r"2\frac{1}{3}", r"\frac73"), (r"-2\frac13", r"-\frac73"),
    (r"x_1+x_2", "x_2+x_{1}"), (r"v^2_0", "v_0^2"), (r"x'+1", r"1+x^{\prime}"), (r"\theta^2", r"\theta\cdot\theta"),
    (r"16\pi\text{ cm}^2", r"16\pi"), (r"\frac{50}{3}\sqrt2\%", r"\frac{50\sqrt2}{3}\%"),
    (r"\frac{\sqrt2}{2}", r"50\sqrt2\%"), ("sqrt(2)/2", r"\frac{\sqrt 2}{2}"), ("2sinx", r"2\sin x"),
    (r"10^{-20}x", r"\frac{x}{10^{20}}"), (r"\operatorname{arctan} x", r"\arctan x"),
    (r"\sqrt{2}^{\sqrt 2}", r"2^{\sqrt2/2}"), (r"\frac{1}{2004!}", r"\frac{1}{2004\cdot 2003!}"),
]  # fmt: skip

DIFFERENT = [
    ("2x+3", "2x-3"), ("x^2", "x^3"), (r"\sin x", r"\cos x"), ("x+1", "y+1"), ("a", "A"), ("x_1", "x_2"),
    ("x'", "x"), (r"10^{-20}+x", r"10^{-21}+x"), (r"10^{-20}\pi", r"10^{-21}\pi"), (r"\pi", r"3.14159265358979323846264338\pi/\pi"),
    ("0", "e^{-100}"), ("0", r"\frac{1}{2004!}"), ("1", "1+e^{-100}"), ("0", r"\sin(10^{-40})"), ("7", r"\frac{0}{0}"),
    ("1", "0^0"), ("7", r"\frac{7}{0}"), ("7", r"9^{9^{9^{9}}}"), ("7", "(10!)!"), ("7", r"10^{10^{10^{10}}}"),
    (r"10^{10}", r"10^{10^{10}}"), (r"\lceil x\rceil", r"\lfloor x\rfloor+1"), ("3+4i", "3-4i"), ("i", "-i"),
    (r"\sum_{k=1}^{10}k", "54"), (r"\binom{10}{3}", r"\binom{10}{4}"), ("n!", "(n+1)!"), ("x", "x!"),
    (r"10{,}000\pi", r"10\pi"), ("3{,}5", "35"), ("0,500", "500"), (r"2\frac13", r"\frac23"),
    (r"\frac{\sqrt2}{2}\%", r"50\sqrt2"), (r"16\pi\text{ cm}", r"16\pi\text{ m}"),
    (r"\infty", r"-\infty"), ("7", r"\infty"), (r"\infty", "100"), ("2007", "2024-05-12"),
    (r"\frac{1}{x}", r"\frac{1}{x+10^{-15}}"), (r"\sqrt{2}", r"1.41421356237309504880168872420969807\cdot 1.0"),
]  # fmt: skip

OPEN = [
    ("f(2x)", "2f(x)"), (r"\frac{x}{2}", "1/2x"), ("x^{10}", "x^10"), (r"\sin^2 x", r"\sin(x)^2"),
    ("2", r"\log 100"), (r"\sqrt{x^2}", "x"), (r"2\ln x", r"\ln(x^2)"), ("x", r"(x^2)^{1/2}"),
    ("-2", r"(-8)^{1/3}"), (r"-x^{1/3}", r"(-x)^{1/3}"), (r"\phi(2)", r"2\phi"), ("y(2)", "2y"),
    ("x^{-1}f", "f^{-1}(x)"), (r"\cos(n\pi)", "(-1)^n"), (r"n\bmod k", r"k\bmod n"), ("n mod k", "k mod n"),
    (r"2\frac{5}{3}", r"\frac{10}{3}"), (r"3^2\frac13", r"\frac{28}{3}"), (r"x", r"\arcsin(\sin x)"),
    (r"\sin x/2", r"\sin(x/2)"), ("a^b^c", "a^{bc}"), ("[x]", "x"), (r"\tan^{-1}x", r"\cot x"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_one_formula_in_two_forms(gold: str, answer: str) -> None:
    assert same(gold, answer) is True
    assert same(answer, gold) is True


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_two_formulas(gold: str, answer: str) -> None:
    assert same(gold, answer) is False


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


@settings(deadline=None, derandomize=True, max_examples=500)
@given(
    st.text(alphabet=r"0123456789xyi.,/-+=e^_{}()[]|!\frac\sqrt\sum<> $%", max_size=40),
    st.sampled_from(("x", "7", "2x+1", "(1,2)", r"\{1,2\}", "x>3", "x=5", r"3\sqrt{13}", "3:4")),
)
def test_comparing_never_raises_and_is_repeatable(text: str, gold: str) -> None:
    first = same(gold, text)
    assert first in {True, False, None}
    assert same(gold, text) is first
