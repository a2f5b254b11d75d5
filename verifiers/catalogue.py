"""For each verifier: replies that win, replies that lose and why.

The files in ``examples/`` are read here for the page of docs, the shared tests and the audit, so
what is shown is what is tested.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .verifier import Verifier


@dataclass(frozen=True)
class CounterExample:
    """A reply that does not get full marks.

    Attributes:
        reply: the reply.
        why: what is wrong with it, in a few words.
        score: what it gets all the same.
    """

    reply: str
    why: str
    score: float = 0.0


@dataclass(frozen=True)
class Example:
    """A verifier, a reference, and replies whose scores are known.

    Attributes:
        verifier: the verifier with its options.
        reference: what the replies are judged against.
        wins: replies with full marks; the first is the one to show.
        loses: replies without.
        bad_references: references that cannot be used.
    """

    verifier: Verifier
    reference: Any
    wins: tuple[str, ...]
    loses: tuple[CounterExample, ...]
    bad_references: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The name of the verifier's class."""
        return type(self.verifier).__name__

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Example:
        """Parse an example from a file; a missing ``reference`` is ``None``."""
        return cls(
            Verifier.from_json(row["verifier"]),
            row.get("reference"),
            tuple(row["wins"]),
            tuple(CounterExample(**loser) for loser in row.get("loses", ())),
            tuple(row.get("bad_references", ())),
        )


@cache
def examples() -> tuple[Example, ...]:
    """Return all examples by file, unparsed."""
    folder = files(__package__) / "examples"
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    rows = [row for file in found for row in tomllib.loads(file.read_text("utf-8"))["example"]]
    return tuple(Example.from_row(row) for row in rows)


def examples_of(verifier: Verifier) -> list[Example]:
    """Return the examples of a verifier's class with equal options, or all if none has."""
    alike = [e for e in examples() if type(e.verifier) is type(verifier)]
    return [e for e in alike if e.verifier == verifier] or alike
