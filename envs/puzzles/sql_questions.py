"""Questions about a small database: what is asked, and the query that answers it, from one draw."""

# ruff: noqa: S608  # making queries is what this file is for, of names and numbers of ours

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .sql_world import Table, World


class Question(NamedTuple):
    """A question and its answer.

    Attributes:
        text: the question, precise enough that every correct query gives one result.
        query: a query that answers it.
        ordered: as in the reference of the verifier.
    """

    text: str
    query: str
    ordered: bool | Sequence[int] = False


Maker = Callable[[np.random.Generator, World], Question]
_COMPARED = ((">", "more than"), (">=", "at least"), ("<", "less than"), ("<=", "at most"))
_TOTALS = (
    ("sum", "sum of the"), ("avg", "average"), ("max", "largest"), ("min", "smallest"),
)  # fmt: skip


def _pick(rng: np.random.Generator, values: Sequence[str]) -> str:
    return values[int(rng.integers(len(values)))]


def _number(rng: np.random.Generator, table: Table) -> str:
    return _pick(rng, [name for name, _, _ in table.numbers])


def _condition(rng: np.random.Generator, table: Table, prefix: str = "") -> tuple[str, str]:
    """Draw a condition on a row: in words that follow "whose", and in SQL."""
    name, least, step = table.numbers[int(rng.integers(2))]
    low, high = sorted(least + step * int(k) for k in rng.choice(7, size=2, replace=False))
    category = _pick(rng, table.categories)
    sign, words = _COMPARED[int(rng.integers(4))]
    return [
        (f"{name} is {words} {low if sign[0] == '>' else high}",
         f"{prefix}{name} {sign} {low if sign[0] == '>' else high}"),
        (f"{table.category} is '{category}'", f"{prefix}{table.category} = '{category}'"),
        (f"{table.category} is known and not '{category}'",
         f"{prefix}{table.category} <> '{category}'"),
        (f"{name} is from {low} to {high}, both included",
         f"{prefix}{name} BETWEEN {low} AND {high}"),
        (f"{name} is missing (NULL)", f"{prefix}{name} IS NULL"),
        (f"{name} is not {low} or is missing (NULL)",
         f"({prefix}{name} <> {low} OR {prefix}{name} IS NULL)"),
    ][int(rng.integers(6))]  # fmt: skip


def _filter(rng: np.random.Generator, table: Table) -> tuple[str, str]:
    """Draw one condition, or two that are joined."""
    words, sql = _condition(rng, table)
    other, more = _condition(rng, table)
    if more == sql or rng.random() < 0.4:
        return words, sql
    if rng.random() < 0.5:
        return f"{words}, and whose {other}", f"{sql} AND {more}"
    return f"{words}, or whose {other} (or both)", f"{sql} OR {more}"


# -- level 1: rows and columns -----------------------------------------------------------------


