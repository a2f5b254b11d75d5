"""Puzzles with references that cannot be used, and with replies without end."""

from __future__ import annotations

import random

import pytest

from assay.verifiers import KnightsAndKnaves, Queens, Status, Sudoku, Zebra
from assay.verifiers.puzzles.puzzle import GridVerifier, PuzzleVerifier

GOOD = [
    (Sudoku(), {"grid": [[1, 0, 0, 0], [0, 0, 3, 0], [0, 4, 0, 0], [0, 0, 0, 0]]}),
    (Queens(), {"n": 6, "placed": [[1, 2]]}),
    (
        Zebra(),
        {
            "houses": 2,
            "categories": {"name": ["Ann", "Bob"], "pet": ["cat", "dog"]},
            "clues": [["at", "Ann", 2], ["left", "cat", "dog"]],
        },
    ),
    (
        KnightsAndKnaves(),
        {
            "people": ["Ann", "Bob"],
            "statements": [["says", 0, ["and", ["knave", 1], ["not", ["knave", 0]]]]],
        },
    ),
]
ODD = [None, True, 1.5, -1, 10**9, "x", "", [], {}, [[]], [1], {"a": 1}, "Ann", ["says"], "\ud800"]


def damaged(value: object, rng: random.Random) -> object:
    """A copy of a JSON value with one part of it replaced, dropped or said twice."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.2:
        return rng.choice(ODD)
    if isinstance(value, dict):
        key = rng.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        return rest if rng.random() < 0.2 else {**value, key: damaged(value[key], rng)}
    i = rng.randrange(len(value))
    kind = rng.randrange(5)
    if kind == 0:
        return value[:i] + value[i + 1 :]
    if kind == 1:
        return value[: i + 1] + value[i:]
    return [*value[:i], damaged(value[i], rng), *value[i + 1 :]]


@pytest.mark.parametrize(("verifier", "good"), GOOD, ids=lambda v: type(v).__name__)
def test_references_are_refused_in_words_or_judge_every_reply(verifier, good) -> None:
    rng = random.Random(5)  # noqa: S311  # test inputs, not secrets
    refused = 0
    for _ in range(1500):
        reference = damaged(good, rng)
        fault = verifier.check_reference(reference)
        refused += fault is not None
        assert fault is None or 10 < len(fault) < 300, fault
        for reply in ("1 2 3 4", "House 1: Ann, cat\nHouse 2: Bob, dog", "Ann: knight"):
            assert (verifier.verify(reply, reference).score is None) == (fault is not None)
    assert refused > 300


@pytest.mark.parametrize(("verifier", "good"), GOOD, ids=lambda v: type(v).__name__)
def test_deep_references_are_refused(verifier, good) -> None:
    deep: list = ["knight", 0]
    for _ in range(5000):
        deep = ["not", deep]
    references = [deep, dict.fromkeys(good, deep)]
    if isinstance(verifier, KnightsAndKnaves):
        references.append({**good, "statements": [["says", 0, deep]]})
    for reference in references:
        assert verifier.check_reference(reference)


@pytest.mark.parametrize(("verifier", "good"), GOOD, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize(
    "unit", ["1 ", "1\n", "Q", "\n\n", "Ann: knight\n", "House 1: ", "\\begin{a}", "[",
             '"a": ', "Row 1: ", "\\\\", "----\n", "cat, "]
)  # fmt: skip
def test_a_reply_of_a_megabyte_is_read_in_no_time(verifier, good, unit) -> None:
    """A hang guard: the time is that of finding the answer, whose length is bounded."""
    for form, size in (("%s", 10**6), ("%s", 5_500), ("<answer>%s</answer>", 5_500)):
        reply = form % (unit * (size // len(unit)))
        assert verifier.verify(reply, good).score == 0.0


@pytest.mark.parametrize("kind", [PuzzleVerifier, GridVerifier])
def test_a_class_without_rules_pays_nobody(kind) -> None:
    verdict = kind().verify("anything", None)
    assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
