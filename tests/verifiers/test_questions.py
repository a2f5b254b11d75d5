"""Multiple choice, short answers and antiderivatives: what people write, and near misses."""

import re
from collections import Counter
from string import punctuation

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import make
from assay.verifiers import Integral, MultipleChoice, ShortAnswer

pytestmark = pytest.mark.slow

CAPITALS = {"answer": "B", "options": ["Rome", "Paris", "Bern", "Oslo"]}


@pytest.mark.parametrize("letter", "ABCD")
@pytest.mark.parametrize(
    "form",
    ["{0}", "({0})", "{0}.", "[{0}]", "**{0}**", r"\boxed{{{0}}}", r"\boxed{{\text{{({0})}}}}",
     "<answer>{0}) {1}</answer>", "The answer is {0}.", "Answer: {0}", "I reason.\n\nOption {0}",
     "The correct answer is ({0}) {1}.", "{0}: {1}", "{0} - {1}", "{0}, {1}", "({0}), {1}",
     "{1}", "**{0}. {1}**",
     "The best choice is {0}", "<think>A or D?</think>{0}", "$\\boxed{{{0}}}$"],
)  # fmt: skip
def test_one_option_in_every_spelling(letter: str, form: str) -> None:
    reply = form.format(letter, CAPITALS["options"]["ABCD".index(letter)])
    assert MultipleChoice().verify(reply, CAPITALS).score == float(letter == "B"), reply


@pytest.mark.parametrize(
    "reply",
    ["A, B", "B and C", "B or not", "AB", "B) Rome", "B) Paris or Bern", "B?", "not B", "E",
     "(A) (B)", "A cat", "Paris, Rome", "A: B", "B B", "B is wrong", "all of the above", "A B C D",
     "B) Paris C) Bern", "B, Rome", "B, C", "The answer is A or B", "Parisian"],
)  # fmt: skip
def test_anything_but_one_option_loses(reply: str) -> None:
    assert MultipleChoice().verify(reply, CAPITALS).score == 0.0


def test_options_that_are_letters_or_numbers() -> None:
    swapped = {"answer": "A", "options": ["B", "A"]}
    assert MultipleChoice().verify("A", swapped).score == 1.0  # the label, not the text
    assert MultipleChoice().verify("B", swapped).score == 0.0
    numbers = {"answer": "C", "options": ["1", "2", "0.5"]}
    assert [MultipleChoice().verify(r, numbers).score for r in ("0.5", "C) 0.5", "5")] == [1, 1, 0]


def squad_em(given: str, gold: str) -> bool:
    def plain(text: str) -> str:
        text = "".join(c for c in text.lower() if c not in punctuation)
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    return plain(given) == plain(gold)


words = st.lists(
    st.sampled_from(["the", "a", "red", "Red", "house", "don't", "U.S.", "Jean", "Luc"]), min_size=1
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(given_=words, gold=words)
def test_agrees_with_squads_rule_on_words(given_: list[str], gold: list[str]) -> None:
    texts = " ".join(given_), " ".join(gold)
    if any(not {w.lower() for w in ws} - {"the", "a"} for ws in (given_, gold)):
        return  # articles alone: SQuAD's rule finds all of them equal, and ours does not
    if len(given_) <= 2 * len([w for w in gold if w not in ("the", "a")]) + 3:
        paid = ShortAnswer().verify(f"<answer>{texts[0]}</answer>", texts[1]).score == 1.0
        assert paid == squad_em(*texts)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    given_=st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=6),
    gold=st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=6),
)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(given_, gold) -> None:
    common = sum((Counter(given_) & Counter(gold)).values())
    precision, recall = common / len(given_), common / len(gold)
    expected = 2 * precision * recall / (precision + recall) if common else 0.0
    verdict = ShortAnswer(score="f1").verify(" ".join(given_), " ".join(gold))
    if len(given_) <= 2 * len(gold) + 3:
        assert verdict.score == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reply", "gold", "wins"),
    [
        ("The The", "The The", True), ("the", "The The", False), ("a", "A", True),
        ("state-of-the-art", "state of the art", True), ("1,000", "1000", True),
        ("3.5", "35", False), ("-5", "5", False), ("--5", "-5", False),
        ("1990–1995", "1990-1995", True),
        ("café", "cafe\u0301", True), ("cafe", "café", False), ("$5", "5", True), ("", "x", False),
        ("...", "x", False), ("not Paris", "Paris", False), ("Paris? No", "Paris", False),
        ("Paris " * 50, "Paris", False),
    ],
)  # fmt: skip
def test_where_short_answers_differ_from_squads(reply: str, gold: str, wins: bool) -> None:
    assert ShortAnswer().verify(f"<answer>{reply}</answer>", gold).score == float(wins)


