"""SQL: answer a question about three small tables with one query."""

from __future__ import annotations

import numpy as np

from ...verifiers import SQL as SQLVerifier  # noqa: N811  # a class named by its initials
from ...verifiers.families.sql_engine import Database, Refused, Result, same_rows
from .family import Family, Puzzle
from .sql_mutants import mutants
from .sql_questions import LEVELS, Question
from .sql_world import WORLDS, Rows, World

_STEPS = 5_000_000
_FEWEST, _MOST, _TRIED = 3, 6, 12
"""Databases of a question: how many at least and at most, and how many are drawn to choose from."""


class SQL(Family):
    """Write the query that answers a question about three tables.

    Levels: conditions; distinct values, order and limits; totals and groups; joins; queries in
    queries and windows. Of the databases drawn, those are kept that tell the known query from its
    near misses: test suites are distilled so in Zhong, Yu and Klein (2020), "Semantic Evaluation
    for Text-to-SQL with Distilled Test Suites", section 3.

    Observation: the tables and the question; no rows of them. Action: the reply.
    Reward: 1.0 for any query with the right result on every database. With ``think``, a sixth of
    it is paid for the format.
    End: after one step. Every task can be solved.

    Args:
        level: difficulty, from 1 to 5.
        split: a problem is in ``train`` or in ``test``, never in both.
        seed: another seed puts other problems.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ValueError: there is no such level.
    """

    verifier = SQLVerifier

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a domain and a question until some databases tell its answer apart."""
        while True:
            world = WORLDS[int(rng.integers(len(WORLDS)))]
            makers = LEVELS[level - 1]
            question = makers[int(rng.integers(len(makers)))](rng, world)
            databases = _telling(rng, world, question)
            if databases is None:
                continue
            return Puzzle(
                text=f"{world.schema}\nEvery column but id and the one after it may be NULL.\n\n"
                f"{question.text}\nAnswer with one query in SQLite's SQL.",
                reference={
                    "schema": world.schema,
                    "databases": databases,
                    "query": question.query,
                    "ordered": question.ordered,
                },
                answer=question.query,
            )


def _telling(rng: np.random.Generator, world: World, question: Question) -> list[Rows] | None:
    """Databases that tell a question's query from its mutants, or ``None`` where they say little.

    The first ones are kept whatever they tell; the last has no row that refers to another.
    """
    alive = mutants(question.query)
    kept: list[Rows] = []
    results: list[Result] = []
    for place in range(_TRIED):
        rows = world.rows(rng, children=place < _TRIED - 1)
        database = Database(world.schema, rows, _STEPS)
        result = database.run(question.query)
        left = [m for m in alive if not _told(database, m, result, question)]
        database.close()
        wanted = bool(result[1]) and len(kept) < _FEWEST
        if (wanted or len(left) < len(alive)) and len(kept) < _MOST:
            kept.append(rows)
            results.append(result)
            alive = left
    filled = [r for r in results if any(v is not None for row in r[1] for v in row)]
    if len(filled) < _FEWEST or all(_same(filled[0], r, question) for r in results):
        return None
    return kept


def _told(database: Database, mutant: str, expected: Result, question: Question) -> bool:
    """Whether a mutant loses here."""
    try:
        return not _same(expected, database.run(mutant), question)
    except Refused:
        return True


def _same(expected: Result, given: Result, question: Question) -> bool:
    if len(expected[0]) != len(given[0]):
        return False
    return same_rows(expected[1], given[1], question.ordered, 1e-9)
