"""Labels, references that UTF-8 cannot hold, and searches against every answer there is."""

import itertools
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import make
from assay.verifiers import (
    Colouring,
    Countdown,
    RegexSynthesis,
    Satisfiability,
    ShortAnswer,
    Status,
)
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


def test_clauses_without_a_solution_are_refused() -> None:
    draw = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        size = int(draw.integers(1, 6))
        clauses = [
            (draw.choice((1, -1), n) * draw.integers(1, size + 1, n)).tolist()
            for n in draw.integers(1, 4, draw.integers(1, 21))
        ]
        possible = any(
            all(any(values[abs(m) - 1] == (m > 0) for m in clause) for clause in clauses)
            for values in itertools.product((False, True), repeat=size)
        )
        fault = Satisfiability().check_reference({"clauses": clauses})
        tautology = all(any(-m in clause for m in clause) for clause in clauses)
        assert (fault is None) == (possible and not tautology), clauses
        refused += not possible
    assert 50 < refused < 250


def test_a_search_that_would_be_long_gives_up() -> None:
    draw = np.random.default_rng(0)
    clauses = [
        (draw.choice((1, -1), 3) * (draw.permutation(200)[:3] + 1)).tolist() for _ in range(2000)
    ]
    assert Satisfiability().check_reference({"clauses": clauses}) is None


def test_variables_may_be_capital() -> None:
    assert Satisfiability().verify("X1 = True, X_2 IS F", {"clauses": [[1], [-2]]}).score == 1.0


PROBLEM = {"numbers": [3, 7, 25], "target": 46}


@pytest.mark.parametrize(
    ("reply", "status"), [("(" * 4000, Status.UNPARSEABLE), ("9" * 4000, Status.UNPARSEABLE)]
)
def test_nothing_else_does(reply, status) -> None:
    verdict = Countdown().verify(reply, PROBLEM)
    assert (verdict.score, verdict.status) == (0.0, status), verdict


def test_some_numbers_may_be_left_over_only_where_that_is_asked_for() -> None:
    problem = {"numbers": [3, 7, 25], "target": 28}
    assert Countdown().verify("25+3", problem).reason == "leaves 7 unused"
    assert Countdown(use_all=False).verify("25+3", problem).score == 1.0
    assert Countdown(use_all=False).verify("25+3+3-3", problem).score == 0.0


@pytest.mark.parametrize(
    "reference",
    [None, {}, {"numbers": [], "target": 1}, {"numbers": [1.5], "target": 1},
     {"numbers": [-1], "target": -1}, {"numbers": [10**9], "target": 10**9},
     {"numbers": [1], "target": "1"}, {"numbers": [True], "target": 1}],
)  # fmt: skip
def test_references_that_cannot_be_used_are_bad_golds(reference) -> None:
    verdict = Countdown().verify("1", reference)
    assert (verdict.score, verdict.status) == (None, Status.BAD_GOLD)


expressions = st.recursive(
    st.integers(0, 99).map(lambda n: (str(n), Fraction(n), [n])),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner)
    .filter(lambda t: t[1] != "/" or t[2][1] != 0)
    .map(
        lambda t: (
            f"({t[0][0]}{t[1]}{t[2][0]})",
            {"+": Fraction.__add__, "-": Fraction.__sub__, "*": Fraction.__mul__,
             "/": Fraction.__truediv__}[t[1]](t[0][1], t[2][1]),
            t[0][2] + t[2][2],
        )
    ),
    max_leaves=8,
)  # fmt: skip


@settings(deadline=None, derandomize=True)
@given(expressions)
def test_values_are_exact(expression) -> None:
    text, value, numbers = expression
    if value.denominator == 1:
        reference = {"numbers": numbers, "target": int(value)}
        assert Countdown().verify(text, reference).score == 1.0
        assert Countdown().verify(text, {**reference, "target": int(value) + 1}).score == 0.0


@settings(deadline=None, derandomize=True)
@given(st.text() | st.text("0123456789+-*/() =<answer>\\boxed{}"))
def test_no_reply_raises_or_wins_by_accident(reply) -> None:
    assert Countdown().verify(reply, {"numbers": [97, 98], "target": 95061}).score == 0.0
