# ruff: noqa: E501  # a row of examples is read as a row
r"""Answers of words, units and names: words are no products, and a unit never changes the value."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings

from assay.verifiers import Math, Status
from assay.verifiers.maths.number_words import read_number_words

math = Math()

# reference: what equals it, and what does not
CASES: dict[str, tuple[list[str], list[str]]] = {
    # several numbers, each with its word
    r"3\text{ hours }45\text{ minutes}": (
        [r"3\text{ h }45\text{ min}", "3 hr 45 min", r"\text{3 hours and 45 minutes}", r"225\text{ minutes}", r"3.75\text{ hours}"],
        [r"45\text{ hours }3\text{ minutes}", r"5\text{ hours }27\text{ minutes}", "225", "3.75", "3", r"3\text{ minutes }45\text{ seconds}"],
    ),
    r"4\text{ feet }9\text{ inches}": (["4'9''", r"57\text{ inches}", "4 ft 9 in", "4 ft. 9 in."], [r"9\text{ feet }4\text{ inches}", "57", "4'"]),
    r"40.5^\circ": ([r"40^\circ 30'"], [r"40^\circ 50'", r"40^\circ"]),
    "17 R 2": ([r"17\text{ R }2", r"17\text{ remainder }2", "17R2"], ["2 R 17", "34", "17", "34 R 1"]),
    r"\text{quotient }7\text{, remainder }3": ([r"\text{remainder }3\text{, quotient }7"], [r"\text{quotient }3\text{, remainder }7"]),
    r"\text{row }4\text{ column }9": ([r"\text{Row }4,\text{ Column }9", r"\text{column }9\text{ row }4"], [r"\text{row }9\text{ column }4", r"\text{row }6\text{ column }6"]),
    r"7\text{ cats, }9\text{ dogs}": ([r"9\text{ dogs, }7\text{ cats}", r"\text{7 cats and 9 dogs}", "7, 9"], [r"9\text{ cats, }7\text{ dogs}", "9, 7", "63"]),
    # named members
    "PQ=7, QR=9": (["QR=9, PQ=7", r"QP=7 \text{ and } QR=9", "7, 9"], ["PQ=9, QR=7", "9, 7", "PQ=7"]),
    r"\gamma=2, \mu=5": ([r"\mu=5,\gamma=2"], [r"\gamma=5,\mu=2"]),
    r"\min=1, \max=6": ([r"\text{max}=6,\text{min}=1"], [r"\max=1,\min=6", r"\text{max}=1,\text{min}=6"]),
    r"\text{Sue}=8, \text{Lee}=3": (["Lee = 3, Sue = 8"], [r"\text{Lee}=8,\text{Sue}=3"]),
    "Bill: 2, Carl: 9": (["Carl: 9, Bill: 2"], ["Bill: 9, Carl: 2"]),
    "p=4,q=9": (["(p,q)=(4,9)", "(4,9)", "4,9"], ["(p,q)=(9,4)", "(q,p)=(4,9)", "(9,4)", "9,4"]),
    "(21,6)": (["h=21, t=6", "y=6,x=21", "(x,y)=(21,6)"], ["h=6,t=21", "y=21,x=6", "(y,x)=(21,6)"]),
    "u_1=3,u_2=8": (["(3,8)"], ["(8,3)", "u_1=8,u_2=3"]),
    r"\text{length}=6": (["6", r"\text{Length}=6"], [r"\text{height}=6"]),
    r"\text{Area}=6": (["A=6", "6"], [r"\text{Volume}=6"]),
    r"m\angle PQR=35^\circ": ([r"\angle RQP=35^\circ", "35"], [r"\angle QPR=35^\circ"]),
    # words
    "yes": (["Yes", "YES", r"\textbf{Yes}", r"\textrm{yes}", "yes."], ["no", "sye", r"\text{not yes}"]),
    "up": (["Up", r"\text{up}"], ["pu"]),
    "TTH": ([r"\text{TTH}"], ["HTT", "T^2H", "tth"]),
    "XIV": ([r"\text{XIV}"], ["XVI"]),
    "saw": (["Saw"], ["was"]),
    "BDA": (["B, D, A"], ["A, B, D"]),
    "Rome": ([r"\mbox{Rome}", r"\textnormal{rome}"], ["More", r"\text{Rome or Paris}", r"\text{not Rome}"]),
    r"\text{circle}": ([r"\text{a circle}"], [r"\text{semicircle}", r"\text{circle or ellipse}"]),
    "D": ([r"\text{Option D}", r"\text{Choice (D)}", r"\textrm{D}", r"\text{D: 9}"], [r"\text{Option B}", r"\text{Options B and D}", r"\text{B: D}"]),
    r"\angle PQR": ([r"\angle RQP"], [r"\angle QPR", "PQR"]),
    r"P \to Q": ([r"P \rightarrow Q"], [r"Q \to P", "PQ"]),
    r"20^\circ S, 70^\circ W": ([r"20^\circ\text{ S}, 70^\circ\text{ W}"], [r"70^\circ S, 20^\circ W"]),
    r"\text{Ann}>\text{Bo}": ([r"\text{Bo}<\text{Ann}"], [r"\text{Bo}>\text{Ann}"]),
    # products stay products
    r"P(A)=\frac17": (["1/7"], [r"P(B)=\frac17"]),
    "xz": (["zx", r"x\cdot z"], ["XZ"]),
    "nRT": (["nTR"], []),
    "ad-bc": (["da-cb"], ["bc-ad"]),
    # numbers in words
    "84": (["eighty-four", r"\text{eighty-four cats}"], ["forty-eight", "eighty", "eighty four hundred"]),
    "-3": ([r"\text{minus three}", "negative three"], ["three"]),
    r"\frac58": ([r"\text{five eighths}"], [r"\text{eight fifths}"]),
    "9^{th}": (["9", "9th", r"9^{\text{th}}"], [r"9\text{ths}", r"\frac{1}{9}"]),
    "600": ([r"50\text{ dozen}", "six hundred"], ["50"]),
    r"\text{nine}": (["9"], ["ninety"]),
    # units
    r"75^\circ": (["75", r"75\text{ degrees}", r"\frac{5\pi}{12}"], [r"75\text{ radians}", r"\frac{7\pi}{12}", "1.309"]),
    r"\$7.25": (["USD 7.25", "7.25 USD", r"725\text{ cents}", "US$7.25"], ["EUR 7.25", "£7.25", r"7.25\text{ cents}", "725"]),
    r"12\text{ m/s}": ([r"12\ \mathrm{m/s}", r"12\,\mathrm{m\,s^{-1}}", r"12\frac{\text{m}}{\text{s}}", r"12\ \mathrm{m}\cdot\mathrm{s}^{-1}", r"43.2\text{ km/h}"], [r"12\text{ m/s}^2", r"12\text{ km/h}", "43.2"]),
    r"3\ \mathrm{k\Omega}": ([r"3000\ \Omega"], [r"3\ \Omega", "3000"]),
    r"3\text{ MJ}": ([r"3\text{ megajoules}"], [r"3\text{ mJ}"]),
    r"6\text{ inches}": (["6''"], ["6'"]),
    "6": ([], ["6'", "6''"]),
    r"x\text{ cm}": (["x"], [r"x\text{ kg}"]),
    r"15\text{ pairs}": (["15"], [r"15\text{ couples}"]),
    "7 PM": (["19:00", "7:00 p.m.", "7:00"], ["7 AM", "20:00"]),
    "19:20": (["7:20 PM"], ["7:20"]),
    # for all x
    "g(x)=3": ([r"g(x)=3\text{ for all }x", "g(x)=3 for all x", r"g(x)=3,\ \forall x\in\mathbb{R}"], [r"g(x)=4\text{ for all }x"]),
    r"g(x)=5x\text{ for all }x": (["g(x)=5x", r"g(x)=5x\text{ for any }x"], ["g(x)=x"]),
    r"g(x)=4\text{ for some }x": ([r"g(x)=4\text{ for some }x"], ["g(x)=4", "4"]),
    r"h(x)=0\text{ for all }x": (["0", "h(x)=0"], ["1"]),
    "h(x)=3x-2": (["h(z)=3z-2"], ["h'(x)=3x-2"]),
    r"\frac{\pi}{8}+\pi k": ([r"\frac{\pi}{8}+\pi n,\ n\in\mathbb{Z}"], [r"\frac{\pi}{8}+\pi k,\ k\in\mathbb{R}", r"\frac{\pi}{8}+\pi n,\ n\in\mathbb{N}"]),
    # lists against named values: in the order of the list
    "21,8": (["h=21, t=8", "8, 21", "x_1=8, x_2=21", r"x=8\text{ or }x=21"], ["h=8, t=21", "x=8, y=21"]),
    # "and" joins conditions, "or" offers alternatives
    r"x>4\text{ and }x<6": (["(4,6)"], [r"x>4\text{ or }x<6"]),
    r"x<4\text{ or }x>6": ([r"x>6\text{ or }x<4"], [r"x<4\text{ and }x>6"]),
    "g'(x)=5x": ([r"g'(x)=5x"], ["g''(x)=5x", "g(x)=5x"]),
    "[3,9)": ([r"x\ge3\text{ and }x<9"], [r"x\ge3\text{ or }x<9"]),
    r"(-\infty,-6)\cup\{4\}": ([r"x<-6\text{ or }x=4"], [r"x<-6\text{ and }x=4"]),
    r"(-\infty,-1)\cup(7,\infty)": ([r"\{x: x<-1\text{ or }x>7\}"], [r"\{x: -1<x<7\}"]),
    r"\mathbb{R}": ([r"x\in\mathbb{R}"], [r"x\in\mathbb{Q}"]),
    # spellings
    "250": ([r"\text{two hundred and fifty}", r"250\hspace{2mm}\text{cm}", "２５０"], [r"\phantom{250}", r"\text{two hundred and five}", r"250\text{ basis points}"]),
    "-9": (["－9", "minus 9", "negative 9"], ["9"]),
    r"\sqrt{11}": (["√(11)"], ["√11+1"]),
    r"\text{minimum}=2,\text{maximum}=5": ([r"\max=5,\min=2"], [r"\max=2,\min=5"]),
    r"\infty": ([r"\text{The limit is }\infty"], [r"\text{The limit is not }\infty"]),
}  # fmt: skip
PLAIN = (
    "apples", "students", "people", "blue marbles", "tennis balls", "square units", "hours", "kg",
    "miles per hour", "games in total", "cups of flour", "different ways", "children", "books left",
)  # fmt: skip
CHANGING = (
    "dozen", "half", "lakh", "bn", "million", "tripled", "halved", "quarters", "nineteenths", "modulo three",
    "times two", "versus three", "less two", "plus", "squared", "out of ten", "or so", "or four", "point two",
    "pairs", "scores", "googols", "permille", "reciprocal", "to the fourth", "max", "off", "K", "fewer",
    "hundred apples", "half apples", "more apples", "nil", "sextillion", "tenfold", "base eight", "unlikely",
    "/ six", "with remainder two", "by nine", "through nine", "per nine", "and a bit", "decreased by one",
)  # fmt: skip


def score(answer: str, gold: object) -> float | None:
    return math.verify(rf"So $\boxed{{{answer}}}$.", gold).score


@pytest.mark.parametrize("gold", CASES)
def test_words_units_and_names_decide(gold: str) -> None:
    right, wrong = CASES[gold]
    assert {answer: score(answer, gold) for answer in [gold, *right]} == dict.fromkeys(
        [gold, *right], 1.0
    )
    assert {answer: score(answer, gold) for answer in wrong} == dict.fromkeys(wrong, 0.0)


@pytest.mark.parametrize("form", [r"8\text{ %s}", "8 %s"])
def test_only_units_and_plain_nouns_may_be_added_to_a_number(form: str) -> None:
    assert [words for words in PLAIN if score(form % words, "8") != 1.0] == []
    assert [words for words in CHANGING if score(form % words, "8") != 0.0] == []
    assert [
        words for words in CHANGING if score(rf"3\sqrt{{2}}\text{{ {words}}}", r"3\sqrt{2}") != 0.0
    ] == []


@pytest.mark.parametrize("words", ["way", "apple", "hour"])
def test_one_thing_is_named_in_the_singular(words: str) -> None:
    assert score(rf"1\text{{ {words}}}", "1") == 1.0


numbers = st.integers(2, 400)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    numbers,
    numbers,
    st.sampled_from(
        [
            "%d R %d",
            r"%d\text{ boys }%d\text{ girls}",
            r"\text{day }%d\text{ page }%d",
            r"\text{Tim}=%d,\text{Ida}=%d",
            r"\beta=%d,\rho=%d",
            "%d km %d m",
        ]
    ),
)
def test_exchanged_values_are_never_paid(a: int, b: int, form: str) -> None:
    assume(a != b and (a < 1000 and b < 1000))
    assert score(form % (a, b), form % (a, b)) == 1.0
    assert score(form % (b, a), form % (a, b)) == 0.0


def test_an_arrangement_of_capitals_is_no_other() -> None:
    letters = ["".join(order) for order in itertools.permutations("HKT")]
    assert [(g, a) for g in letters for a in letters if score(a, g) != float(g == a)] == []


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.integers(0, 999_999))
def test_numbers_in_words_are_read_back(n: int) -> None:
    assert read_number_words(in_words(n)) == n
    assert n == 0 or read_number_words(f"minus {in_words(n)}") == -n


def in_words(n: int) -> str:
    small = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ]
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    if n < 20:
        return small[n]
    if n < 100:
        return tens[n // 10 - 2] + (f"-{small[n % 10]}" if n % 10 else "")
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if n >= size:
            rest = f" {in_words(n % size)}" if n % size else ""
            return f"{in_words(n // size)} {name}{rest}"
    raise AssertionError(n)


@pytest.mark.parametrize(
    ("options", "gold", "answer"),
    [
        ({"conversions": False}, r"2\text{ m}", r"200\text{ cm}"),
        ({"radians": False}, r"60^\circ", r"\frac{\pi}{3}"),
        ({"units": False}, "8", r"8\text{ apples}"),
    ],
)
def test_each_convention_can_be_switched_off(
    options: dict[str, bool], gold: str, answer: str
) -> None:
    reply = rf"\boxed{{{answer}}}"
    assert (math.verify(reply, gold).score, Math(**options).verify(reply, gold).score) == (1.0, 0.0)


# -- several references, tolerances --------------------------------------------------------------


def test_any_of_several_references_wins() -> None:
    gold = [r"\frac{1}{3}", "0.33", "a third"]
    assert [score(answer, gold) for answer in ("1/3", "0.33", "0.34")] == [1.0, 1.0, 0.0]
    assert score(r"2\pi", {"answer": ["1", r"2\pi"]}) == 1.0
    assert math.winning_reply(gold) == r"\boxed{\frac{1}{3}}"
    replies, golds = [r"\boxed{1}", r"\boxed{2}", r"\boxed{2}"], [["1", "3"], ["1", "3"], "2"]
    assert [v.score for v in math.verify_many(replies, golds)] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("gold", "paid", "refused"),
    [
        ({"answer": "9.81", "tolerance": 0.01}, ["9.82", "9.80", "981/100"], ["9.83", "9.79"]),
        ({"answer": 250, "relative_tolerance": 0.02}, ["255", "245"], ["255.1", "244"]),
        ({"answer": r"\sqrt{2}", "tolerance": 0.01}, ["1.41", "1.42"], ["1.4", r"\sqrt{3}"]),
        (
            {"answer": r"9.8\text{ m/s}^2", "tolerance": 0.05},
            [r"9.84\text{ m/s}^2"],
            [r"9.84\text{ ft/s}^2"],
        ),
        ({"answer": r"\{1, 1.01\}", "tolerance": 0.1}, [r"\{1, 1.02\}"], [r"\{1\}", "1"]),
    ],
)
def test_a_row_may_state_a_tolerance(
    gold: dict[str, object], paid: list[str], refused: list[str]
) -> None:
    assert [score(answer, gold) for answer in paid + refused] == [1.0] * len(paid) + [0.0] * len(
        refused
    )
    alone = Math()
    assert alone.verify(rf"\boxed{{{refused[0]}}}", gold["answer"]).score == 0.0


def test_a_tolerance_of_the_verifier_holds_for_rows_without_one() -> None:
    loose = Math(tolerance=0.5)
    reply = r"\boxed{3.4}"
    assert loose.verify(reply, "3").score == 1.0
    assert loose.verify(reply, {"answer": "3", "tolerance": 0.1}).score == 0.0
    assert "within the tolerance" in loose.verify(reply, "3").reason
    assert Math.from_json(loose.to_json()) == loose


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ([], "1 to 100"),
        (["1", r"\frac{"], "cannot be used"),
        ({"answer": "1", "tol": 1}, "'tolerance'"),
        ({"tolerance": 1}, "'answer'"),
        ({"answer": "1", "tolerance": -1}, "at least 0"),
        ({"answer": "1", "relative_tolerance": "1%"}, "finite number"),
        ([["1"]], "a list of these"),
    ],
)
def test_a_reference_of_a_wrong_shape_is_named_when_data_is_loaded(
    gold: object, reason: str
) -> None:
    assert reason in (math.check_reference(gold) or "")
    assert math.verify(r"\boxed{1}", gold).status is Status.BAD_GOLD
