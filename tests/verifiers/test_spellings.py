"""Right answers in the words that models put around them, and what no words can save."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from assay.verifiers import (
    SQL,
    Countdown,
    GraphPath,
    Integral,
    MultipleChoice,
    Queens,
    RegexSynthesis,
    ShortAnswer,
    Status,
    Sudoku,
    Verifier,
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


PUZZLES = {type(e.verifier): e for e in examples() if ".puzzles." in type(e.verifier).__module__}


@pytest.mark.parametrize("case", PUZZLES.values(), ids=lambda case: case.name)
def test_a_number_too_long_to_write_is_a_fault_that_can_be_told(case: Example) -> None:
    for path in _leaves(case.reference):
        for value in (HUGE, [HUGE], {"a": HUGE}):
            reference = _replaced(case.reference, path, value)
            fault = case.verifier.check_reference(reference)
            if fault is None:
                assert case.verifier.verify(case.wins[0], reference).score is not None
