# ruff: noqa: E501  # a row of examples is read as a row
"""Answers in other forms: other names, exact values beside decimals, cases, alternatives, families."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Math, Status
from assay.verifiers.maths.conventions import Conventions
from assay.verifiers.maths.equal import same_value

CONVENTIONS = Conventions()

SAME = [
    # spelling
    (r"\frac{\theta}{6}", r"\frac \theta6"), (r"\frac{2}{\pi}", r"\frac2\pi"), (r"\sqrt{\theta}", r"\sqrt\theta"),
    (r"\frac{\sqrt{7}}{5}", r"\frac{\sqrt{7}}5"), ("4500", r"4,\! 500"), (r"\frac{3}{8}", "⅜"), (r"\frac{27}{4}", "6¾"),
    ("x^{15}", "x¹⁵"), ("7", "⑦"), ("2,5", "②⑤"), (r"3\sqrt{6}", r"3\surd6"), (r"\theta^2", "θ²"),
    (r"\binom{9}{4}", "C(9,4)"), ("84", "C_9^3"), ("84", r"{}_9C_3"), ("312_7", r"312_{\text{seven}}"),
    ("312_7", r"312 \text{ base } 7"), ("312_7", "312 (base seven)"), ("105", "7!!"),
    # doubles, as languages print them
    (r"\frac{5}{9}", "0.5555555555555556"), (r"\sqrt{7}", "2.6457513110645907"), ("0.7", "0.7000000000000001"),
    (r"\frac{1}{70000}", "1.4285714285714285e-05"),
    # an exact value and its decimal
    (r"9\pi", r"9\pi \approx 28.27"), (r"9\pi", r"A=9\pi\approx 28.3\text{ cm}^2"), (r"\frac{4}{7}", r"\frac47\approx57.1\%"),
    ("23", r"n \approx 23"), (r"9\pi \approx 28.3", r"9\pi"), ("28.3", r"9\pi"), ("17.36", r"\frac{1059}{61}"),
    (r"2+\sqrt3,2-\sqrt3", r"2+\sqrt3\approx3.73,2-\sqrt3\approx0.27"),
    # names that an answer binds
    ("g(x)=x^3", "g(u)=u^3"), ("f(m,n)=m-2n", "f(a,b)=a-2b"), ("h(x)=5x", r"h(x)=5x \text{ for all real } x"),
    ("h(x)=5x", r"x\mapsto 5x"), ("f(x)=3", r"f\equiv 3"), ("f(x)=0, f(x)=x+4", "f(s)=s+4, f(s)=0"), ("f(x)=ax", "f(x)=kx"),
    (r"3\pi k", r"3\pi m, m \in \mathbb{Z}"), (r"3\pi k, k\in\mathbb{Z}", r"3\pi m"),
    (r"\frac{\pi}{5}+2k\pi", r"x=\frac{\pi}{5}+2n\pi \text{ where } n \text{ is an integer}"), ("(4t,t)", "(4s,s)"),
    ("y=Ce^{-4x}", "y=Ke^{-4x}"), (r"\{3k+2: k\in\mathbb{Z}\}", r"\{3m+2 \mid m\in\mathbb{Z}\}"),
    (r"\frac{x^4}{4}+C", r"\frac14x^4+c"), (r"\sum_{k=1}^{n} \frac{1}{k^2}", r"\sum_{j=1}^n \frac{1}{j^2}"),
    (r"y=\sqrt{x-2}, x\ge 2", r"y=\sqrt{x-2}"), ("n^3 \\text{ for } n\\ge 1", "n^3"), ("n\\ge 6", r"\text{all integers } n \ge 6"),
    # signs, alternatives, chains, cases
    (r"\{2\pm\sqrt7,4\}", r"\{4,2+\sqrt7,2-\sqrt7\}"), (r"(\pm3,\pm1)", "(3,1),(-3,-1),(3,-1),(-3,1)"),
    (r"\pm2\pm\sqrt3", r"2+\sqrt3,2-\sqrt3,-2+\sqrt3,-2-\sqrt3"), (r"x<-4 \text{ or } x=3", r"(-\infty,-4)\cup\{3\}"),
    (r"x<-4 \text{ or } 0<x<1 \text{ or } x>3", r"(-\infty,-4)\cup(0,1)\cup(3,\infty)"), ("[-5,5]", r"|x|\le 5"),
    ("|x-1|>4", r"(-\infty,-3)\cup(5,\infty)"), ("p=q=4", "q=4,p=4"), ("(p,q)=(4,4)", "p=q=4"), (r"\{(2,7)\}", "(2,7)"),
    (r"\begin{cases}x^2&x\ge1\\2x&x<1\end{cases}", r"\begin{cases}2x, & \text{if } x<1\\x^2, & \text{otherwise}\end{cases}"),
    ("x=6,y=8", r"\begin{cases}x=6\\y=8\end{cases}"),
    # functions of whole numbers
    (r"\lfloor\frac{n+2}{3}\rfloor", r"\lceil\frac{n}{3}\rceil"), (r"\gcd(m,n)+1", r"1+\gcd(n,m)"), (r"\max\{a,b\}", r"\max(b,a)"),
    (r"\{0,2,\ldots,20\}", r"\{0,2,\dots,20\}"), (r"v\sin\theta/g", r"\frac{v\sin\theta}{g}"), ("xy=15", r"y=\frac{15}{x}"),
]  # fmt: skip

DIFFERENT = [
    ("4500", r"4,\! 501"), ("25", "②⑤"), ("10", "②⑤"), (r"\binom{9}{4}", "C(4,9)"), ("312_7", r"312_{\text{eight}}"), ("105", "8!!"),
    (r"\frac{5}{9}", "0.5555555555"), (r"\sqrt{7}", "2.6457513110645999"), ("0.7", "0.70000000000001"), ("0", "1.1102230246251565e-16"),
    ("987654321987654321", "9.876543219876544e+17"),
    (r"9\pi", r"9\pi \approx 28.37"), (r"9\pi", r"8\pi\approx 28.27"), ("5", r"5 \approx 6"), ("5", r"4 \approx 5"), ("23", r"n\approx 24"),
    (r"9\pi\text{ cm}", r"9\pi \approx 28.27\text{ m}"), (r"\frac{1059}{61}", "17.36"), ("17.36", r"\frac{1058}{61}"), ("17.36", "17.3601"),
    ("12", r"\frac{37}{3}"), ("3.14", r"\frac{25}{8}"),
    ("g(x)=x^3", "g(u)=x^3"), ("g(x)=x+a", "g(a)=a+x+1"), ("f(m,n)=m-2n", "f(a,b)=b-2a"), ("f(x)=ax+b", "f(x)=bx+a"), ("f(x)=cx", "f(x)=x"),
    ("f(x)=x", r"f(x)=x \text{ for some } x"), ("f(x)=x", r"f(x)=x \text{ for } x>2"), ("8", r"8 \text{ if } x>0"), ("x^3", "x^3, x>1"),
    ("x^3, x>1", "x^3, x<1"), (r"3\pi k", r"\pi m"), (r"3\pi k", r"3\pi m+1"), ("5x", "5y"), (r"\frac{n(n-1)}{2}", r"\frac{k(k-1)}{2}"),
    (r"2k, k\in\mathbb{Z}", r"2m, m\in\mathbb{N}"), ("(t,3t)", "(3s,s)"), ("y=Ce^{-4x}", "y=e^{-4x}"), ("y=Ce^{-4x}", "y=Ce^{-4t}"),
    (r"\frac{x^4}{4}+C", r"\frac{x^4}{4}"), (r"x<-4 \text{ or } x=3", "x=3"), (r"x<-4 \text{ or } x=3", "x<-4"), ("x>1,x<5", "x>1"),
    (r"\{2\pm\sqrt7,4\}", r"\{4,2+\sqrt7\}"), (r"(\pm3,\pm1)", "(3,1),(-3,-1)"), ("p=q=4", "p=4"), ("[-5,5]", r"|x|\ge 5"),
    (r"\begin{cases}1&x>2\\0&x\le2\end{cases}", r"\begin{cases}1&x<2\\0&x\ge2\end{cases}"),
    (r"\begin{cases}1&x>2\\0&x\le2\end{cases}", r"\begin{cases}1&\text{otherwise}\\0&\text{otherwise}\end{cases}"),
    ("1", r"\gcd(" * 30 + "1" + ")" * 30),
    ("x=6,y=8", r"\begin{cases}x=8\\y=6\end{cases}"), (r"\lfloor\frac n3\rfloor", r"\lceil\frac n3\rceil"),
    (r"\lfloor\frac{n}{40}\rfloor", r"\lfloor\frac{n}{41}\rfloor"), (r"\lfloor x\rfloor", r"\lceil x-1\rceil"), (r"\gcd(a,b)", r"\gcd(a,c)"),
    (r"\max(a,b)", r"\min(a,b)"), (r"\{0,2,\ldots,20\}", r"\{0,2,\ldots,18\}"),
    # what hides behind the digits that are computed first
    ("3", r"\sqrt{9+10^{-90}}"), ("1", r"\cos(10^{-50})"), ("1", r"\tanh(150)"), ("2", "2+e^{-300}"), (r"\sqrt{5}", r"\sqrt{5}+10^{-400}"),
    (r"\frac{\pi}{2}", r"\arctan(10^{90})"), ("x", "x+10^{-95}"), ("2^{3000}-1", "2^{3000}"), ("5", r"\lceil 4+10^{-75}\rceil+10^{-80}"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_one_answer_in_two_forms(gold: str, answer: str) -> None:
    assert same_value(gold, answer, CONVENTIONS) is not False
    assert Math().verify(rf"\boxed{{{answer}}}", gold).score == 1.0


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_a_near_miss_is_not_paid(gold: str, answer: str) -> None:
    assert same_value(gold, answer, CONVENTIONS) is not True
    assert Math().verify(rf"\boxed{{{answer}}}", gold).score == 0.0


@pytest.mark.parametrize("gold", [gold for gold, _ in SAME])
def test_every_reference_is_read_and_wins_against_itself(gold: str) -> None:
    assert Math().verify(rf"\boxed{{{gold}}}", gold).status is Status.CORRECT


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
