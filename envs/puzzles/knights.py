"""Knights and knaves: who always tells the truth, and who always lies?"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...verifiers.puzzles import knights as rules
from ...verifiers.puzzles.statements import allowed
from ..puzzle_env import Puzzle, PuzzleEnv
from ..seeding import below

_LEVELS = ((2, 1), (3, 1), (4, 1), (5, 2), (7, 2))
"""How many people, and how deep the things they say."""
_NAMES = (
    "Ann", "Bob", "Carl", "Dora", "Emma", "Finn", "Gina", "Hugo", "Iris", "Jack", "Kate", "Liam",
    "Mona", "Nora", "Otto", "Paul", "Rosa", "Sam", "Tina", "Udo", "Vera", "Wim",
)  # fmt: skip

Formula = list[Any]


class KnightsAndKnaves(PuzzleEnv):
    """Tell knights from knaves by what they say.

    Observation: who says what. Action: what each of them is.
    Reward: 1.0 for the assignment that fits what everybody says.
    End: after one step. Exactly one assignment fits.
    Levels: 2, 3, 4, 5 and 7 people; the last two say things that are made of more parts.
    """

    verifier = rules.KnightsAndKnaves

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw statements that fit an assignment until they fit no other."""
        n, depth = _LEVELS[level - 1]
        people = [_NAMES[i] for i in rng.permutation(len(_NAMES))[:n].tolist()]
        world = below(rng, 2**n)
        says = _statements(rng, n, depth, world)
        lines = [f"{people[i]} says: {_spoken(what, people, i, first=True)}." for i, what in says]
        text = (
            f"On an island everybody is either a knight, who always tells the truth, or a knave, "
            f"who always lies. You meet {', '.join(people[:-1])} and {people[-1]}.\n"
            + "\n".join(lines)
            + "\nWho is what? Answer with one line for each person, the name, a colon and the word "
            "knight or knave."
        )
        roles = ["knight" if world >> i & 1 else "knave" for i in range(n)]
        reference = {"people": people, "statements": [["says", i, what] for i, what in says]}
        return Puzzle(text, reference, "\n".join(map(": ".join, zip(people, roles, strict=True))))


def _statements(
    rng: np.random.Generator, n: int, depth: int, world: int
) -> list[tuple[int, Formula]]:
    """Draw one statement for each person, which only one of all ``2**n`` worlds allows."""
    every = (1 << (1 << n)) - 1
    while True:
        fitting, says = every, []
        for i in range(n):
            while True:
                what = _formula(rng, n, depth)
                fits = allowed(i, what, n)
                if fits >> world & 1 and fits != every:
                    break
            fitting &= fits
            says.append((i, what))
        if fitting.bit_count() == 1:
            return says


def _formula(rng: np.random.Generator, n: int, depth: int) -> Formula:
    kind = below(rng, 7)
    if depth == 0 or kind == 0:
        return [("knight", "knave")[below(rng, 2)], below(rng, n)]
    if kind == 1:
        return ["exactly", below(rng, n + 1)]
    word = ("and", "or", "if", "iff", "or")[kind - 2]
    left, right = (_formula(rng, n, depth - 1) for _ in range(2))
    if depth == 1:  # of two different people
        first, further = divmod(below(rng, n * (n - 1)), n - 1)
        left[1], right[1] = first, (first + 1 + further) % n
    return [word, left, right]


def _spoken(said: Formula, people: list[str], speaker: int, *, first: bool = False) -> str:
    """Return what is said, in words."""
    kind, *parts = said
    if kind in ("knight", "knave"):
        name = people[parts[0]]
        return f"I am a {kind}" if parts[0] == speaker else f"{name} is a {kind}"
    if kind == "exactly":
        k = "none" if parts[0] == 0 else "all" if parts[0] == len(people) else f"exactly {parts[0]}"
        return f"{k} of us {'is a knight' if parts[0] == 1 else 'are knights'}"
    left, right = (_spoken(part, people, speaker) for part in parts)
    words = {
        "and": f"both {left} and {right}",
        "or": f"either {left} or {right} or both",
        "if": f"if {left}, then {right}",
        "iff": f"{left} if and only if {right}",
    }
    return words[kind] if first else f"({words[kind]})"
