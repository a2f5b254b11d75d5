"""What every verifier owes: the same promises, held to by the same tests."""

import doctest
import json
import pickle
import signal
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assay.verifiers
from assay.sandbox import Result, RunStatus, Sandbox
from assay.verifiers import (
    Code,
    Exact,
    Format,
    FunctionVerifier,
    Math,
    Rubric,
    Status,
    Verdict,
    Verifier,
)
from assay.verifiers.catalogue import CounterExample, Example, examples


def mentions(reply: str, reference: Any) -> float:
    return float(reference in reply.split("Answer: ")[-1:])


TAGGED = r"<think>6 by 7</think><answer>\boxed{42}</answer>"
RUBRIC = Rubric({"right": Math(), "form": Format()}, gate="right")
CASES = [
    *examples(),
    Example(FunctionVerifier(mentions), "42", ("Answer: 42",), ()),
    Example(RUBRIC, "42", (TAGGED,), (CounterExample("#### 42", "no tags", 0.5),), ("",)),
]
DEGENERATE = {
    "empty": "", "space": " ", "no idea": "I don't know", "zero": "0",
    "candidates": " or ".join(f"{n}" for n in range(200)),
    "boxed candidates": " ".join(rf"\boxed{{{n}}}" for n in range(200)),
    "junk": "lorem ipsum <think> $ \\boxed{ # " * 3200,
    "unicode": "\u202e\u0000\ufeff𝟜𝟚 ٤٢ ４２ \U0001f600" * 50,
    "deep braces": r"\boxed{" + "{" * 5000 + "}" * 5000 + "}",
    "deep brackets": r"\boxed{" + "(" * 900 + ")" * 900 + "}",
    "surrogates": "\ud800\udfff\udc80 \\boxed{\ud83d}", "surrogate number": "\\boxed{4\ud8002}",
    "null": "\\boxed{\x00}", "tags": "<think></think><answer></answer>", "unclosed": "<think>42",
    "fence": "```python\n```", "everything": r"\boxed{42 or x^2+2x+1 or even}",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def sandbox() -> Iterator[None]:
    codes = [case.verifier for case in CASES if isinstance(case.verifier, Code)]
    with Sandbox(backend="bwrap", slots=2) as box:
        for code in codes:
            code.sandbox = box
        yield
    for code in codes:
        code.sandbox = None


def _cases() -> Iterator[Any]:
    for i, case in enumerate(CASES):
        marks = [pytest.mark.bwrap] if isinstance(case.verifier, Code) else []
        yield pytest.param(case, marks=marks, id=f"{i}_{case.name}")


@pytest.fixture(params=_cases())
def case(request: pytest.FixtureRequest) -> Example:
    return request.param


def test_every_verifier_is_in_the_catalogue() -> None:
    told = {case.name for case in CASES}
    made_of_others = {"RayVerifier", "Judge", "PairwiseJudge", "RewardModel"}
    exported = [getattr(assay.verifiers, name) for name in assay.verifiers.__all__]
    kinds = {k.__name__ for k in exported if isinstance(k, type) and issubclass(k, Verifier)}
    assert kinds - {"Verifier"} - made_of_others <= told


def test_the_catalogues_scores_and_the_floor_for_degenerate_replies(case: Example) -> None:
    """One by one, in a batch and backward; of these DEGENERATE answers nothing."""
    assert case.wins
    assert case.verifier.check_reference(case.reference) is None
    replies = [*case.wins, *(loser.reply for loser in case.loses), *DEGENERATE.values()]
    references = [case.reference] * len(replies)
    batch = case.verifier.verify_many(replies, references)
    alone = [case.verifier.verify(r, g) for r, g in zip(replies, references, strict=True)]
    backward = case.verifier.verify_many(replies[::-1], references)[::-1]
    assert batch == alone == backward
    told = dict(zip(replies, batch, strict=True))
    for reply in case.wins:
        assert (told[reply].status, told[reply].score) == (Status.CORRECT, 1.0), (reply, told)
        assert told[reply].seconds >= 0
    for loser in case.loses:
        score = told[loser.reply].score
        assert score is not None, loser
        assert score < 1.0, loser
        assert score == pytest.approx(loser.score), loser
    for name, reply in DEGENERATE.items():
        assert told[reply].score == 0.0, (name, told[reply])


def test_a_bad_reference_scores_nothing_and_spoils_no_neighbour(case: Example) -> None:
    """Copies of a group share the reference, which need not be checked for each."""
    for bad in case.bad_references:
        assert case.verifier.check_reference(bad)
        references = [case.reference, case.reference, bad, bad, case.reference, bad]
        verdicts = case.verifier.verify_many([case.wins[0]] * 6, references)
        assert [verdict.score for verdict in verdicts] == [1.0, 1.0, None, None, 1.0, None]
        assert case.verifier.verify(case.wins[0], bad).status is Status.BAD_GOLD
        assert verdicts[2].status is Status.BAD_GOLD


def test_a_batch_must_pair_up(case: Example) -> None:
    with pytest.raises(ValueError, match="one reference for each reply"):
        case.verifier.verify_many(["a", "b"], [case.reference])
    assert case.verifier.verify_many([], []) == []


def test_copies_made_by_pickle_and_by_json_judge_alike(case: Example) -> None:
    if isinstance(case.verifier, Code):
        return  # with the sandbox it was lent here; test_program tells of its own
    copies = [pickle.loads(pickle.dumps(case.verifier))]
    if not isinstance(case.verifier, FunctionVerifier):
        row = json.loads(json.dumps(case.verifier.to_json()))
        copies.append(Verifier.from_json(row))
        assert copies[1] == case.verifier
    for copy in copies:
        assert copy.verify(case.wins[0], case.reference).score == 1.0


def test_closing_twice_does_no_harm() -> None:
    for verifier in (Math(), Format(), Exact(), Code(), Rubric({"a": Format()})):
        verifier.close()
        verifier.close()


FRAGMENTS = [
    "\\boxed{", "}", "{", "$", "\\frac", "\\text{ or }", "42", "x", "^", "_", "=", ",", "<", "-",
    "<think>", "</think>", "<answer>", "</answer>", "####", "answer is", "(", ")", "[", "]", "\\{",
    "\\}", "\\pm", "\\cup", "\\begin{pmatrix}", "\\end{pmatrix}", "&", "\\\\", "%", ".", " ", "\n",
]  # fmt: skip
pieces = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
hostile = st.one_of(st.text(max_size=80), pieces)
json_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
)  # fmt: skip
ALGEBRA = next(case for case in CASES if case.reference == "x^2+2x+1")
QUICK = [case for case in CASES if case.name != "Code" and case is not ALGEBRA]


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=100)
@given(reply=hostile)
def test_no_reply_raises_or_is_our_fault(reply: str) -> None:
    for case in QUICK:
        assert case.verifier.verify(reply, case.reference).score is not None, case


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=100)
@given(data=st.data())
def test_no_harm_to_a_winner_raises_or_is_our_fault(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(QUICK))
    winner = data.draw(st.sampled_from(case.wins))
    left, right = sorted(data.draw(st.tuples(*[st.integers(0, len(winner))] * 2)))
    reply = winner[:left] + data.draw(hostile) + winner[right:]
    assert case.verifier.verify(reply, case.reference).score is not None, case


