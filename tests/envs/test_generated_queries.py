"""The questions of SQL and RegexSynthesis: their databases and strings tell near misses apart."""

import random
import re

import numpy as np
import pytest

from assay.envs.puzzles.regex_synthesis import RegexSynthesis as RegexPuzzles
from assay.envs.puzzles.regex_synthesis import mutants as regex_mutants
from assay.envs.puzzles.sql import SQL as SQLPuzzles  # noqa: N811  # named by its initials
from assay.envs.puzzles.sql import mutants
from assay.envs.puzzles.sql_world import WORLDS
from assay.verifiers import SQL, RegexSynthesis
from assay.verifiers.puzzles.sql_engine import Database, Refused, same_rows

LEVELS = range(1, 6)


def puzzles(family, level: int, count: int):
    return [family.puzzle(np.random.default_rng([level, k]), level) for k in range(count)]


@pytest.mark.parametrize("level", LEVELS)
def test_answers_win_in_every_form(level: int) -> None:
    for family, verifier in ((SQLPuzzles, SQL()), (RegexPuzzles, RegexSynthesis())):
        for puzzle in puzzles(family, level, 12):
            assert verifier.check_reference(puzzle.reference) is None
            for reply in (
                puzzle.answer,
                f"<answer>{puzzle.answer}</answer>",
                f"```\n{puzzle.answer}\n```",
                verifier.oracle_reply(puzzle.reference),
            ):
                assert verifier.verify(reply, puzzle.reference).score == 1.0, puzzle


@pytest.mark.parametrize("level", LEVELS)
def test_databases_are_several_and_hold_what_makes_a_difference(level: int) -> None:
    for puzzle in puzzles(SQLPuzzles, level, 12):
        databases = puzzle.reference["databases"]
        assert 3 <= len(databases) <= 6
        rows = [row for database in databases for table in database.values() for row in table]
        assert any(None in row for row in rows)
        hidden = [f"{value!r}" for row in rows for value in row[1:2]]
        assert not any(f"({name}" in puzzle.text for name in hidden)


def equivalent(mutant: str, puzzle) -> bool:
    """Whether no one of 40 fresh databases tells a mutant from the answer."""
    world = next(w for w in WORLDS if w.schema == puzzle.reference["schema"])
    draw = random.Random(1)  # noqa: S311  # test inputs, not secrets
    near = [int(number) for number in re.findall(r"\b\d+\b", puzzle.answer)]
    for place in range(40):
        database = Database(world.schema, world.rows(draw, near=near, children=place > 3), 10**6)
        try:
            expected, given = database.run(puzzle.answer), database.run(mutant)
            ordered = puzzle.reference["ordered"]
            if len(expected[0]) != len(given[0]):
                return False
            if not same_rows(expected[1], given[1], ordered, 1e-9):
                return False
        except Refused:
            return False
        finally:
            database.close()
    return True


def test_near_misses_lose() -> None:
    """Of the changes that matter at all, all but a few are told from the answer."""
    verifier, killed, survived = SQL(), 0, 0
    for level in LEVELS:
        for puzzle in puzzles(SQLPuzzles, level, 3):
            for mutant in mutants(puzzle.answer):
                score = verifier.verify(f"```sql\n{mutant}\n```", puzzle.reference).score
                killed += score == 0.0
                survived += score == 1.0 and not equivalent(mutant, puzzle)
    assert killed > 70
    assert killed / (killed + survived) > 0.97, (killed, survived)


def test_answers_to_other_questions_lose() -> None:
    verifier = SQL()
    made = [p for level in LEVELS for p in puzzles(SQLPuzzles, level, 5)]
    won = 0
    for one in made:
        for other in made:
            if other.answer != one.answer and other.reference["schema"] == one.reference["schema"]:
                won += verifier.verify(other.answer, one.reference).score
    assert won == 0


@pytest.mark.parametrize("level", LEVELS)
def test_widened_and_narrowed_expressions_lose(level: int) -> None:
    verifier, told, tried = RegexSynthesis(), 0, 0
    for puzzle in puzzles(RegexPuzzles, level, 6):
        pattern = puzzle.answer
        assert pattern not in puzzle.text
        for other in (*regex_mutants(pattern), f"{pattern}|.*"):
            tried += 1
            told += verifier.verify(f"<answer>{other}</answer>", puzzle.reference).score == 0.0
        shown = "|".join(map(re.escape, puzzle.reference["positive"]))
        assert verifier.verify(f"<answer>{shown}</answer>", puzzle.reference).score == 0.0
    assert told / tried > 0.96, (told, tried)
