"""Right answers in the words that models put around them, and what no words can save."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from assay.verifiers import (
    SQL,
    CoinChange,
    Colouring,
    Countdown,
    GraphPath,
    Hanoi,
    Integral,
    KnightsAndKnaves,
    LightsOut,
    MagicSquare,
    Math,
    MultipleChoice,
    Queens,
    RegexSynthesis,
    ShortAnswer,
    SlidingTiles,
    Sorting,
    SpanningTree,
    Status,
    SubsetSum,
    Sudoku,
    Verifier,
    WaterJugs,
)
from assay.verifiers.catalogue import Example, examples

HUGE = 10**5000
GRID = "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1"
ASKED: list[tuple[Verifier, Any, str, str]] = [
    (Sudoku(), {"grid": "1034341221434321"}, GRID, GRID.replace("4 3 2 1", "4 3 1 2")),
    (Queens(), {"n": 4, "placed": []}, "2, 4, 1, 3", "1, 2, 3, 4"),
    (Countdown(), {"numbers": [3, 7, 25], "target": 46}, "25+7*3", "25+7+3"),
    (Integral(), {"integrand": "2x", "variable": "x"}, "x^2 + C", "x^3 + C"),
    (
        RegexSynthesis(),
        {"positive": ["a1", "b2"], "negative": ["1"], "hidden_positive": ["c3"]},
        r"[a-z]\d+",
        r"[a-z]\d*x",
    ),
    (MultipleChoice(), {"answer": "B", "options": ["Rome", "Paris"]}, "B", "A"),
    (MultipleChoice(), "(B)", "B", "A"),  # BIG-Bench Hard
    (ShortAnswer(), ["Eiffel Tower"], "Eiffel Tower", "Louvre"),
    (
        GraphPath(),
        {"edges": [["A", "B"], ["B", "D"]], "start": "A", "goal": "D"},
        "A->B->D",
        "A->D",
    ),
]
FRAMES = [
    "Answer: {}", "I work it out.\n\n**Final answer:** {}",
    "I work it out.\n\n**Final answer**: {}", "I work it out.\n\n**Answer: {}**",
    "I work it out.\n\nSo the answer is **{}**", "I work it out.\n\n### Final Answer\n{}",
    "I work it out.\n\n```\n{}\n```", "<answer>**{}**</answer>",
]  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("asked", ASKED, ids=[type(row[0]).__name__ for row in ASKED])
def test_words_before_an_answer_do_not_count(
    asked: tuple[Verifier, Any, str, str], frame: str
) -> None:
    verifier, reference, right, wrong = asked
    assert verifier.verify(frame.format(right), reference).score == 1.0
    assert verifier.verify(frame.format(wrong), reference).score == 0.0
    assert verifier.verify(frame.format(f"not {right}"), reference).score == 0.0
    assert verifier.verify(frame.format(f"{right} or {wrong}"), reference).score == 0.0


def test_many_lines_across_the_page_are_read_in_linear_time() -> None:
    verdict = GraphPath().verify("A, B, D" + "\n---" * 200_000, WALK)
    assert (verdict.score, verdict.seconds < 2) == (1.0, True)
    assert GraphPath().verify("\n---" * 9, WALK).score == 0.0


DATA = {
    "schema": "CREATE TABLE T (a, b)",
    "databases": [{"T": [[1, 2], [3, 4]]}, {"T": [[1, 2]]}],
    "query": "SELECT count(*) FROM T",
}


def test_wide_fields_are_not_printed() -> None:
    """One step of SQLite's machine would write a billion blanks, and no count of steps see it."""
    for call in (
        "printf('%.*c', 1000000000, 'a')",
        "printf('%1000000000d', 1)",
        "format('%.1000000000c', 'a')",
        "printf('%*d', '1000000000', 1)",
    ):
        verdict = SQL().verify(f"SELECT {call}", DATA)
        assert (verdict.status, verdict.seconds < 1) == (Status.RUNTIME_ERROR, True), verdict
    right = "SELECT printf('%.0f', count(*)) + 0 FROM T"
    assert SQL().verify(right, DATA).score == 1.0


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _leaves(value[key], (*path, key))
    if isinstance(value, list):
        for place in range(min(3, len(value))):
            yield from _leaves(value[place], (*path, place))


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = _replaced(value[path[0]], path[1:], new)
    return changed


