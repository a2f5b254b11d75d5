"""Replies in plain dress are read by a short way: it finds what the long one finds."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import make
from assay.verifiers import Colouring
from assay.verifiers.puzzles import hanoi, water_jugs
from assay.verifiers.puzzles.colouring import coloured
from assay.verifiers.puzzles.hanoi import fewest_moves
from assay.verifiers.puzzles.water_jugs import fewest_steps
from assay.verifiers.text.read_answer import BLOCK, ONE_LINE, Unreadable, read_answer

WIDER = {  # the same reply as no task asks for it
    "Colouring": lambda reply: reply.replace(": ", ":  "),
    "Hanoi": lambda reply: reply.replace("->", " -> "),
    "Queens": lambda reply: reply.replace(" ", "  "),
    "Sorting": lambda reply: reply.replace(", ", ",  "),
    "WaterJugs": lambda reply: reply.replace(", ", ",  "),
}
TASKS = {
    (name, level): [make(f"assay/{name}-v1", level=level).task(k) for k in range(6)]
    for name in WIDER
    for level in (1, 3, 4)
}


@pytest.mark.parametrize("name", WIDER)
@settings(deadline=None, derandomize=True, max_examples=150)
@given(data=st.data())
def test_a_plain_reply_is_judged_as_one_that_is_written_wider(name, data) -> None:
    env = make(f"assay/{name}-v1")
    level = data.draw(st.sampled_from((1, 3, 4)))
    task, other = data.draw(st.permutations(TASKS[name, level]))[:2]
    mark = "\n" if name == "Queens" else ", "
    parts = task.solution.split(mark)
    parts = data.draw(
        st.sampled_from(
            [parts, parts[::-1], parts[:-1], [*parts, parts[0]], other.solution.split(mark)]
        )
    )
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(parts) - 1))
        parts = [*parts[:at], data.draw(st.sampled_from(ODD)), *parts[at:]]
    reply = mark.join(parts)
    plain, wide = (env.rubric.verify(r, task.reference) for r in (reply, WIDER[name](reply)))
    assert (plain.status, plain.score) == (wide.status, wide.score)
    assert plain.reason == wide.reason or plain.status == "unparseable"


ODD = [
    "A->A",
    "A->F",
    "fill E",
    "pour A into A",
    "empty A",
    "A: red",
    "A: puce",
    "Q . . Q",
    "-7",
    "x",
    "",
]


PARTS = [
    "a", "7", " ", "\n", "\n\n", "\n \n", ".", ", ", "Answer: ", "the solution is ", "**", "$", "`",
    "```", "<answer>", "</answer>", "</think>", "<think>", r"\boxed{", "}", "#", "~~~",
    "<|im_end|>", "é", "\ufeff", "\t", "\r\n", "\x0c", "\u2028", "\u017folution: ", "1. ", "- ",
]  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=400)
@given(
    st.lists(st.sampled_from(PARTS), max_size=8),
    st.sampled_from([BLOCK, ONE_LINE]),
    st.sampled_from([3, 2000]),
)
def test_an_answer_without_marks_is_what_the_rules_find(parts, rules, longest) -> None:
    reply = "".join(parts)
    by_rules = (*rules[:2], *rules[2:])  # equal, but not the one that has a short way
    assert by_rules is not rules
    assert read_answer(reply, rules, longest=longest) == read_answer(
        reply, by_rules, longest=longest
    )


def test_plain_moves_and_steps_are_read_as_in_words() -> None:
    for pegs in range(3, 7):
        for a in hanoi.PEGS[:pegs]:
            for b in hanoi.PEGS:
                read = outcome(lambda t, n=pegs: hanoi._moves(t, n), f"{a}->{b}, A->B")
                assert read == outcome(
                    lambda t, n=pegs: list(hanoi._read(t, hanoi.PEGS[:n])), f"{a}->{b}, A->B"
                )
    for jugs in range(2, 6):
        for told in water_jugs._BARE[5]:
            read = outcome(lambda t, n=jugs: water_jugs._steps(t, n), f"{told}, fill A")
            assert read == outcome(
                lambda t, n=jugs: list(water_jugs._read(t, water_jugs.JUGS[:n])), f"{told}, fill A"
            )


def outcome(read, text: str):
    try:
        return read(text)
    except Unreadable as error:
        return str(error)


# -- what is found without a search ------------------------------------------------------------


def test_moves_on_three_pegs_are_as_few_as_a_search_finds() -> None:
    for disks in range(1, 5):
        every = list(product(range(3), repeat=disks))
        for start in every[:: 1 if disks < 4 else 5]:
            for goal in every:
                moves = fewest_moves(start, goal, 3)
                assert len(moves) == len(hanoi._searched(start, goal, 3))
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
    """A right reply proves that there is a colouring; a wrong one does not excuse the reference."""

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
