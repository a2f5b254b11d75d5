import json
import os
import subprocess
import sys

import numpy as np
import pytest

from assay import Task
from assay.verifiers import Math, Status
from assay.verifiers.maths.worker import WorkerError, WorkerLimits

math = Math()


def boxed(answer: str) -> str:
    return rf"So it is $\boxed{{{answer}}}$."


SAME = [
    ("3/4", "0.75"), ("1000", "10^3"), ("42", r"6\times 7"), ("42", r"6 \times 7 = 42"),
    ("5", "x = 5"), ("x=5", "5"), ("x=5", "5=x"), ("y=2x+3", "2x+3"), ("100", r"\text{sum} = 100"),
    ("2, 3", "3, 2"), ("2, 3", r"\{2, 3\}"), ("2, 3", r"2 \text{ and } 3"), ("2, 3", "x=2, x=3"),
    (r"\pm 3", "-3, 3"), (r"1 \pm \sqrt{19}", r"1-\sqrt{19}, 1+\sqrt{19}"),
    (r"\{1,2,3\}", r"\{3,1,2,2\}"), ("(1,2)", "(x,y)=(1,2)"), ("(1,2)", r"\left(1, \frac42\right)"),
    ("[0,1)", "[0, 1.0)"), (r"(-\infty,3)", r"x \in (-\infty, 3)"), ("B", "(B)"), ("B", "B."),
    ("B", "B) 12"), (r"\text{(E)}", r"\textbf{E}"), (r"\text{even}", "Even"),
    (r"\emptyset", r"\text{no solution}"), ("204_5", r"204_{\text{5}}"), ("204_5", "204"),
    ("3:4", "6:8"), ("3:2", "1.5"), ("10:30", "10{:}30"), ("k=4, n=2", "4, 2"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1\\ \frac42\end{bmatrix}"),
    (r"3\sqrt{13}", r"\sqrt{117}"), ("x^2+2x+1", "(x+1)^2"), (r"2\pi", "2π"),
    (r"\frac{1}{1+i}", r"\frac{1-i}{2}"), ("6t - 5", "-5+6t"), (r"2\sqrt{2}", "2.828427"),
    ("x>3", r"(3,\infty)"), ("3x+4y=12", "6x+8y-24=0"), (r"16\pi\text{ cm}", r"16\pi"),
    (r"\ln 2", r"-\ln\frac12"), (r"e^{\ln 5}", "5"),
    ("5", r"5\text{ m}"), ("5", r"5\,\mathrm{m}"), ("5", r"5\text{ m}^2"),
    ("5", r"5^\circ\text{C}"),
    ("12 square meters", r"12\text{ m}^2"), ("60 mph", r"60\text{ miles per hour}"),
    ("2500000", r"2.5\text{ million}"), ("25 million", "25,000,000"),
    (r"16\pi", r"16\pi\text{ m}^2"),
    ("12", r"\text{12 apples}"), ("18", "=18"), ("18", r"\boldsymbol{18}"), ("18", "18\\\\"),
    ("1/3", r"0.\bar{3}"), ("1/3", r"0.\overline 3"), (r"2\pi", "2pi"), ("[0,1)", r"0\le x<1"),
    (r"(-\infty,3)", "3>x"), ("-2<x<5", "5>x>-2"), ("x>3", "3<x"),
    (r"\mathbb{R}", r"(-\infty,\infty)"),
    (r"\mathbb{R}", r"\mathbb R"), ("A3_{16}", "A3"), (r"\text{June 20}", "June 20"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\left[\begin{array}{cc}1&2\\3&4\end{array}\right]"),
    ("23", "23_{10}"), ("23", "[ABC]=23"), ("23", r"m\angle ABC = 23^\circ"), ("23", "g(f(2))=23"),
    ("23", "f^{-1}(3)=23"), ("23", r"\mathbb{E}[X]=23"),
    ("9", "f(2)=9"), (r"\frac{1}{2}", r"P(A) = \frac12"), ("101_2", "(101)_2"), ("x^{10}", "x**10"),
    ("(3,-5)", "x=3, y=-5"), ("(3,-5)", r"x = 3 \text{ and } y = -5"), ("x=1, y=2", "(1,2)"),
    (r"(-\infty,3]", r"\{x \mid x \le 3\}"), (r"(-\infty,3]", r"\{x : x \le 3\}"),
    (r"(-\infty,\infty)", r"\text{all real numbers}"), ("x>3", r"\{x \in \mathbb{R} : x > 3\}"),
    (r"x<-2 \text{ and } x>3", r"x>3 \text{ and } x<-2"), ("-1<x<5", r"x>-1 \text{ and } x<5"),
    ("70000", r"\$70,000 profit"), ("5", r"\$5\text{ per hour}"), (r"\$5", r"\$5\text{ profit}"),
    ("5 dollars per hour", r"\$5\text{ per hour}"), ("5000000", r"\$5\text{ million profit}"),
    ("1/3", r"\tfrac13\text{ of the cake}"), (r"$\$1,800$", "1800"), (r"\$1,800", r"$\$1,800$"),
    ("9", r"9 \pmod{10}"), ("x^2", "x**2"), ("2^{n}", "2**n"),
    ("B", "(B) Paris"), ("B", "B. 12"), ("B", "B: Paris"), (r"\phi", r"\varphi"),
]  # fmt: skip

DIFFERENT = [
    ("(3,-5)", "(y=3, x=-5)"), ("(3,-5)", "(x=3, x=-5)"),
    ("5", r"\$5\text{ cents}"), ("5", r"\$5\text{ or } \$6"), ("5", r"\$5\text{ million}"),
    ("5", r"\$5^\circ"), (r"\$5", r"\$5\text{ per hour}"), ("5", r"5\text{ of the other}"),
    ("23", r"23\text{ or more}"), ("23", r"23\text{ or so}"), ("23", "24_{10}"), ("23", "23_{8}"),
    ("23", r"23\text{ and change}"), ("23", "[ABC]=24"), ("23", "f^{-1}(23)=3"),
    (r"(-\infty,-2)\cup(3,\infty)", r"x<-2 \text{ and } x>3"), ("9", r"9 \bmod 5"), ("9", "9**2"),
    ("f(2)=9", "f(3)=9"), ("(3,-5)", "x=-5, y=3"), ("(3,-5)", "y=3, x=-5"), ("x=1, y=2", "(2,1)"),
    (r"(-\infty,3]", r"\{x : x < 3\}"), (r"(-\infty,3]", r"\text{not all real numbers}"),
    ("(3,-5)", "x=3, x=-5"), ("(3,-5)", "x=3"), ("9", "f(9)=3"), ("[3,5]", "x=3, y=5"),
    ("7", "5 or 7"), ("7", r"7 \text{ or } 5"), ("7", r"7 \text{ or any other number}"),
    ("7", r"7 \text{ is wrong}"), ("7", r"\neq 7"), ("7", r"x \neq 7"), ("7", r"\le 7"),
    ("7", "not 7"), ("7", "8=7"), ("7", "x=5=7"), ("7", r"5 \approx 7"), ("7", "7, 7, 8"),
    ("7", r"\{7, 8\}"), ("7", r"\pm 7"), ("7", "7x"), ("7", r"7 + \epsilon"), ("7", "7_8"),
    ("7", "7?"), ("7", "1,2,3,4,5,6,7"), ("5", "5t"), ("5", "5,5"), ("0", "10^{-30}"),
    ("0", "e^{-100}"), ("0", r"\frac{1}{2004!}"), (r"6.63\times 10^{-34}", "0"),
    (r"6.63\times 10^{-34}", r"6.62\times 10^{-34}"), (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}"),
    ("a+b", "A+B"), ("x+1", "y+1"), ("x", "y"), ("3x", "3"), ("204_5", "204_6"), ("12", "1,2"),
    (r"\{1,2\}", "(1,2)"), ("(1,2)", "(2,1)"), ("(1,2)", "[1,2]"), ("(1,2)", "(1,2),(2,1)"),
    ("[0,1]", "[0,1)"), ("10:30", r"\frac13"), ("10:30", "1030"), ("x=5", "y=5"), ("x=5", "0=0"),
    ("y=2x+3", "y=y"), ("x^2+y^2=25", "x^2+y^2"), ("11a+c=7", "7"), ("B", "A, B"), ("A", "ABCD"),
    (r"\text{Evelyn}", "E"), (r"\text{even}", r"\text{not even}"), (r"\emptyset", "0"),
    (r"3\sqrt{13}", "3"), (r"2\pi", "2"), ("2^{10}", "2"), (r"2\sqrt{2}", "2.83"),
    (r"\infty", r"-\infty"), ("12 cm", "12 kg"), ("0.5", "50"), ("10000", "10"), ("x>3", "x<3"),
    (r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
    ("25", "25 million"), ("25", r"25\text{ thousand}"), ("25 million", "25"), ("25", "25 tenths"),
    ("25", "25 squared"), ("25", r"25\text{ minus}"), ("25", "25 degrees below zero"),
    ("25", "25s"),
    ("25", r"25\text{ no}"), ("42", r"42\text{ (or 43)}"), ("42", "[42]"), ("5", "5m"),
    ("$5", r"5\%"), (r"30^\circ", r"30\%"), (r"5\text{ m}", r"5\text{ s}"), ("A3_{16}", "A3_{15}"),
    (r"\theta", r"\Theta"), (r"\lambda", r"\Lambda"), ("1", r"\cos(10^{-20})"), ("1", "1+e^{-100}"),
    ("B", "(B)(C)"), ("B", "(B) 12 (C) 13"), ("B", "(B) is false"), ("[0,1)", r"0<x\le 1"),
    ("x>3", "t>3"), ("x>3", r"x\ge 3"), ("(2,5)", "5<x<2"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_every_gold_wins_against_its_own_echo(gold: str, answer: str) -> None:
    assert math.check_reference(gold) is None
    assert math.verify(boxed(gold), gold).score == 1.0
    assert math.verify(boxed(answer), f"${gold}$").score == 1.0


DRESSES = [
    "$%s$", "$$%s$$", r"\(%s\)", r"\[%s\]", "$%s$.", "  %s  ", "~%s~", "\n%s\n", "{%s}", "= %s",
    r"\displaystyle %s", r"\Large %s", r"{\bf %s}", r"\boldsymbol{%s}", r"\mathbf{%s}",
    r"\underline{%s}", r"\color{red}{%s}", r"\textcolor{blue}{%s}", r"\, %s \,", r"\quad %s", "%s;",
]  # fmt: skip


@pytest.mark.parametrize("dress", DRESSES)
def test_what_is_around_an_answer_changes_nothing(dress: str) -> None:
    for pairs, score in ((SAME, 1.0), (DIFFERENT, 0.0)):
        plain = [(g, a) for g, a in pairs if r"\text{12" not in a and "$" not in g + a]
        golds, answers = zip(*plain, strict=True)
        dressed = [dress % gold for gold in golds]
        found = math.verify_many([boxed(answer) for answer in answers], dressed)
        found += math.verify_many([boxed(dress % answer) for answer in answers], list(golds))
        # A wrong answer may be one that cannot be read, and so may a reference be.
        assert [v.score or 0.0 for v in found] == [score] * len(found)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("", "it is empty"), ("  ", "it is empty"), (r"\frac{1}{", "braces do not match"),
        ("@@ ?? !!", "cannot be read"), (None, "must be text or a number"), (True, "must be text"),
        ([[1]], "must be text"), (float("nan"), "must be finite"), ("1" * 3000, "longer than 2000"),
        ("(" * 100 + "x" + ")" * 100, "nest too deep"),
    ],
)  # fmt: skip
def test_a_bad_reference_is_named_and_never_scored(reference: object, reason: str) -> None:
    strict = Math(limits=WorkerLimits(cpu_s=0.5))
    fault = strict.check_reference(reference)
    assert fault is not None
    assert reason in fault
    verdict = strict.verify(boxed("7"), reference)
    assert (verdict.status, verdict.score) == (Status.BAD_GOLD, None)


def test_a_worker_that_cannot_start_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is scored; numbers, which need no worker, still are."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    alone = Math(limits=WorkerLimits(cpu_s=2.9))
    verdict = alone.verify(boxed(r"\frac12"), r"\int_0^1 x\,dx")
    assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
    assert "does not start" in verdict.reason
    assert alone.verify(boxed("2"), "2").score == 1.0
    with pytest.raises(WorkerError, match="does not start"):
        alone.check_reference(r"\int_0^2 x\,dx")


def test_importing_the_room_is_light() -> None:
    heavy = ["sympy", "math_verify", "docker", "torch", "transformers", "trl"]
    code = f"import assay.verifiers, sys; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_numbers_never_start_a_worker() -> None:
    code = (
        "from assay.verifiers import Math\n"
        "from assay.verifiers.maths import pool\n"
        "m = Math(); v = m.verify_many(['#### 1,024', r'\\boxed{3/4}'], ['1024', 0.75])\n"
        "print([x.score for x in v], len(pool._pools))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert found.stdout.split() == ["[1.0,", "1.0]", "0"]


@pytest.mark.parametrize(
    "answer", ["5x^2+7^{9^{99}}x", r"x\cdot 1(((12!)!)!)4", r"\frac{x}{9^{9^{9}}4}"]
)
def test_towers_of_powers_and_factorials_cost_no_worker(answer: str) -> None:
    verdict = math.verify(boxed(answer), "5x^2")
    assert (verdict.score, verdict.status) == (0.0, Status.TIMEOUT)
    assert math.verify(boxed("x^{3^{2}}"), "x^9").score == 1.0


@pytest.mark.parametrize(
    ("reference", "reply"),
    [
        (np.float64(0.5), "0.5"), (np.float32(0.1), "0.1"), (np.int64(18), "18"),
        (float(np.float32(0.1)), "0.1"), ([float(np.float32(33.3))], "33.3"),
        ([np.float64(2.5), 3], "2.5"), ({"answer": np.int32(7)}, "7"), (10**400, f"{10**400}"),
    ],
)  # fmt: skip
def test_a_number_of_numpy_is_a_reference(reference, reply) -> None:
    assert math.verify(boxed(reply), reference).score == 1.0
    assert math.verify(boxed("19"), reference).score == 0.0
    assert math.verify_many([boxed(reply)], [reference])[0].score == 1.0
    assert math.verify(boxed("1"), np.float64("nan")).status is Status.BAD_GOLD
    assert math.verify(boxed("1"), np.bool_(True)).status is Status.BAD_GOLD


def test_a_task_keeps_whole_numbers_of_numpy_as_json_has_them() -> None:
    task = Task("?", np.int64(3), metadata={"level": np.int8(2), "all": [np.int64(1)]})
    assert json.loads(json.dumps(task.to_json())) == task.to_json()