def _rows(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    columns = [["id"], [table.label], ["id", table.label], [table.label, _number(rng, table)]]
    chosen = columns[int(rng.integers(4))]
    words, sql = _filter(rng, table)
    return Question(
        f"List the {' and the '.join(chosen)} of every {table.name} whose {words}. "
        "Give one row for each, even where rows are alike.",
        f"SELECT {', '.join(chosen)} FROM {table.name} WHERE {sql}",
    )


# -- level 2: order, limits, distinct values ---------------------------------------------------


def _distinct(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    words, sql = _condition(rng, table)
    column = table.label if rng.random() < 0.5 else table.category
    return Question(
        f"List each different {column} among the {table.plural} whose {words}, once. "
        "Leave out NULL.",
        f"SELECT DISTINCT {column} FROM {table.name} WHERE {sql} AND {column} IS NOT NULL",
    )


def _top(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    number, count = _number(rng, table), int(rng.integers(2, 4))
    down = rng.random() < 0.5
    return Question(
        f"List the id and the {number} of the {count} {table.plural} with the "
        f"{'highest' if down else 'lowest'} {number}, that one first; of equal ones, the smaller "
        f"id comes first. Leave out {table.plural} whose {number} is NULL.",
        f"SELECT id, {number} FROM {table.name} WHERE {number} IS NOT NULL "
        f"ORDER BY {number}{' DESC' if down else ''}, id LIMIT {count}",
        ordered=True,
    )


def _in_order(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    number, (words, sql) = _number(rng, table), _condition(rng, table)
    down = rng.random() < 0.5
    return Question(
        f"List the {table.label} and the {number} of every {table.name} whose {words} and whose "
        f"{number} is not NULL, sorted by {number}, the {'highest' if down else 'lowest'} first; "
        "equal ones in any order.",
        f"SELECT {table.label}, {number} FROM {table.name} WHERE {sql} AND {number} IS NOT NULL "
        f"ORDER BY {number}{' DESC' if down else ''}",
        ordered=[1],
    )


# -- level 3: totals and groups ----------------------------------------------------------------


def _total(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    number, (words, sql) = _number(rng, table), _filter(rng, table)
    function, named = _TOTALS[int(rng.integers(4))]
    return Question(
        f"What is the {named} {number} of the {table.plural} whose {words}? Give one row with one "
        "column, NULL where there is no such number.",
        f"SELECT {function}({number}) FROM {table.name} WHERE {sql}",
    )


def _count(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    words, sql = _filter(rng, table)
    if rng.random() < 0.5:
        return Question(
            f"How many {table.plural} are there whose {words}?",
            f"SELECT count(*) FROM {table.name} WHERE {sql}",
        )
    return Question(
        f"How many different values of {table.category}, NULL not counted, are there among the "
        f"{table.plural} whose {words}?",
        f"SELECT count(DISTINCT {table.category}) FROM {table.name} WHERE {sql}",
    )


def _groups(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    number, (words, sql) = _number(rng, table), _condition(rng, table)
    function, named = _TOTALS[int(rng.integers(4))]
    return Question(
        f"For each {table.category} that is not NULL: the {table.category}, the number of "
        f"{table.plural} whose {words}, and the {named} {number} of these. Leave out a "
        f"{table.category} that has no such {table.name}.",
        f"SELECT {table.category}, count(*), {function}({number}) FROM {table.name} "
        f"WHERE ({sql}) AND {table.category} IS NOT NULL GROUP BY {table.category}",
    )


# -- level 4: joins ----------------------------------------------------------------------------


def _pair(rng: np.random.Generator, world: World) -> tuple[Table, Table]:
    return (world.parent, world.child) if rng.random() < 0.5 else (world.child, world.grandchild)


def _joined(rng: np.random.Generator, world: World) -> Question:
    one, many = _pair(rng, world)
    words, sql = _condition(rng, many, "b.")
    keep = rng.random() < 0.5
    alone = (
        f"where a {many.name} refers to no {one.name}, give NULL for it"
        if keep
        else f"leave out a {many.name} that refers to no {one.name}"
    )
    return Question(
        f"For every {many.name} whose {words}: its id and the {one.label} of its {one.name}; "
        f"{alone}.",
        f"SELECT b.id, a.{one.label} FROM {many.name} AS b {'LEFT ' if keep else ''}JOIN "
        f"{one.name} AS a ON a.id = b.{many.link} WHERE {sql}",
    )


def _counted(rng: np.random.Generator, world: World) -> Question:
    one, many = _pair(rng, world)
    words, sql = _condition(rng, many, "b.")
    return Question(
        f"For every {one.name}: its id and the number of its {many.plural} whose {words}, which "
        "may be 0.",
        f"SELECT a.id, count(b.id) FROM {one.name} AS a LEFT JOIN {many.name} AS b "
        f"ON b.{many.link} = a.id AND {sql} GROUP BY a.id",
    )


def _having(rng: np.random.Generator, world: World) -> Question:
    one, many = _pair(rng, world)
    number, least = _number(rng, many), int(rng.integers(2, 4))
    function, named = _TOTALS[int(rng.integers(4))]
    return Question(
        f"For every {one.name} with at least {least} {many.plural}: its id, its {one.label}, and "
        f"the {named} {number} of its {many.plural}, NULL where there is no such number.",
        f"SELECT a.id, a.{one.label}, {function}(b.{number}) FROM {one.name} AS a JOIN {many.name} "
        f"AS b ON b.{many.link} = a.id GROUP BY a.id, a.{one.label} HAVING count(*) >= {least}",
    )


def _chained(rng: np.random.Generator, world: World) -> Question:
    one, two, three = world
    number, (words, sql) = _number(rng, three), _condition(rng, two, "b.")
    return Question(
        f"For every {one.name} that has {three.plural} of {two.plural} whose {words}: its id and "
        f"the largest {number} of these {three.plural}, NULL where all are NULL.",
        f"SELECT a.id, max(c.{number}) FROM {one.name} AS a JOIN {two.name} AS b "
        f"ON b.{two.link} = a.id JOIN {three.name} AS c ON c.{three.link} = b.id WHERE {sql} "
        "GROUP BY a.id",
    )


# -- level 5: queries in queries, windows ------------------------------------------------------


def _above_average(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    number, like = _number(rng, table), rng.random() < 0.6
    scope = f"all {table.plural} of the same {table.category}" if like else f"all {table.plural}"
    inner = f" WHERE b.{table.category} = a.{table.category}" if like else ""
    return Question(
        f"List the id of every {table.name} whose {number} is more than the average {number} of "
        f"{scope}."
        + (f" Leave out {table.plural} whose {table.category} is NULL." if like else ""),
        f"SELECT a.id FROM {table.name} AS a WHERE a.{number} > "
        f"(SELECT avg(b.{number}) FROM {table.name} AS b{inner})",
    )


def _without(rng: np.random.Generator, world: World) -> Question:
    one, many = _pair(rng, world)
    words, sql = _condition(rng, many, "b.")
    return Question(
        f"List the id and the {one.label} of every {one.name} that has no {many.name} whose "
        f"{words}.",
        f"SELECT a.id, a.{one.label} FROM {one.name} AS a WHERE NOT EXISTS "
        f"(SELECT 1 FROM {many.name} AS b WHERE b.{many.link} = a.id AND {sql})",
    )


def _best(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    number, high = _number(rng, table), rng.random() < 0.5
    return Question(
        f"For each {table.category} that is not NULL: the {table.category} and the id of the "
        f"{table.name} with the {'highest' if high else 'lowest'} {number}; where several are "
        "equal, one row for each of them.",
        f"SELECT a.{table.category}, a.id FROM {table.name} AS a WHERE a.{number} = "
        f"(SELECT {'max' if high else 'min'}(b.{number}) FROM {table.name} AS b "
        f"WHERE b.{table.category} = a.{table.category})",
    )


def _ranked(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    number, gaps = _number(rng, table), rng.random() < 0.5
    after = "then skips as many (1, 1, 3)" if gaps else "skips none (1, 1, 2)"
    return Question(
        f"For every {table.name} whose {table.category} and {number} are not NULL: its id and its "
        f"rank by {number} among the {table.plural} of its {table.category}, 1 for the highest; "
        f"equal ones share a rank, and the next rank {after}.",
        f"SELECT id, {'rank' if gaps else 'dense_rank'}() OVER (PARTITION BY {table.category} "
        f"ORDER BY {number} DESC) FROM {table.name} WHERE {table.category} IS NOT NULL "
        f"AND {number} IS NOT NULL",
    )


def _running(rng: np.random.Generator, world: World) -> Question:
    table = world[int(rng.integers(3))]
    number = _number(rng, table)
    return Question(
        f"For every {table.name} whose {table.category} is not NULL: its id and the sum of the "
        f"{number} of all {table.plural} of the same {table.category} whose id is not larger, "
        "NULL where there is no such number.",
        f"SELECT id, sum({number}) OVER (PARTITION BY {table.category} ORDER BY id) "
        f"FROM {table.name} WHERE {table.category} IS NOT NULL",
    )


LEVELS: tuple[tuple[Maker, ...], ...] = (
    (_rows,),
    (_distinct, _top, _in_order),
    (_total, _count, _groups),
    (_joined, _counted, _having, _chained),
    (_above_average, _without, _best, _ranked, _running),
)
"""What is asked on each level."""