def test_f1_pays_nothing_for_dumps_and_for_answers_left_open() -> None:
    f1 = ShortAnswer(score="f1")
    assert f1.verify("Paris or Rome", "Paris").score == 0.0
    assert f1.verify("not Paris", "Paris").score == 0.0
    assert f1.verify(" ".join(["Paris", *"abcdefgh"]), "Paris").score == 0.0
    assert f1.verify("Paris France", "Paris").score == pytest.approx(2 / 3)


FORMS = {
    r"x\cos x": ["x sin x + cos x", "x*sin(x)+cos(x)+C", r"\cos x + x\sin x - 12"],
    r"\frac{1}{x}": [r"\ln|x|", "log(5x)", "ln(-x) + c", r"\frac{1}{2}\ln x^2"],
    "x^9": ["x^10/10", "x**10/10 + C", "1/10 x^10", "(1/10)*x^(10)", "0.1x^{10}"],
    r"\sqrt{x}": ["(2/3)x^(3/2)", r"\frac{2}{3}x\sqrt{x}", "2/3 x sqrt(x)"],
    r"\frac{1}{1+x^2}": ["arctan(x)", "atan(x)", r"\tan^{-1} x", r"-\arctan(1/x)"],
    r"\sin x\cos x": ["sin(x)^2/2", "-cos(x)^2/2", r"-\frac{1}{4}\cos 2x + 3"],
    "e^{2x}": ["e^(2x)/2", "exp(2x)/2", r"\frac{e^{2x}}{2}", "e**(2*x)/2"],
    r"\frac{1}{\sqrt{1-x^2}}": ["arcsin x", r"-\arccos x", r"2\arctan(\sqrt{(1+x)/(1-x)})"],
    r"\sec x": [r"\ln|\sec x+\tan x|", r"\ln\left|\frac{1+\sin x}{\cos x}\right|"],
    r"\ln x": ["x ln x - x", r"x(\ln x - 1)+C", "F(x) = x log(x) - x"],
    "2^x": [r"2^x/\ln 2"],
    "|x|": ["x|x|/2"],
    "ax": ["a x^2/2", r"\frac{a}{2}x^2 + K"],
}


def test_every_form_of_an_antiderivative_wins_and_no_other_does() -> None:
    for integrand, answers in FORMS.items():
        problem = {"integrand": integrand, "variable": "x"}
        for other, replies in FORMS.items():
            for reply in replies:
                verdict = Integral().verify(rf"<answer>{reply}</answer>", problem)
                assert verdict.score == float(other == integrand), (integrand, reply, verdict)
        right = answers[0]
        spoilt = [f"{right} + x", f"{right} + C x", f"-({right}) + 1", f"{right} + C + k"]
        for wrong in (integrand, *spoilt, f"{right} or x", "C", "0", r"\int f(x)\,dx"):
            verdict = Integral().verify(f"<answer>{wrong}</answer>", problem)
            assert verdict.score == 0.0, (integrand, wrong, verdict)


def test_a_tiny_integrand_does_not_make_constants_right() -> None:
    problem = {"integrand": r"\frac{x}{10^{45}}", "variable": "x"}
    assert Integral().check_reference(problem) is None
    assert Integral().verify("5", problem).score == 0.0
    assert Integral().verify(r"\boxed{\frac{x^2}{2 \cdot 10^{45}}}", problem).score == 1.0


@pytest.mark.parametrize(
    "tiny", ["10^{-75}x", "10^{-900}x^2", "e^{-700}x", r"\frac{\sin x}{40!}", r"2^{-10^{6}}x"]
)
def test_a_tiny_term_beside_an_antiderivative_is_seen(tiny: str) -> None:
    problem = {"integrand": "xe^x", "variable": "x"}
    for constant in ("0", "10^{-75}", "10^{50}"):
        assert Integral().verify(rf"\boxed{{xe^x-e^x+{constant}}}", problem).score == 1.0
    assert Integral().verify(rf"\boxed{{xe^x-e^x+{tiny}}}", problem).score == 0.0


@pytest.mark.parametrize("level", range(1, 6))
def test_integrals_of_every_level_can_be_solved(level: int) -> None:
    env = make("assay/Integral-v1", level=level, split="test")
    tasks = [env.task(i) for i in range(40)]
    golds = [task.reference for task in tasks]
    own = env.rubric.verify_many([task.solution for task in tasks], golds)
    assert [v.score for v in own] == [1.0] * 40
    others = env.rubric.verify_many([task.solution for task in tasks[1:] + tasks[:1]], golds)
    assert sum(v.score for v in others) == 0