@settings(deadline=None, derandomize=True, max_examples=40)
@given(inside=st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join))
def test_no_answer_that_needs_algebra_is_our_fault(inside: str) -> None:
    verdict = ALGEBRA.verifier.verify(f"\\boxed{{x^2{inside}}}", "x^2+2x+1")
    assert verdict.score == 0.0


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=100)
@given(reference=json_values)
def test_no_reference_raises(reference: Any) -> None:
    for verifier in {case.verifier for case in CASES}:
        fault = verifier.check_reference(reference)
        assert fault is None or fault


scores = st.floats(0, 1)
verdicts = st.builds(
    lambda status, score, reason, extracted, parts, seconds: Verdict(
        status, None if status.ours else score, reason, extracted, parts, seconds
    ),
    st.sampled_from(Status),
    scores,
    st.text(),
    st.none() | st.text(),
    st.dictionaries(st.text(), st.none() | scores),
    st.floats(0, 1e6),
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(verdict=verdicts)
def test_a_verdict_survives_json(verdict: Verdict) -> None:
    row = json.loads(json.dumps(verdict.to_json()))
    copy = Verdict.from_json(row)
    assert copy == verdict
    assert copy.to_json() == verdict.to_json()


@pytest.mark.parametrize("status", Status)
def test_only_the_policys_doing_has_a_score(status: Status) -> None:
    with pytest.raises(ValueError, match="does not go with score"):
        Verdict(status, 0.0 if status.ours else None)
    assert status.ours == (status.value in {"bad_gold", "verifier_error", "sandbox_error"})


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf"), "1"])
def test_a_score_is_a_finite_number(score: Any) -> None:
    with pytest.raises(ValueError, match="must be a finite number"):
        Verdict(Status.CORRECT, score)
    with pytest.raises(ValueError, match="must be a finite number"):
        Verdict(Status.CORRECT, 1.0, parts={"a": score})


def test_a_verifier_that_raises_is_at_fault_itself() -> None:
    def broken(reply: str, reference: Any) -> float:
        raise KeyError("weights")

    verdict = FunctionVerifier(broken).verify("a", "b")
    assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
    assert verdict.reason == "KeyError: 'weights'"
    assert Verifier().verify("a", "b").status is Status.VERIFIER_ERROR


@pytest.mark.parametrize("batch", [False, True])
def test_an_exit_of_a_verifier_is_its_own_fault_and_that_of_a_signal_ends_the_run(batch) -> None:
    def exits(reply: str, reference: Any) -> float:
        sys.exit("no licence")

    def verify(function: Any) -> Verdict:
        one = FunctionVerifier(function)
        return Rubric({"a": one}).verify("a", "b") if batch else one.verify("a", "b")

    assert verify(exits).status is Status.VERIFIER_ERROR
    assert verify(exits).reason.endswith("SystemExit: no licence")
    with pytest.raises(KeyboardInterrupt):
        verify(lambda *_: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with pytest.raises(SystemExit):
            verify(lambda *_: signal.raise_signal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)


def test_examples_in_the_docs_hold() -> None:
    page = Path(__file__).parents[2] / "docs" / "verifiers.md"
    text = page.read_text().replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert runner.tries > 5
    assert runner.failures == 0


def test_examples_in_docstrings_hold(modules) -> None:
    for module in modules("assay.verifiers"):
        assert doctest.testmod(module).failed == 0, module.__name__


def test_yes_or_no_is_never_a_text() -> None:
    """``"false"`` would count as yes."""
    for name, option in (("Format", "graded"), ("Json", "only"), ("Instructions", "partial")):
        with pytest.raises(ValueError, match=f"{option} of {name} must be true or false"):
            Verifier.from_json({"name": name, option: "false"})
        assert not getattr(Verifier.from_json({"name": name, option: False}), option)


def test_a_verdict_that_a_verifier_keeps_is_not_written_to() -> None:
    kept = Verdict.correct("as ever")
    verifier = FunctionVerifier(lambda reply, reference: kept)
    found = verifier.verify("a", "b")
    assert found == kept
    assert found is not kept
    assert found.seconds > 0.0
    assert kept.seconds == 0.0


def test_a_verdict_that_nobody_keeps_is_timed() -> None:
    verifier = FunctionVerifier(lambda reply, reference: Verdict.wrong("no"))
    assert verifier.verify("a", "b").seconds > 0.0


def test_verdicts_stay_frozen_and_take_what_they_did() -> None:
    verdict = Verdict(Status("correct"), 1, parts={"a": 1, "b": None})
    assert (type(verdict.score), verdict.parts) == (float, {"a": 1.0, "b": None})
    assert replace(verdict, reason="why") == Verdict(
        Status.CORRECT, 1.0, "why", None, {"a": 1.0, "b": None}
    )
    with pytest.raises(FrozenInstanceError):
        verdict.score = 0.0
    assert Verdict("incorrect", 0.0).status is Status.INCORRECT
    with pytest.raises(ValueError, match="does not go with score None"):
        Verdict(Status.CORRECT, None)
    with pytest.raises(ValueError, match="does not go with score"):
        Verdict(Status.BAD_GOLD, 0.0)


def test_names_of_the_version_before_work_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="called oracle_reply"):

        class Written(Verifier):
            def winning_reply(self, reference: Any) -> str:
                return f"so {reference}"

    assert Written().oracle_reply(3) == "so 3"
    with pytest.warns(DeprecationWarning, match="called is_cheap"):
        assert not Written().quick
    with pytest.warns(DeprecationWarning, match="called oracle_reply"):
        assert Exact().winning_reply("7") == "7"
    with pytest.warns(DeprecationWarning, match="called format_answer"):
        assert assay.verifiers.given_as("7", ["hash"]) == "#### 7"
    with pytest.warns(DeprecationWarning, match="called orphans"):
        assert Result(RunStatus.OK, orphans=2).strays == 2
