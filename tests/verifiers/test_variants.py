# ruff: noqa: E501  # a row of examples is read as a row
"""Right and wrong variants of many kinds of answers, made from seeds; every label is by construction.

A wrong answer that is paid, or a right one that is not, prints as ``kind: gold | answer``.
"""

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from assay.verifiers import Math

Variant = tuple[str, str, bool]  # gold, answer, whether they are the same
MATH = Math()
MAKERS: dict[str, Callable[[random.Random], Iterator[Variant]]] = {}


def maker(function):
    MAKERS[function.__name__] = function
    return function


def surd(r, a=None):
    return a or r.choice((2, 3, 4, 5, 7, 11)), r.choice((2, 3, 5, 6, 7, 10, 13))


@maker
def integers(r):
    n = r.randrange(2, 999)
    gold = str(n)
    for answer in (
        f"{n}.0",
        f"{n}.",
        f"+{n}",
        rf"\,{n}",
        f"n = {n}",
        f"${n}$",
        rf"\frac{{{2 * n}}}{{2}}",
        f"{n - 3}+3",
        rf"\textbf{{{n}}}",
        rf"{n}\text{{ units}}",
        f"({n})",
        rf"\mathbf{{{n}}}",
        rf"\boxed{{{n}}}",
        f"{n} apples",
        rf"\${n}",
        rf"\text{{{n}}}",
        rf"x={n - 1}+1={n}",
    ):
        yield gold, answer, True
    for answer in (
        f"{n + 1}",
        f"-{n}",
        f"{n}0",
        f"{n}.5",
        f"{n}, {n + 1}",
        rf"{n} \text{{ or }} {n + 1}",
        f"{n}x",
        f"x+{n}",
        rf"\neq {n}",
        f"> {n}",
        rf"\{{{n}, {n + 1}\}}",
        f"({n}, {n})",
        f"[{n}]",
        f"{n} or {n - 1}",
        rf"{n} \text{{ million}}",
        f"{n}i",
        f"{n}!" if n > 2 else "9",
        rf"{n}\pm 1",
        rf"\approx {n + 1}",
        f"{n}_7",
        f"{n}?",
        rf"\text{{not }} {n}",
        f"{n}={n + 1}",
        rf"[{n - 1}, {n + 1}]",
        f"{n}^2",
        rf"\sqrt{{{n + 2}}}",
        rf"{n}+10^{{-9}}",
        f"{n}:{n + 1}",
    ):
        yield gold, answer, False


