import json
from typing import Any

import pytest

from assay.sandbox import Limits
from assay.verifiers import (
    Code,
    Countdown,
    Exact,
    Format,
    Math,
    Rubric,
    Status,
    Verdict,
    Verifier,
)

GOOD = r"<think>6 by 7</think><answer>\boxed{42}</answer>"


def scored(score: float | None) -> Any:
    if score is None:
        return lambda reply, reference: Verdict.fault(Status.SANDBOX_ERROR, "no docker")
    return lambda reply, reference: score


def test_the_total_is_the_weighted_mean() -> None:
    rubric = Rubric({"a": scored(1.0), "b": scored(0.5)}, weights={"b": 3.0})
    verdict = rubric.verify("", None)
    assert verdict.score == (1.0 * 1 + 0.5 * 3) / 4
    assert verdict.parts == {"a": 1.0, "b": 0.5}
    assert verdict.status is Status.CORRECT  # of the first part


def test_a_gate_pays_form_only_with_the_right_answer() -> None:
    rubric = Rubric({"form": Format(), "right": Math()}, weights={"form": 0.25}, gate="right")
    good, wrong, formless = rubric.verify_many(
        [GOOD, GOOD.replace("42", "41"), r"\boxed{42}"], ["42"] * 3
    )
    assert (good.score, good.status) == (1.0, Status.CORRECT)
    assert (wrong.score, wrong.status) == (0.0, Status.INCORRECT)
    assert wrong.parts == {"form": 1.0, "right": 0.0}  # as found, though not paid
    assert (formless.score, formless.extracted) == (0.8, "42")


def test_a_gate_in_part_open_pays_itself_only() -> None:
    rubric = Rubric({"tests": scored(0.5), "form": scored(1.0)}, gate="tests")
    assert rubric.verify("", None).score == 0.25


def test_a_fault_of_ours_is_never_a_score() -> None:
    rubric = Rubric({"a": scored(1.0), "b": scored(None)})
    verdict = rubric.verify("", None)
    assert (verdict.status, verdict.score) == (Status.SANDBOX_ERROR, None)
    assert verdict.reason == "b: no docker"
    assert verdict.parts == {"a": 1.0, "b": None}


def test_a_part_of_weight_zero_is_only_watched() -> None:
    rubric = Rubric({"watched": scored(None), "a": scored(1.0)}, weights={"watched": 0})
    verdict = rubric.verify("", None)
    assert (verdict.score, verdict.status) == (1.0, Status.CORRECT)
    assert verdict.parts == {"watched": None, "a": 1.0}
    gated = Rubric({"gate": scored(None), "a": scored(1.0)}, weights={"gate": 0}, gate="gate")
    assert gated.verify("", None).score is None  # a gate is more than watched


def test_a_reply_that_makes_a_part_raise_spoils_no_neighbour() -> None:
    class Whole(Verifier):
        """Judges batches only, and raises for one reply in them."""

        def verify_many(self, replies: Any, references: Any) -> list[Verdict]:
            if "boom" in replies:
                raise OverflowError("too large")
            return [Verdict.correct() for _ in replies]

    replies = ["a", "b", "boom", "c", "d"]
    found = Rubric({"whole": Whole()}).verify_many(replies, [None] * 5)
    assert [v.score for v in found] == [1.0, 1.0, None, 1.0, 1.0]
    assert "OverflowError: too large" in found[2].reason


@pytest.mark.parametrize("reply", [None, {"reply": "a"}, ["a"], 5, b"a"])
def test_what_is_no_text_spoils_no_neighbour(reply: Any) -> None:
    for verifier, right, reference in (
        (Exact(), "a", "a"),
        (Math(), r"\boxed{7}", "7"),
        (Rubric({"right": Math()}), r"\boxed{7}", "7"),
    ):
        found = verifier.verify_many([right, reply, right], [reference] * 3)
        assert (found[0].score, found[2].score) == (1.0, 1.0)
        assert found[1].score in (0.0, None)
    unclosed = "```python\nprint(1)"
    found = Code().verify_many([reply, unclosed], [{"stdio": [["", "1"]]}] * 2)
    assert [v.score for v in found] == [None, 0.0]


def test_a_part_that_raises_spoils_no_other() -> None:
    class Broken(Verifier):
        def verify_many(self, replies: Any, references: Any) -> list[Verdict]:
            raise OSError("disk full")

    rubric = Rubric({"a": scored(1.0), "broken": Broken()}, weights={"broken": 0})
    assert rubric.verify("", None).score == 1.0
    weighed = Rubric({"broken": Broken()}).verify("", None)
    assert (weighed.status, weighed.score) == (Status.VERIFIER_ERROR, None)
    assert "disk full" in weighed.reason


def test_what_is_watched_says_nothing_of_the_reply() -> None:
    rubric = Rubric({"watched": scored(1.0), "a": scored(0.0)}, weights={"watched": 0})
    verdict = rubric.verify("", None)
    assert (verdict.score, verdict.status) == (0.0, Status.INCORRECT)


