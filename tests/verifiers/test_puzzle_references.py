"""References of puzzles: what can be used wins, what cannot is named; and replies without end."""

import copy
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import (
    Colouring,
    GraphPath,
    KnightsAndKnaves,
    Maze,
    Sorting,
    Status,
    Verifier,
)
from assay.verifiers.catalogue import examples
from assay.verifiers.puzzles.puzzle import GridVerifier, PuzzleVerifier

GOOD = [(e.verifier, e.reference) for e in examples() if isinstance(e.verifier, PuzzleVerifier)]
ONE_OF_EACH = list({type(v): (v, r) for v, r in GOOD}.values())
each = pytest.mark.parametrize(
    ("verifier", "good"), ONE_OF_EACH, ids=[type(v).__name__ for v, _ in ONE_OF_EACH]
)
junk: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 12)
    | st.just(10**40)
    | st.floats()
    | st.sampled_from(["A", "B", "S.G", "##", "", "ascending", "value", "alphabet", "\ud800", "é"])
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each place inside a JSON value, as its container and its key."""
    pairs = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [(value, key) for key, _ in pairs] + [p for _, inner in pairs for p in places(inner)]


@settings(deadline=None, derandomize=True, max_examples=120)
@given(data=st.data())
def test_a_reference_that_was_harmed_is_named_or_can_still_be_won(data: st.DataObject) -> None:
    verifier, good = data.draw(st.sampled_from(GOOD))
    reference = copy.deepcopy(good)
    for _ in range(data.draw(st.integers(1, 2))):
        spots = places(reference)
        if not spots:
            break
        container, key = data.draw(st.sampled_from(range(len(spots))).map(spots.__getitem__))
        if data.draw(st.booleans()):
            container[key] = data.draw(junk)
        elif isinstance(container, list):
            container.insert(key, data.draw(junk))
        else:
            del container[key]
    fault = verifier.check_reference(reference)
    if fault is not None:
        assert fault
        assert verifier.verify("A", reference).score is None
        return
    assert verifier.verify("A B ?", reference).score == 0.0
    if type(verifier).oracle_reply is not Verifier.oracle_reply and verifier.many_answers:
        reply = verifier.oracle_reply(reference)
        assert reply is not None
        assert verifier.verify(reply, reference).score == 1.0, (reply, reference)


ROW = ["S" + "." * 98 + "G"]


@pytest.mark.parametrize(
    ("verifier", "reference", "words"),
    [
        (Maze(), {"grid": [*ROW, *["." * 100] * 100]}, "at most 10000 cells, got 101x100"),
        (GraphPath(), {"edges": [[0, 1]] * 5001, "start": 0, "goal": 1}, "list of 1 to 5000 edges"),
        (GraphPath(), {"edges": [[0, 1, math.nan]], "start": 0, "goal": 1}, "got nan"),
        (Colouring(), {"edges": [[n, n + 1] for n in range(200)], "colours": 2}, "200 vertices"),
        (Sorting(), {"items": [*range(1001)], "order": "descending"}, "list of 2 to 1000"),
    ],
)
def test_what_is_wrong_with_a_reference_is_said(verifier: Verifier, reference, words) -> None:
    assert words in (verifier.check_reference(reference) or "")


@each
def test_deep_references_are_refused(verifier, good) -> None:
    deep: list = ["knight", 0]
    for _ in range(5000):
        deep = ["not", deep]
    references = [deep, dict.fromkeys(good, deep)]
    if isinstance(verifier, KnightsAndKnaves):
        references.append({**good, "statements": [["says", 0, deep]]})
    for reference in references:
        assert verifier.check_reference(reference)


@pytest.mark.parametrize("kind", [PuzzleVerifier, GridVerifier])
def test_a_class_without_rules_pays_nobody(kind) -> None:
    verdict = kind().verify("anything", None)
    assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
