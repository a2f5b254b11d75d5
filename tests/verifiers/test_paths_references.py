"""References of ways, orders and colourings: what can be used wins, what cannot is named."""

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
    MagicSquare,
    Maze,
    SlidingTiles,
    Sorting,
    SubsetSum,
    TopologicalOrder,
    Verifier,
    WaterJugs,
    WordLadder,
)
from assay.verifiers.catalogue import examples
from assay.verifiers.puzzles.puzzle import PuzzleVerifier

KINDS = {
    type(e.verifier)
    for e in examples()
    if isinstance(e.verifier, PuzzleVerifier)
    and e.verifier.many_answers
    and type(e.verifier).winning_reply is not Verifier.winning_reply
}
GOOD = [(e.verifier, e.reference) for e in examples() if type(e.verifier) in KINDS]
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
    reply = verifier.winning_reply(reference)
    assert reply is not None
    assert verifier.verify(reply, reference).score == 1.0, (reply, reference)
    assert verifier.verify("A B ?", reference).score == 0.0


@settings(deadline=None, derandomize=True, max_examples=100)
@given(reference=junk)
def test_no_json_value_raises(reference: Any) -> None:
    for kind in KINDS:
        kind().check_reference(reference)


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