def test_behind_a_closed_gate_a_fault_hides_no_wrong_answer() -> None:
    parts = {"gate": scored(0.0), "form": scored(None)}
    verdict = Rubric(parts, gate="gate").verify("", None)
    assert (verdict.score, verdict.status) == (0.0, Status.INCORRECT)
    assert verdict.parts == {"gate": 0.0, "form": None}
    assert Rubric({**parts, "gate": scored(1.0)}, gate="gate").verify("", None).score is None


def test_rubrics_nest() -> None:
    inner = Rubric({"a": scored(1.0), "b": scored(0.0)})
    assert Rubric({"inner": inner, "c": scored(1.0)}).verify("", None).score == 0.75


def test_a_reference_must_do_for_every_part_that_counts() -> None:
    rubric = Rubric({"math": Math(), "text": Exact()}, weights={"text": 0})
    assert rubric.check_reference(5) is None
    fault = rubric.check_reference("")
    assert fault is not None
    assert fault.startswith("math: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": {}}, "at least one part"),
        ({"gate": "c"}, "there is no part 'c'; the parts are a, b"),
        ({"weights": {"c": 1.0}}, "there is no part 'c'"),
        ({"weights": {"a": -1.0}}, "must be 0 or more"),
        ({"weights": {"a": float("nan")}}, "must be 0 or more"),
        ({"weights": {"a": "2"}}, "the weight of 'a' must be 0 or more, got '2'"),
        ({"weights": [1.0, 0.5]}, "weights must be a dict"),
        ({"weights": {"a": 0, "b": 0}}, "all weights are 0"),
    ],
)
def test_a_rubric_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    arguments = {"parts": {"a": scored(1.0), "b": scored(1.0)}} | options
    with pytest.raises(ValueError, match=message):
        Rubric(**arguments)


def test_the_digest_follows_what_scores_depend_on() -> None:
    def rubric(**options: Any) -> str:
        return Rubric({"a": Math(**options), "b": Format()}, gate="a").digest

    assert rubric() == rubric()
    assert rubric() != rubric(percent="unit")


STORED = [
    Math(extract=("boxed",), percent="unit", rounded_digits=None, units=False),
    Format(prefilled_think=True),
    Exact(case=False, extract=("answer",)),
    Code(partial=True, limits=Limits(cpu_s=1.5)),
    Countdown(use_all=False),
]


@pytest.mark.parametrize("verifier", STORED, ids=lambda v: type(v).__name__)
def test_a_verifier_survives_json_with_its_options(verifier) -> None:
    again = Verifier.from_json(json.loads(json.dumps(verifier.to_json())))
    assert again == verifier
    assert hash(again) == hash(verifier)
    assert again != type(verifier)()


def test_a_rubric_survives_json_with_parts_weights_and_gate() -> None:
    rubric = Rubric(
        {"accuracy": Math(), "form": Format(), "inner": Rubric({"same": Exact()})},
        weights={"form": 0.2, "inner": 0},
        gate="accuracy",
    )
    again = Rubric.from_json(json.loads(json.dumps(rubric.to_json())))
    assert again == rubric
    assert again != Rubric({"accuracy": Math(), "form": Format()}, gate="accuracy")
    reply = "<think>6 by 7</think><answer>42</answer>"
    assert again.verify(reply, "42") == rubric.verify(reply, "42")


def test_functions_are_equal_to_themselves_and_not_read_back() -> None:
    def one(reply, reference):
        return 1.0

    assert Rubric({"a": one}) == Rubric({"a": one})
    assert Rubric({"a": one}) != Rubric({"a": lambda reply, reference: 1.0})
    with pytest.raises(ValueError, match="one' cannot be read back"):
        Rubric.from_json(Rubric({"a": one}).to_json())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"name": "Maths"}, r"no verifier is called 'Maths'\. Did you mean Math\?"),
        ({}, "no verifier is called None"),
        ({"name": "Format", "strict": True}, "Format cannot be made from"),
        ({"name": "Rubric"}, "at least one part"),
    ],
)
def test_what_is_no_stored_verifier_is_refused(row, words) -> None:
    with pytest.raises(ValueError, match=words):
        Verifier.from_json(row)


def test_a_part_may_be_a_class_or_a_name() -> None:
    rubric = Rubric({"class": Math, "name": "Exact"})
    assert rubric == Rubric({"class": Math(), "name": Exact()})
    assert rubric.verify("7", "7").score == 1.0
    with pytest.raises(ValueError, match="ranges are for functions"):
        Rubric({"a": Math}, ranges={"a": (0, 2)})
    with pytest.raises(TypeError, match=r"a function or a Verifier, got <class 'dict'>"):
        Rubric({"a": dict})


def test_the_traceback_of_a_verifier_that_raises_is_logged(caplog) -> None:
    caplog.set_level("DEBUG", logger="assay")
    verdict = Rubric({"a": lambda reply, reference: reference["gold"]}).verify("7", {})
    assert verdict.reason == "a: KeyError: 'gold'"
    assert 'reference["gold"]' in caplog.text


@pytest.mark.parametrize("verifier", [Math(), Exact(), Rubric({"a": Exact()})])
def test_a_reply_that_is_no_text_is_named(verifier: Verifier) -> None:
    verdict = verifier.verify_many(["7", None], ["7", "7"])[1]
    assert verdict.score is None
    assert "a reply must be text, got None; no reply is ''" in verdict.reason