COINS, BAG = {"coins": [1, 5, 8], "amount": 10}, {"numbers": [3, 5, 8, 13], "target": 16}
TOWER = {"start": [[2, 1], [], []], "goal": [[], [], [2, 1]]}
JUGS = {"capacities": [3, 5], "target": 2}
SQUARE = {"square": [[8, 0, 6], [0, 5, 0], [0, 0, 2]]}
EDGE = {"edges": [["A", "B"]], "colours": ["red", "blue"]}
BOTH = ["and", ["knight", 0], ["knight", 1]]
LIARS = {"people": ["Ann", "Bob"], "statements": [["says", 0, BOTH]]}
TICKS = "| | Knight | Knave |\n|---|---|---|\n| Ann | ✓ | |\n| Bob | | ✓ |"
WALK = {"edges": [["A", "B"], ["B", "D"]], "start": "A", "goal": "D"}
NUMBERS = {"numbers": [3, 7, 25], "target": 46}
TRIANGLE = {"edges": [["A", "B", 2], ["B", "C", 1], ["A", "C", 3]]}
EXACT = Math(worked_out=True)
SQUARE_OF_X = {"integrand": "2x", "variable": "x"}


@pytest.mark.parametrize(
    ("verifier", "reference", "reply", "score"),
    [
        (CoinChange(), COINS, "10 = 5 + 5", 1.0),
        (CoinChange(), COINS, "10 = 8 + 1 + 1", 0.0),
        (CoinChange(), {"coins": [1, 5, 10], "amount": 10}, "10 = 10", 1.0),
        (CoinChange(), {"coins": [1, 5, 10], "amount": 10}, "10 =", 0.0),
        (SubsetSum(), BAG, "16 = 3 + 13", 1.0),
        (SubsetSum(), BAG, "16 = 3 + 8", 0.0),
        (SubsetSum(), BAG, "16 = 16", 0.0),
        (Hanoi(), TOWER, "to B from A, to C from A, to C from B", 1.0),
        (Hanoi(), TOWER, "Move disk 1 onto B from A, A to C, B to C", 1.0),
        (Hanoi(), TOWER, "to A from B, to A from C, to B from C", 0.0),
        (Hanoi(), TOWER, "A<-B, A<-C, B<-C", 0.0),
        (WaterJugs(), JUGS, "Fill B. Pour into A from B.", 1.0),
        (WaterJugs(), JUGS, "FILL B, POUR WATER INTO JUG B FROM JUG A", 0.0),
        (MagicSquare(), SQUARE, "8-1-6\n3 - 5 - 7\n4 9 2", 1.0),
        (MagicSquare(), SQUARE, "-8 -1 -6\n-3 -5 -7\n-4 -9 -2", 0.0),
        (Colouring(), EDGE, "Vertex A: red, vertex B: blue", 1.0),
        (Colouring(), EDGE, "Vertex A: red, vertex B: red", 0.0),
        (KnightsAndKnaves(), LIARS, "Ann: knight ✓\nBob: knight ✓", 1.0),
        (KnightsAndKnaves(), LIARS, TICKS, 0.0),  # both were read as knaves
        (EXACT, "6", r"\boxed{6 \bmod 8}", 1.0),
        (EXACT, "6", r"\boxed{14 \bmod 8}", 0.0),
        (EXACT, "6", r"\boxed{2 \cdot 3 \pmod 8}", 0.0),
        (EXACT, "7", r"\boxed{-3 \bmod 10}", 0.0),
        (Math(), "6", r"\boxed{14 \bmod 8}", 1.0),
        (EXACT, "1021_{4}", r"\boxed{1,021}", 1.0),
        (EXACT, "5", r"\boxed{x \equiv 5 \pmod{12}}", 1.0),
        (EXACT, "5", r"\boxed{x \equiv 17 \pmod{12}}", 0.0),
        (EXACT, "(2, -6)", r"\boxed{-(-2, 6)}", 0.0),
        (Integral(), SQUARE_OF_X, r"\boxed{x^2 + K, K \in \mathbb{R}}", 1.0),
        (Integral(), SQUARE_OF_X, r"\boxed{x^3 + K, K \in \mathbb{R}}", 0.0),
        (GraphPath(), WALK, "<answer>The answer is A->B->D.\nOr A->D</answer>", 0.0),  # was paid
        (GraphPath(), WALK, "<answer>Answer: A->D\nAnswer: A->B->D</answer>", 0.0),
        (GraphPath(), WALK, "A -> B, so A = A -> B -> D", 0.0),
        (Countdown(), NUMBERS, "<answer>The answer is 25+7*3. Or 25+7+3.</answer>", 0.0),
        (Sudoku(), {"grid": "1034341221434321"}, f"<answer>Answer: {GRID}</answer>", 1.0),
        (Sudoku(), {"grid": "1034341221434321"}, f"> {GRID}".replace("\n", "\n> "), 1.0),
        (GraphPath(), WALK, "答案：A，B，D。", 1.0),
        (GraphPath(), WALK, "Answer: A ➡️ B ➡️ D ✅", 1.0),
        (GraphPath(), WALK, r"\boxed{\mathrm{A}\to\mathrm{B}\to\mathrm{D}}", 1.0),
        (GraphPath(), WALK, '{"path": ["A", "B", "D"]}', 1.0),
        (GraphPath(), WALK, "The path:\n\n> A, B, D\n\n---", 1.0),
        (Countdown(), NUMBERS, "（25+7*3）＝46。", 1.0),
        (SubsetSum(), BAG, "S = {3, 13}", 1.0),
        (SubsetSum(), BAG, "S = {3, 8}", 0.0),
        (Sorting(), {"items": [3, -1, 2], "order": "ascending"}, "–1, 2, 3", 1.0),
        (Sorting(), {"items": [3, -1, 2], "order": "ascending"}, r"$-1 \lt 2 \lt 3$", 1.0),
        (SpanningTree(), TRIANGLE, "AB, BC", 1.0),
        (SpanningTree(), TRIANGLE, "A-B (weight 2), B-C (weight 1)", 1.0),
        (SpanningTree(), TRIANGLE, "AB, AC", 0.0),
        (MagicSquare(), SQUARE, "Row 1: 8 1 6\nRow 2: 3 5 7\nRow 3: 4 9 2", 1.0),
        (MagicSquare(), SQUARE, "8|1|6\n-+-+-\n3|5|7\n-+-+-\n4|9|2", 1.0),
        (LightsOut(), {"grid": [".#.", "###", ".#."]}, "Press (1, 1).", 1.0),
        (SlidingTiles(), {"board": [[1, 2, 3], [4, 5, 6], [7, 0, 8]]}, "Move tile 8", 1.0),
        (WaterJugs(), JUGS, "Fill B to the brim. Pour B into A until A is full: (3, 2)", 1.0),
        (WaterJugs(), JUGS, "Fill B to the brim. Pour A into B until A is empty.", 0.0),
        (Math(), "5", "I work it out.\n\n---\n\n\\boxed{5}", 1.0),
        (Math(), "5", "I work it out.\n\n---\n\n**5**", 1.0),
        (Math(), "5", "1 -\n\n\\boxed{5}", 0.0),
        (Math(), "7" * 200, "7" * 200, 1.0),
        (Math(), "7" * 160, "7" * 161, 0.0),
    ],
)
def test_forms_in_which_answers_are_written(
    verifier: Verifier, reference: Any, reply: str, score: float
) -> None:
    assert verifier.verify(reply, reference).score == score


PUZZLES = {type(e.verifier): e for e in examples() if ".puzzles." in type(e.verifier).__module__}


@pytest.mark.parametrize("case", PUZZLES.values(), ids=lambda case: case.name)
def test_a_number_too_long_to_write_is_a_fault_that_can_be_told(case: Example) -> None:
    for path in _leaves(case.reference):
        for value in (HUGE, [HUGE], {"a": HUGE}):
            reference = _replaced(case.reference, path, value)
            fault = case.verifier.check_reference(reference)
            if fault is None:
                assert case.verifier.verify(case.wins[0], reference).score is not None
