"""A verdict is timed without changing one that somebody else holds."""

from dataclasses import FrozenInstanceError, replace

import pytest

from assay.verifiers import FunctionVerifier, Status, Verdict


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
