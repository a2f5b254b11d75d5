"""Labels, references that UTF-8 cannot hold, and searches against every answer there is."""

from itertools import product

import pytest

from assay.envs import make
from assay.verifiers import Colouring, RegexSynthesis, ShortAnswer
from assay.verifiers.puzzles.colouring import coloured
from assay.verifiers.puzzles.hanoi import fewest_moves
from assay.verifiers.puzzles.water_jugs import fewest_steps


def test_a_label_without_a_blank_is_set_aside() -> None:
    assert ShortAnswer().verify("答案是Paris", "Paris").score == 1.0
    graph = {"edges": [["A", "B"], ["B", "C"]], "start": "A", "goal": "C"}
    assert make("assay/GraphPath-v1").rubric.verify("答案是ABC", graph).score == 1.0


def test_a_string_that_utf8_cannot_hold_is_a_fault_of_the_reference() -> None:
    for reference in (
        {"positive": ["\ud800"], "negative": ["a"], "pattern": "b"},
        {"positive": ["a"], "negative": ["b"], "hidden_negative": ["\udfff"]},
    ):
        assert "UTF-8" in RegexSynthesis().check_reference(reference)
        assert RegexSynthesis().verify("a", reference).status == "bad_gold"


# -- what is found without a search ------------------------------------------------------------


def distances(start: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    """The fewest moves from an arrangement on three pegs to all others, by trying every move."""
    found, layer = {start: 0}, [start]
    while layer:
        following = []
        for state in layer:
            for disk, peg in product(range(len(state)), range(3)):
                if {state[disk], peg}.isdisjoint(state[:disk]):  # smaller disks on neither
                    after = (*state[:disk], peg, *state[disk + 1 :])
                    if after not in found:
                        found[after] = found[state] + 1
                        following.append(after)
        layer = following
    return found


def test_moves_on_three_pegs_are_as_few_as_a_search_finds() -> None:
    for disks in range(1, 5):
        every = list(product(range(3), repeat=disks))
        for start in every[:: 1 if disks < 4 else 5]:
            least = distances(start)
            for goal in every:
                moves = fewest_moves(start, goal, 3)
                assert len(moves) == least[goal]
                at = list(start)
                for a, b in moves:  # the smallest disk of a peg lies on top
                    disk = at.index(a)
                    assert b not in at[:disk]
                    at[disk] = b
                assert tuple(at) == goal


def reached(capacities: tuple[int, ...]) -> set[int]:
    """All amounts that jugs can hold, by trying every step."""
    seen, waiting = set(), [(0,) * len(capacities)]
    while waiting:
        water = waiting.pop()
        if water in seen:
            continue
        seen.add(water)
        for a, room in enumerate(capacities):
            for amount in (0, room):
                waiting.append((*water[:a], amount, *water[a + 1 :]))
            for b in range(len(capacities)):
                if a != b:
                    flow = min(water[a], capacities[b] - water[b])
                    now = list(water)
                    now[a], now[b] = water[a] - flow, water[b] + flow
                    waiting.append(tuple(now))
    return {amount for water in seen for amount in water} - {0}


@pytest.mark.parametrize(
    "capacities", [(4, 6), (3, 5), (2, 2), (6, 9, 4), (8, 4, 6), (5, 5, 10), (9, 6)]
)
def test_the_divisor_tells_what_can_be_measured(capacities) -> None:
    can = {target for target in range(1, 12) if fewest_steps(capacities, target)}
    assert can == reached(capacities)


class TestColouring:
    """A graph that cannot be coloured is a fault of the reference, whatever the reply."""

    GRAPH = {"edges": [["A", "B"], ["B", "C"], ["C", "A"]], "colours": ["red", "blue"]}  # noqa: RUF012  # read only

    @pytest.mark.parametrize("reply", ["A: red, B: blue, C: red", "A: red", "no", ""])
    def test_a_graph_that_cannot_be_coloured_is_never_scored(self, reply) -> None:
        verdict = Colouring().verify(reply, self.GRAPH)
        assert (verdict.status, verdict.score) == ("bad_gold", None)
        assert verdict.reason == Colouring().check_reference(self.GRAPH)

    def test_a_stricter_class_is_asked_about_every_reference(self) -> None:
        class Strict(Colouring):
            def check_reference(self, reference):
                return "refused"

        fine = {**self.GRAPH, "colours": 3}
        assert Colouring().verify("A: 1, B: 2, C: 3", fine).score == 1.0
        assert Strict().verify("A: 1, B: 2, C: 3", fine).status == "bad_gold"

    def test_a_search_ends_with_a_colouring_or_the_proof_that_there_is_none(self) -> None:
        wheel = [[(k + 1) % 5, (k - 1) % 5, 5] for k in range(5)] + [[0, 1, 2, 3, 4]]
        near = tuple(map(tuple, wheel))
        assert coloured(near, 3) == ()  # an odd cycle and a hub need four
        found = coloured(near, 4)
        assert all(found[a] != found[b] for a in range(6) for b in near[a])
