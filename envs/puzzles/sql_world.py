"""Small databases to ask about: a few domains of three tables, filled at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

Rows = dict[str, list[list[Any]]]


class Table(NamedTuple):
    """A table of a domain. Its columns: id, label, category, two numbers, and a reference.

    Attributes:
        name: of the table, and of one row.
        plural: of several rows.
        label: a column of text that is never NULL.
        labels: its values.
        category: a column of text.
        categories: its values.
        numbers: columns of integers, each with its smallest value and its step.
        parent: the table that it refers to, if any.
    """

    name: str
    plural: str
    label: str
    labels: tuple[str, ...]
    category: str
    categories: tuple[str, ...]
    numbers: tuple[tuple[str, int, int], tuple[str, int, int]]
    parent: str = ""

    @property
    def link(self) -> str:
        """The column that refers to the parent."""
        return f"{self.parent}_id"


class World(NamedTuple):
    """A domain: a table, one that refers to it, and one that refers to that."""

    parent: Table
    child: Table
    grandchild: Table

    @property
    def schema(self) -> str:
        """The statements that make the tables, one on each line."""
        return "\n".join(
            f"CREATE TABLE {table.name} (id INTEGER PRIMARY KEY, {table.label} TEXT NOT NULL, "
            f"{table.category} TEXT, {table.numbers[0][0]} INTEGER, {table.numbers[1][0]} INTEGER"
            + (f", {table.link} INTEGER REFERENCES {table.parent}(id));" if table.parent else ");")
            for table in self
        )

    def rows(self, rng: Random, *, near: Sequence[int] = (), children: bool = True) -> Rows:
        """Draw rows for every table: few values, so that there are ties, and some NULLs.

        Args:
            rng: Python's own, which draws one value faster than NumPy's.
            near: numbers to come close to, if a column can hold such.
            children: whether anything refers to the parents.
        """
        made: Rows = {}
        alike = rng.random() < 0.4  # two values of each kind

        def maybe(value: Any) -> Any:
            return None if rng.random() < 0.15 else value

        def number(least: int, step: int) -> int:
            close = [k for k in near if least <= k <= least + 7 * step]
            if close and rng.random() < 0.4:
                around = rng.choice(close)
            else:
                around = least + step * rng.randrange(3 if alike else 7)
            return max(0, around + rng.randint(-1, 1))

        for table, most in zip(self, (7, 9, 10), strict=True):
            parents = [row[0] for row in made.get(table.parent, [])]
            count = rng.randint(most // 2, most) if children or not table.parent else 0
            ids = sorted(rng.sample(range(1, 61), count))
            labels = rng.sample(table.labels, 2) if alike else table.labels
            categories = rng.sample(table.categories, 2) if alike else table.categories
            made[table.name] = [
                [
                    id_,
                    rng.choice(labels),
                    maybe(rng.choice(categories)),
                    *(maybe(number(least, step)) for _, least, step in table.numbers),
                    *([maybe(rng.choice(parents))] if parents else []),
                ]
                for id_ in ids
            ]
        return made


_PEOPLE = ("Ada", "Ben", "Cleo", "Dov", "Edda", "Finn", "Gita", "Hugo")

WORLDS = (
    World(
        Table("author", "authors", "name", _PEOPLE, "country", ("Chile", "Ghana", "Japan", "Malta"),
              (("born", 1940, 10), ("prizes", 0, 1))),
        Table("book", "books", "title", ("Dawn", "Ember", "Fjord", "Glass", "Harbour", "Ink"),
              "genre", ("crime", "poetry", "travel"), (("price", 8, 2), ("pages", 100, 50)),
              "author"),
        Table("loan", "loans", "reader", _PEOPLE, "branch", ("north", "south", "west"),
              (("days", 3, 4), ("renewals", 0, 1)), "book"),
    ),
    World(
        Table("customer", "customers", "name", _PEOPLE, "city", ("Bern", "Lagos", "Lima", "Oslo"),
              (("age", 20, 5), ("points", 0, 50))),
        Table("purchase", "purchases", "clerk", _PEOPLE, "status", ("open", "paid", "sent"),
              (("total", 15, 5), ("discount", 0, 2)), "customer"),
        Table("item", "items", "product", ("cup", "desk", "fork", "lamp", "pan", "vase"),
              "colour", ("blue", "green", "red"), (("quantity", 1, 1), ("weight", 2, 3)),
              "purchase"),
    ),
    World(
        Table("teacher", "teachers", "name", _PEOPLE, "subject", ("art", "chemistry", "music"),
              (("salary", 3000, 200), ("experience", 1, 2))),
        Table("course", "courses", "title", ("Alpha", "Basics", "Craft", "Drills", "Essays"),
              "term", ("autumn", "spring", "summer"), (("hours", 10, 5), ("fee", 40, 20)),
              "teacher"),
        Table("enrolment", "enrolments", "student", _PEOPLE, "mode", ("evening", "online", "day"),
              (("grade", 1, 1), ("absences", 0, 1)), "course"),
    ),
    World(
        Table("doctor", "doctors", "name", _PEOPLE, "ward", ("eye", "heart", "skin"),
              (("shifts", 2, 1), ("rating", 1, 1))),
        Table("visit", "visits", "patient", _PEOPLE, "reason", ("check", "pain", "rash"),
              (("minutes", 10, 5), ("cost", 30, 10)), "doctor"),
        Table("dose", "doses", "drug", ("Amol", "Brev", "Cetin", "Dorex"), "route",
              ("drip", "pill", "salve"), (("amount", 5, 5), ("repeats", 1, 1)), "visit"),
    ),
    World(
        Table("station", "stations", "name", ("Arena", "Bridge", "Canal", "Depot", "Forum"),
              "region", ("centre", "east", "hill"), (("docks", 6, 2), ("opened", 2010, 1))),
        Table("bike", "bikes", "model", ("Comet", "Dart", "Elk", "Gull"), "colour",
              ("black", "red", "white"), (("km", 100, 100), ("repairs", 0, 1)), "station"),
        Table("ride", "rides", "rider", _PEOPLE, "purpose", ("fun", "shop", "work"),
              (("minutes", 4, 6), ("stars", 1, 1)), "bike"),
    ),
)  # fmt: skip
"""The domains."""