@maker
def thousands(r):
    n = r.randrange(10_000, 9_999_999)
    commas = f"{n:,}"
    for mark in (",", "{,}", r",\!", r"\,", r"\,\!", " "):
        if mark != r"\,\!":
            yield str(n), commas.replace(",", mark), True
    yield commas, str(n), True
    yield commas, rf"\${commas}", True
    yield commas, str(n // 1000), False
    yield str(n), commas[:-1], False
    yield str(n), commas.replace(",", ".", 1), False
    yield str(n), commas.replace(",", ", "), False


@maker
def fractions(r):
    f = Fraction(r.randrange(1, 60), r.choice((3, 7, 9, 11, 13, 17)))
    if f.denominator == 1:
        return
    a, b = f.numerator, f.denominator
    gold = rf"\frac{{{a}}}{{{b}}}"
    for answer in (
        f"{a}/{b}",
        rf"\dfrac{{{a}}}{{{b}}}",
        rf"\tfrac{{{3 * a}}}{{{3 * b}}}",
        f"({a})/({b})",
        rf"x = \frac{{{a}}}{{{b}}}",
        f"{a / b:.8f}",
        rf"\left(\frac{{{a}}}{{{b}}}\right)",
        rf"\frac{{-{a}}}{{-{b}}}",
        rf"{a}\div {b}",
        rf"{a} \cdot \frac{{1}}{{{b}}}",
        rf"{{{a}\over {b}}}",
    ):
        yield gold, answer, True
    for answer in (
        f"{b}/{a}",
        f"-{a}/{b}",
        f"{a + 1}/{b}",
        f"{a}/{b + 1}",
        f"{a / b:.3f}",
        f"{a}",
        f"{a},{b}",
        f"({a},{b})",
        f"{a / b + 1e-8:.8f}",
        rf"\frac{{{a}}}{{{b}}}x",
        rf"\sqrt{{\frac{{{a}}}{{{b}}}}}",
        f"{a}-{b}",
        f"{a}:{b}:1",
    ):
        yield gold, answer, False
    if f > 1:
        whole, rest = divmod(a, b)
        yield gold, rf"{whole}\frac{{{rest}}}{{{b}}}", True
        yield gold, f"{whole} {rest}/{b}", True
        yield gold, rf"{whole + 1}\frac{{{rest}}}{{{b}}}", False


@maker
def decimals(r):
    n, places = r.randrange(101, 9999), r.choice((1, 2, 3))
    value = Fraction(n, 10**places)
    text = f"{float(value):.{places}f}"
    yield text, text + "00", True
    yield text, rf"\frac{{{value.numerator}}}{{{value.denominator}}}", True
    yield text, text.replace(".", "{,}") if places < 3 else text, True
    if value < 1:
        yield text, text[1:], True
    yield text, f"{float(value) + 10**-places:.{places}f}", False
    yield text, text + "1", False
    yield text, str(n), False
    yield text, rf"{text}\%" if value != 0 else "1", True  # either convention: a unit left out
    yield text, rf"{n}\%", places == 2


@maker
def surds(r):
    (a, n), k = surd(r), r.randrange(2, 20)
    gold = rf"{a}\sqrt{{{n}}}"
    for answer in (
        rf"\sqrt{{{a * a * n}}}",
        rf"{a} \cdot \sqrt{{{n}}}",
        rf"\sqrt{{{n}}} \cdot {a}",
        f"{a}√{n}" if n < 10 else gold,
        rf"\frac{{{a * n}}}{{\sqrt{{{n}}}}}",
        f"{a}sqrt({n})",
        rf"{a}\sqrt{n}" if n < 10 else gold,
        f"{a * n**0.5:.7f}",
        rf"\frac{{{2 * a}\sqrt{{{n}}}}}{{2}}",
        rf"{a}*{n}^{{1/2}}",
        rf"{a}\,\sqrt{{{n}}}\text{{ cm}}",
        rf"{a}\sqrt{{{n}}} cm",
    ):
        yield gold, answer, True
    for answer in (
        rf"{a + 1}\sqrt{{{n}}}",
        rf"{a}\sqrt{{{n + 1}}}",
        rf"-{a}\sqrt{{{n}}}",
        str(a),
        f"{a * n**0.5:.2f}",
        f"{a}*{n}",
        rf"\sqrt{{{a * n}}}",
        rf"{a}\sqrt[3]{{{n}}}",
        rf"\pm {a}\sqrt{{{n}}}",
        rf"{a}\sqrt{{{n}}}, 1",
        rf"{a}+\sqrt{{{n}}}",
    ):
        yield gold, answer, False
    yield rf"{k}+{gold}", rf"{gold}+{k}", True
    yield rf"{k}+{gold}", rf"{k}-{gold}", False
    yield rf"{k}\pm{gold}", rf"{k}-{gold},\ {k}+{gold}", True
    yield rf"{k}\pm{gold}", rf"{k}+{gold}", False
    yield rf"\frac{{1}}{{\sqrt{{{n}}}}}", rf"\frac{{\sqrt{{{n}}}}}{{{n}}}", True


@maker
def pi(r):
    a, b = r.randrange(2, 60), r.choice((3, 5, 7))
    for answer in (
        f"{a}π",
        rf"{a} \cdot \pi",
        rf"\pi \cdot {a}",
        rf"\frac{{{2 * a}\pi}}{{2}}",
        f"{a}pi",
        f"{a}*pi",
        rf"{a}\pi\text{{ cm}}^2",
        rf"{a}\pi \text{{ square units}}",
        rf"{a}\pi cm",
        rf"{a}\pi\,\mathrm{{m}}^2",
    ):
        yield rf"{a}\pi", answer, True
    for answer in (
        str(a),
        rf"{a + 1}\pi",
        f"{a * 3.14:.2f}",
        rf"{a}\pi^2",
        rf"-{a}\pi",
        rf"\frac{{{a}}}{{\pi}}",
        rf"{a}+\pi",
        f"{a}p",
    ):
        yield rf"{a}\pi", answer, False
    yield rf"\frac{{{a}\pi}}{{{b}}}", rf"\frac{{{a}}}{{{b}}}\pi", True
    yield rf"\frac{{{a}\pi}}{{{b}}}", rf"{a}\pi/{b}", True
    yield rf"\frac{{{a}\pi}}{{{b}}}", rf"\frac{{{b}\pi}}{{{a}}}", a == b
    n = 1000 * a + 234
    yield rf"{n}\pi", rf"{n:,}\pi", True
    yield rf"{n}\pi", rf"{n:,}\pi".replace(",", "{,}"), True


@maker
def polynomials(r):
    a, b, c = r.randrange(2, 9), r.randrange(2, 9), r.randrange(1, 9)
    x = r.choice("xyznt")
    gold = f"{a}{x}^2+{b}{x}-{c}"
    for answer in (
        f"-{c}+{b}{x}+{a}{x}^2",
        f"{a}{x}^{{2}} + {b}{x} - {c}",
        rf"{x}({a}{x}+{b})-{c}",
        f"f({x}) = {gold}" if x == "x" else gold,
        rf"{a}\cdot {x}^2+{b}\cdot {x}-{c}",
        f"{a}{x}*{x}+{b}*{x}-{c}",
        f"y={gold}" if x == "x" else gold,
    ):
        yield gold, answer, True
    for answer in (
        f"{a}{x}^2-{b}{x}-{c}",
        f"{a + 1}{x}^2+{b}{x}-{c}",
        f"{a}{x}^3+{b}{x}-{c}",
        f"{a}{x}^2+{b}{x}+{c}",
        f"-({gold})",
        gold.replace(x, "w"),
        gold + "=0",
        f"2({gold})",
        f"{a}{x}^2+{b}{x}",
        gold.replace(x, x.upper()),
        f"{a}{x}+{b}{x}-{c}",
    ):
        yield gold, answer, False
    yield (
        f"({x}+{a})({x}-{b})",
        f"{x}^2+{a - b}{x}-{a * b}" if a > b else f"({x}-{b})({x}+{a})",
        True,
    )
    yield f"({x}+{a})({x}-{b})", f"({x}-{a})({x}+{b})", a == b
    yield rf"\frac{{{x}+{a}}}{{{x}-{b}}}", rf"1+\frac{{{a + b}}}{{{x}-{b}}}", True
    yield rf"\frac{{{x}+{a}}}{{{x}-{b}}}", rf"\frac{{{x}-{b}}}{{{x}+{a}}}", False
    yield rf"{a}{x}+C", rf"{a}{x} + C", True


@maker
def tuples(r):
    a, b, c = r.sample(range(-20, 30), 3)
    gold = f"({a}, {b})"
    for answer in (
        f"({a},{b})",
        rf"\left({a}, {b}\right)",
        f"(x, y) = ({a}, {b})",
        rf"(\frac{{{2 * a}}}{{2}}, {b})",
        f"({a}.0, {b})",
        rf"\langle {a}, {b} \rangle",
        rf"\begin{{pmatrix}} {a} \\ {b} \end{{pmatrix}}",
    ):
        yield gold, answer, True
    for answer in (
        f"({b}, {a})",
        f"({a}, {b + 1})",
        f"({a}, {b}, {c})",
        f"({a})",
        f"{a}, {b}",
        f"[{a}, {b}]",
        rf"\{{{a}, {b}\}}",
        f"({a}, {b}), ({c}, {b})",
        f"({-a - 1}, {b})",
        f"({a}, {b})x",
        f"({a}; {b}; {c})",
        rf"({a}, {b}) \text{{ or }} ({b}, {a})",
    ):
        yield gold, answer, False
    yield f"({a},{b}), ({b},{c})", f"({b}, {c}), ({a}, {b})", True
    yield f"({a},{b}), ({b},{c})", f"({a}, {b})", False
    yield f"({a},{b}), ({b},{c})", f"({b}, {a}), ({b}, {c})", False
    yield rf"(\pm {abs(a) + 1}, {b})", rf"({abs(a) + 1}, {b}), (-{abs(a) + 1}, {b})", True


@maker
def lists(r):
    a, b, c, d = r.sample(range(-30, 60), 4)
    gold = f"{a}, {b}, {c}"
    for answer in (
        f"{c},{a},{b}",
        rf"\{{{a}, {b}, {c}\}}",
        rf"{a}, {b} \text{{ and }} {c}",
        f"x={a}, x={b}, x={c}",
        rf"{a},\ {b},\ {c}",
        rf"{a}, {b}, \text{{and }} {c}",
        rf"x = {a} \text{{ or }} x = {b} \text{{ or }} x = {c}",
        f"x = {a}, {b}, {c}",
        rf"x \in \{{{a}, {b}, {c}\}}",
        f"{a}; {b}; {c}",
        f"{a}, {b}, {c}, {a}",
        f"{a} and {b} and {c}",
    ):
        yield gold, answer, True
    for answer in (
        f"{a}, {b}",
        f"{a}, {b}, {c}, {d}",
        f"{a}, {b}, {d}",
        str(a),
        f"({a}, {b}, {c})",
        f"[{a}, {b}, {c}]",
        f"{a}{b}{c}" if min(a, b, c) >= 0 else "x",
        f"{a}, {b}, -{abs(c) + 70}",
        rf"{a}, {b}, \neq {c}",
    ):
        yield gold, answer, False
    yield rf"\{{{a}, {b}\}}", f"{b}, {a}", True
    yield rf"\{{{a}, {b}\}}", rf"\{{{a}\}} \cup \{{{b}\}}", True
    yield rf"\{{{a}, {b}\}}", f"({a}, {b})", False
    s = abs(a) + 1
    yield rf"\pm {s}", f"{s}, -{s}", True
    yield rf"\pm {s}", f"x = {s} or x = -{s}", True
    yield rf"\pm {s}", str(s), False
    yield f"0, {s}, -{s}", rf"0, \pm {s}", True


@maker
def intervals(r):
    a, b = sorted(r.sample(range(-20, 40), 2))
    yield f"[{a}, {b})", rf"\left[{a}, {b}\right)", True
    yield f"[{a}, {b})", rf"{a} \le x < {b}", True
    yield f"[{a}, {b})", rf"x \in [{a}, {b})", True
    yield f"[{a}, {b})", f"[{a}, {b}]", False
    yield f"[{a}, {b})", f"({a}, {b})", False
    yield f"[{a}, {b})", f"[{a}, {b + 1})", False
    yield f"[{a}, {b})", f"[{a - 1}, {b})", False
    yield rf"({b}, \infty)", f"x > {b}", True
    yield rf"({b}, \infty)", rf"({b}, +\infty)", True
    yield rf"({b}, \infty)", rf"(-\infty, {b})", False
    yield rf"({b}, \infty)", rf"[{b}, \infty)", False
    yield rf"({b}, \infty)", str(b), False
    yield rf"(-\infty, {a}) \cup ({b}, \infty)", rf"({b}, \infty) \cup (-\infty, {a})", True
    yield rf"(-\infty, {a}) \cup ({b}, \infty)", f"x < {a} or x > {b}", True
    yield rf"(-\infty, {a}) \cup ({b}, \infty)", rf"(-\infty, {a}] \cup ({b}, \infty)", False
    yield rf"(-\infty, {a}) \cup ({b}, \infty)", rf"({b}, \infty)", False
    yield rf"x \le {b}", rf"{b} \ge x", True
    yield rf"x \le {b}", rf"x \leq {b}", True
    yield rf"x \le {b}", f"x < {b}", False
    yield rf"x \le {b}", rf"x \ge {b}", False
    yield rf"x \le {b}", rf"y \le {b}", False
    yield rf"2x \le {2 * b}", rf"x \le {b}", True
    yield rf"x \neq {b}", rf"(-\infty, {b}) \cup ({b}, \infty)", True
    yield rf"x \neq {b}", rf"\mathbb{{R}} \setminus \{{{b}\}}", True
    yield rf"x \neq {b}", str(b), False


@maker
def equations(r):
    a, b, c = r.randrange(2, 9), r.randrange(2, 9), r.randrange(1, 9)
    yield f"y = {a}x + {b}", f"y={b}+{a}x", True
    yield f"y = {a}x + {b}", f"{a}x - y + {b} = 0", True
    yield f"y = {a}x + {b}", f"{a}x + {b}", True
    yield f"y = {a}x + {b}", f"y = {a}x - {b}", False
    yield f"y = {a}x + {b}", f"y = {a + 1}x + {b}", False
    yield f"y = {a}x + {b}", f"x = {a}y + {b}", False
    yield f"y = {a}x + {b}", "y = y", False
    yield f"{a}x + {b}y = {c}", f"{2 * a}x + {2 * b}y - {2 * c} = 0", True
    yield f"{a}x + {b}y = {c}", f"{a}x + {b}y = {c + 1}", False
    yield f"{a}x + {b}y = {c}", f"{a}x + {b}y", False
    yield f"x^2 + y^2 = {a}", f"y^2 + x^2 - {a} = 0", True
    yield f"x^2 + y^2 = {a}", f"x^2 - y^2 = {a}", False
    yield f"(x-{a})^2+(y-{b})^2={c}", f"(x-{a})^2 + (y-{b})^2 = {c}", True
    yield f"(x-{a})^2+(y-{b})^2={c}", f"(x+{a})^2 + (y-{b})^2 = {c}", False
    yield f"x={a}", str(a), True
    yield f"x={a}", f"y={a}", False
    yield f"x={a}, y={b}", f"x={a},\\ y={b}", True
    yield f"x={a}, y={b}", f"y={b}, x={a}", True
    yield f"x={a}, y={a + b}", f"x={a + b}, y={a}", False


@maker
def bases(r):
    base = r.randrange(3, 10)
    digits = "".join(str(r.randrange(1, base)) for _ in range(4))
    for answer in (
        f"{digits}_{{{base}}}",
        rf"{digits}_{{\text{{{base}}}}}",
        digits,
        rf"{digits}_{base}",
    ):
        yield f"{digits}_{base}", answer, True
    other = digits[:-1] + str((int(digits[-1]) + 1) % base)
    for answer in (
        f"{digits}_{{{base + 1}}}",
        f"{other}_{base}",
        other,
        digits[::-1] if digits != digits[::-1] else other,
        f"{digits}0_{base}",
        str(int(digits, base)),
    ):
        yield f"{digits}_{base}", answer, False
    yield digits, f"{digits}_{base}", False


@maker
def matrices(r):
    a, b, c, d = (r.randrange(-9, 10) for _ in range(4))
    gold = rf"\begin{{pmatrix}} {a} & {b} \\ {c} & {d} \end{{pmatrix}}"
    for answer in (
        gold.replace("pmatrix", "bmatrix"),
        rf"\begin{{pmatrix}}{a}&{b}\\{c}&{d}\end{{pmatrix}}",
        rf"\left[\begin{{array}}{{cc}} {a} & {b} \\ {c} & {d} \end{{array}}\right]",
        rf"\begin{{pmatrix}} {a} & {b} \\ {c} & {d} \\ \end{{pmatrix}}",
        rf"\frac12\begin{{pmatrix}} {2 * a} & {2 * b} \\ {2 * c} & {2 * d} \end{{pmatrix}}",
        rf"\begin{{pmatrix}} {a} & {c} \\ {b} & {d} \end{{pmatrix}}^T",
        rf"A = {gold}",
        rf"-\begin{{pmatrix}} {-a} & {-b} \\ {-c} & {-d} \end{{pmatrix}}",
    ):
        yield gold, answer, True
    for answer in (
        rf"\begin{{pmatrix}} {a + 1} & {b} \\ {c} & {d} \end{{pmatrix}}",
        rf"\begin{{pmatrix}} {a} & {c} \\ {b} & {d} \end{{pmatrix}}" if b != c else "0",
        rf"\begin{{pmatrix}} {a} & {b} & {c} & {d} \end{{pmatrix}}",
        gold.replace("pmatrix", "vmatrix"),
        f"({a}, {b}, {c}, {d})",
        rf"2{gold}" if any((a, b, c, d)) else "0",
    ):
        yield gold, answer, False


@maker
def percents_and_money(r):
    n = r.randrange(2, 95)
    yield rf"{n}\%", f"{n}%", True
    yield rf"{n}\%", str(n), True
    yield rf"{n}\%", f"{n / 100}", True
    yield rf"{n}\%", rf"{n}\text{{ percent}}", True
    yield rf"{n}\%", rf"{n + 1}\%", False
    yield rf"{n}\%", str(n * 100), False
    yield rf"{n}\%", rf"\${n}", False
    yield str(n), str(n * 100), False
    yield str(n), str(n / 100), False
    yield rf"\${n}.50", rf"{n}.5", True
    yield rf"\${n}.50", rf"{n}.50\text{{ dollars}}", True
    yield rf"\${n}.50", rf"{n}.55", False
    yield rf"\${n}", rf"€{n}", False
    yield rf"{n}\text{{ cm}}", f"{n} cm", True
    yield rf"{n}\text{{ cm}}", rf"{n}\,\mathrm{{cm}}", True
    yield rf"{n}\text{{ cm}}", f"{n} kg", False
    yield rf"{n}^\circ", str(n), True
    yield rf"{n}^\circ", rf"{n}^{{\circ}}", True
    yield rf"{n}^\circ", rf"{n}\text{{ degrees}}", True
    yield rf"{n}^\circ", rf"{n + 1}^\circ", False


@maker
def scientific(r):
    m, e = r.randrange(11, 99), r.choice((-34, -12, -3, 5, 8, 23))
    gold = rf"{m / 10} \times 10^{{{e}}}"
    for answer in (
        f"{m / 10}e{e}",
        rf"{m / 10}\cdot 10^{{{e}}}",
        rf"{m} \times 10^{{{e - 1}}}",
        f"{m / 10}E{e}",
        f"{m / 10}*10^{{{e}}}",
    ):
        yield gold, answer, True
    for answer in (
        rf"{m / 10} \times 10^{{{e + 1}}}",
        rf"{(m + 1) / 10} \times 10^{{{e}}}",
        str(m / 10),
        "0",
        rf"-{gold}",
        rf"{m / 10} \times 10^{{{-e}}}",
    ):
        yield gold, answer, False


@maker
def complex_numbers(r):
    a, b = r.randrange(1, 15), r.randrange(2, 15)
    for answer in (
        f"{b}i+{a}",
        f"{a} + {b} i",
        rf"{a}+{b}\mathrm{{i}}",
        rf"z = {a}+{b}i",
        f"{a}+{b}i",
    ):
        yield f"{a}+{b}i", answer, True
    for answer in (
        f"{a}-{b}i",
        f"-{a}+{b}i",
        f"{b}+{a}i" if a != b else "0",
        str(a),
        f"{a}+{b}",
        f"{a}+{b}x",
        f"({a}, {b})",
        f"{a + b}i",
        f"{a}+{b + 1}i",
    ):
        yield f"{a}+{b}i", answer, False
    yield rf"{a}\pm {b}i", f"{a}+{b}i, {a}-{b}i", True
    yield rf"\frac{{1}}{{{a}+{b}i}}", rf"\frac{{{a}-{b}i}}{{{a * a + b * b}}}", True


@maker
def words_and_choices(r):
    letter, other = r.sample("ABCDE", 2)
    for answer in (
        f"({letter})",
        f"{letter}.",
        rf"\text{{{letter}}}",
        rf"\textbf{{({letter})}}",
        f"{letter}) 12",
        f"({letter}) Paris",
        rf"\mathrm{{{letter}}}",
        f"{letter}:",
        rf"\text{{({letter})}}",
        rf"\textbf{{({letter}) }} 7",
    ):
        yield letter, answer, True
    for answer in (
        other,
        f"({other})",
        f"{letter}, {other}",
        f"{letter} or {other}",
        "ABCDE",
        letter + other,
        f"{other}) {letter}",
        f"not {letter}",
        f"2{letter}",
        f"({letter})({other})",
        f"{letter} and {other}",
        rf"\text{{{letter} or {other}}}",
        letter.lower() + "pple",
    ):
        yield letter, answer, False
    yield rf"\text{{({letter})}}", letter, True
    yield f"({letter}) 12", letter, True
    yield f"({letter}) 12", "12", True
    yield f"({letter}) 12", f"({letter}) 13", False
    yield f"({letter}) 12", f"({other}) 12", False
    word, wrong = r.sample(
        ("even", "odd", "convex", "parabola", "ellipse", "circle", "hyperbola", "isosceles"), 2
    )
    for answer in (
        word,
        word.upper(),
        rf"\text{{{word}}}",
        rf"\textbf{{{word}}}",
        rf"\text{{ {word}. }}",
        f"${word}$",
    ):
        yield rf"\text{{{word}}}", answer, True
    for answer in (
        wrong,
        rf"\text{{not {word}}}",
        f"{word} or {wrong}",
        word[:-1],
        word[::-1],
        rf"\text{{{word} and {wrong}}}",
        f"{word}, {wrong}",
    ):
        yield rf"\text{{{word}}}", answer, False
    for answer in (
        r"\emptyset",
        r"\varnothing",
        r"\text{no solution}",
        "No solution",
        r"\{\}",
        r"\text{No real solutions}",
        "∅",
    ):
        yield r"\text{no solution}", answer, True
    for answer in ("0", "1", r"\{0\}", r"\text{solution}", r"\text{infinitely many solutions}"):
        yield r"\text{no solution}", answer, False


@maker
def times_dates_ratios(r):
    h, m = r.randrange(1, 12), r.randrange(10, 60)
    yield f"{h}:{m}", f"{h}{{:}}{m}", True
    yield f"{h}:{m}", rf"{h}:{m}\text{{ PM}}", True
    yield rf"{h}:{m}\text{{ PM}}", f"{h}:{m} p.m.", True
    yield rf"{h}:{m}\text{{ PM}}", f"{h + 12}:{m}", True
    yield rf"{h}:{m}\text{{ PM}}", f"{h}:{m} AM", False
    yield f"{h}:{m}", f"{h}:{m - 1}", False
    yield f"{h}:{m}", f"{h}{m}", False
    yield f"{h}:{m}", rf"\frac{{{h}}}{{{m}}}", False
    year, day = r.randrange(1900, 2100), r.randrange(13, 29)
    yield f"May {day}, {year}", f"{day} May {year}", True
    yield f"May {day}, {year}", f"{year}-05-{day}", True
    yield f"May {day}, {year}", rf"\text{{May {day}th, {year}}}", True
    yield f"May {day}, {year}", f"June {day}, {year}", False
    yield f"May {day}, {year}", f"May {day + 1}, {year}", False
    yield f"May {day}, {year}", str(year), False
    a, b, k = r.choice((2, 3, 5)), r.choice((7, 11 - 4, 9)), r.randrange(2, 5)
    yield f"{a}:{b}", f"{a * k}:{b * k}" if b * k < 10 else f"{a} : {b}", True
    yield f"{a}:{b}", rf"\frac{{{a}}}{{{b}}}", True
    yield f"{a}:{b}", f"{b}:{a}", False
    yield f"{a}:{b}:1", f"{a * k}:{b * k}:{k}", True
    yield f"{a}:{b}:1", f"{a}:{b}:2", False
    yield rf"1:\sqrt{{{a}}}", rf"\sqrt{{{a}}}:{a}", True
    yield rf"{a} \pmod{{{b}}}", rf"x \equiv {a} \pmod{{{b}}}", True
    yield rf"x \equiv {a} \pmod{{{b}}}", rf"x \equiv {a + b} \pmod {b}", True
    yield rf"x \equiv {a} \pmod{{{b}}}", rf"x \equiv {a + 1} \pmod{{{b}}}", False
    yield rf"x \equiv {a} \pmod{{{b}}}", rf"x \equiv {a} \pmod{{{b + 1}}}", False


@maker
def functions(r):
    a, b = r.randrange(2, 9), r.randrange(2, 9)
    yield rf"\ln {a}", rf"\ln({a})", True
    yield rf"{a}\ln {b}", rf"\ln {b**a}", True
    yield rf"{a}\ln {b}", rf"\ln {b * a}", b**a == b * a
    yield rf"e^{{{a}}}", rf"\exp({a})", True
    yield rf"e^{{{a}}}", rf"e^{{{a + 1}}}", False
    yield rf"2^{{{a}}}-1", str(2**a - 1), True
    yield rf"{a}^{{x+1}}", rf"{a}\cdot {a}^x", True
    yield rf"{a}^{{x+1}}", rf"{a}^x+{a}", False
    yield rf"\sin {a}x", rf"\sin({a}x)", True
    yield rf"\sin {a}x", rf"{a}\sin x", False
    yield rf"\cos^2 {a}", rf"1-\sin^2 {a}", True
    yield rf"\arctan \frac{{1}}{{{a}}}", rf"\tan^{{-1}}\left(\frac{{1}}{{{a}}}\right)", True
    yield rf"\arctan {a}", rf"\arctan {a + 1}", False
    yield rf"\log_{{{a}}} {b}", rf"\frac{{\ln {b}}}{{\ln {a}}}", True
    yield rf"\log_{{{a}}} {b}", rf"\log_{{{b}}} {a}", a == b
    yield f"{a}!", str(math.factorial(a)), True
    yield rf"\binom{{{a + b}}}{{{a}}}", rf"\frac{{{a + b}!}}{{{a}!{b}!}}", True
    yield rf"\sqrt[3]{{{a}}}", rf"{a}^{{1/3}}", True
    yield rf"\sqrt[3]{{{a}}}", rf"\sqrt{{{a}}}", False
    yield rf"\frac{{{a}}}{{x}}", rf"{a}x^{{-1}}", True
    yield rf"\frac{{{a}}}{{x}}", rf"\frac{{x}}{{{a}}}", False
    yield rf"|x-{a}|", rf"|{a}-x|", True
    yield rf"|x-{a}|", rf"x-{a}", False
    yield r"\overline{AB}", r"\overline{AB}", True


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_right_variants_are_paid_and_wrong_ones_are_not(kind: str) -> None:
    rows = [row for seed in range(25) for row in MAKERS[kind](random.Random(f"{kind} {seed}"))]  # noqa: S311  # no secret
    verdicts = MATH.verify_many(
        [rf"So $\boxed{{{answer}}}$" for _, answer, _ in rows], [g for g, _, _ in rows]
    )
    wrong = [
        f"{'not paid' if same else 'PAID'} {v.status.value}: {gold} | {answer}"
        for (gold, answer, same), v in zip(rows, verdicts, strict=True)
        if v.score != float(same)
    ]
    assert not wrong, "\n" + "\n".join(dict.fromkeys(wrong))


def test_every_gold_wins_against_its_own_echo() -> None:
    golds = sorted(
        {
            g
            for make in MAKERS.values()
            for seed in range(4)
            for g, _, _ in make(random.Random(seed))  # noqa: S311  # no secret
        }
    )
    assert [g for g in golds if MATH.check_reference(g) is not None] == []
    verdicts = MATH.verify_many([rf"\boxed{{{g}}}" for g in golds], golds)
    assert [g for g, v in zip(golds, verdicts, strict=True) if v.score != 1.0] == []


def test_no_verdict_depends_on_the_batch_or_its_order() -> None:
    rows = [row for name in sorted(MAKERS) for row in MAKERS[name](random.Random(name))]  # noqa: S311  # no secret
    draw = random.Random(7)  # noqa: S311  # no secret
    expected = dict(zip(rows, _judged(Math(), rows), strict=True))
    for size in (1, 7, 100):
        draw.shuffle(rows)
        fresh = Math(memo=16)
        for k in range(0, len(rows), size):
            piece = rows[k : k + size]
            assert _judged(fresh, piece) == [expected[row] for row in piece]


def _judged(math: Math, rows: list[Variant]):
    return math.verify_many([rf"\boxed{{{a}}}" for _, a, _ in rows], [g for g, _, _ in rows])
