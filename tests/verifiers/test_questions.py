"""Multiple choice, short answers and antiderivatives: what people write, and near misses."""

import re
from collections import Counter
from string import punctuation

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import make
from assay.verifiers import Integral, ShortAnswer

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("level", range(1, 6))
def test_integrals_of_every_level_can_be_solved(level: int) -> None:
    env = make("assay/Integral-v1", level=level, split="test")
    tasks = [env.task(i) for i in range(16)]
    golds = [task.reference for task in tasks]
    own = env.rubric.verify_many([task.solution for task in tasks], golds)
    assert [v.score for v in own] == [1.0] * 16
    others = env.rubric.verify_many([task.solution for task in tasks[1:] + tasks[:1]], golds)
    assert sum(v.score for v in others) == 0
