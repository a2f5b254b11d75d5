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
    HamiltonianPath,
    Hanoi,
    Knapsack,
    KnightsAndKnaves,
    MagicSquare,
    Maze,
    SlidingTiles,
    Sorting,
    Status,
    SubsetSum,
    TopologicalOrder,
    Verifier,
    WaterJugs,
    WordLadder,
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


@settings(deadline=None, derandomize=True, max_examples=250)
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
    if type(verifier).winning_reply is not Verifier.winning_reply and verifier.many_answers:
        reply = verifier.winning_reply(reference)
        assert reply is not None
        assert verifier.verify(reply, reference).score == 1.0, (reply, reference)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(reference=junk)
def test_no_json_value_raises(reference: Any) -> None:
    for verifier, _ in ONE_OF_EACH:
        verifier.check_reference(reference)


ROW = ["S" + "." * 98 + "G"]


@pytest.mark.parametrize(
    ("verifier", "reference", "words"),
    [
        (Maze(), {"grid": [*ROW, *["." * 100] * 100]}, "at most 10000 cells, got 101x100"),
        (Maze(), {"grid": ["S.", "GG"]}, "expected one S and one G, got 1 and 2"),
        (Maze(), {"grid": ["S#G"]}, "the goal cannot be reached"),
        (Maze(), {"grid": ["SG"], "shortest": 1}, "shortest must be true or false, got 1"),
        (Hanoi(), {"start": [[11]], "goal": [[]]}, "start must be a list of 3 to 6 pegs"),
        (Hanoi(), {"start": [[2], [], []], "goal": [[], [2], []]}, "must be 1 to 1, each once"),
        (Hanoi(), {"start": [[1], [], []], "goal": [[], [2, 1], []]}, "same pegs and disks"),
        (
            Hanoi(optimal=True),
            {"start": [[*range(10, 0, -1)], [], []], "goal": [[], [*range(10, 0, -1)], []]},
            "known up to 20000 states, got 59049",
        ),
        (GraphPath(), {"edges": [[0, 1]] * 5001, "start": 0, "goal": 1}, "list of 1 to 5000 edges"),
        (GraphPath(), {"edges": [[0, 1]], "start": 0, "goal": 0}, "start and goal must differ"),
        (GraphPath(), {"edges": [[0, 1]], "start": 0, "goal": 2}, "must be vertices of an edge"),
        (GraphPath(), {"edges": [["A B", 1]], "start": 1, "goal": 2}, "got 'A B'"),
        (GraphPath(), {"edges": [[0, 1, math.nan]], "start": 0, "goal": 1}, "got nan"),
        (
            GraphPath(),
            {"edges": [[0, 1]], "start": 1, "goal": 0, "directed": True},
            "cannot be reached",
        ),
        (Colouring(), {"edges": [[0, 1], [1, 2], [2, 0]], "colours": 2}, "coloured with 2 colours"),
        (Colouring(), {"edges": [[n, n + 1] for n in range(200)], "colours": 2}, "200 vertices"),
        (Colouring(), {"edges": [[0, 1]], "colours": ["red", "Red"]}, "colours must differ"),
        (TopologicalOrder(), {"edges": [[1, 2], [2, 3], [3, 1]]}, "must not lead in a circle"),
        (HamiltonianPath(), {"edges": [[n, n + 1] for n in range(100)]}, "3 to 100 vertices"),
        (HamiltonianPath(), {"edges": [[0, 1], [0, 2], [0, 3]]}, "no path visits every vertex"),
        (SlidingTiles(), {"board": [[1, 2], [3]]}, "2 to 5 rows of one length"),
        (SlidingTiles(), {"board": [[2, 1], [3, 0]]}, "no moves put the tiles in order"),
        (WaterJugs(), {"capacities": [200, 200], "target": 1}, "at most 20000 states"),
        (WaterJugs(), {"capacities": [2, 4], "target": 1}, "1 cannot be measured with [2, 4]"),
        (WordLadder(), {"words": ["ab", "cd"], "start": "ab", "goal": "cd"}, "no ladder leads"),
        (SubsetSum(), {"numbers": [200_001, 1], "target": 1}, "from 1 to 200000, got 200001"),
        (SubsetSum(), {"numbers": [2, 4], "target": 3}, "no choice of numbers adds up to 3"),
        (Knapsack(), {"items": {"a": [1, 1], "b": [1, 1]}, "capacity": 2}, "but not all"),
        (MagicSquare(), {"square": [[1, 0, 0]] + [[0] * 3] * 2}, "no magic square keeps these"),
        (Sorting(), {"items": [*range(1001)], "order": "descending"}, "list of 2 to 1000"),
        (Sorting(), {"items": [1, True], "order": "ascending"}, "got True"),
        (Sorting(), {"items": ["a b", "a"], "order": "ascending"}, "got 'a b'"),
        (Sorting(), {"items": [2, 1], "order": "ascending", "by": "length"}, "can be sorted by"),
        (Sorting(), {"items": [1, 2, 2], "order": "ascending"}, "must not be in order already"),
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


@each
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
