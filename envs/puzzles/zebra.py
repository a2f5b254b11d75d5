"""Zebra puzzles: who lives where, and with what?"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np

from ...verifiers.puzzles import zebra as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((3, 2), (3, 3), (4, 3), (4, 4), (5, 4))
"""By level: houses and categories."""
_CATEGORIES = {
    "name": ("Ann", "Bob", "Carl", "Dora", "Emma", "Finn", "Gina", "Hugo", "Iris", "Jack"),
    "colour": ("red", "blue", "green", "yellow", "white", "black", "orange", "purple"),
    "pet": ("cat", "dog", "fish", "horse", "rabbit", "parrot", "zebra", "snail"),
    "drink": ("tea", "coffee", "milk", "water", "juice", "beer", "cocoa", "wine"),
    "job": ("baker", "doctor", "farmer", "pilot", "teacher", "painter", "singer", "cook"),
    "sport": ("tennis", "chess", "golf", "rugby", "judo", "hockey", "rowing", "boxing"),
}
_PHRASES = {
    "name": "{}", "colour": "the owner of the {} house", "pet": "the owner of the {}",
    "drink": "the one who drinks {}", "job": "the {}", "sport": "the one who plays {}",
}  # fmt: skip
_CLUES = {
    "at": "{a} lives in house {b}.",
    "not_at": "{a} does not live in house {b}.",
    "same": "{a} is {b}.",
    "different": "{a} is not {b}.",
    "left": "{a} lives right beside {b}, on the left.",
    "before": "{a} lives somewhere to the left of {b}.",
    "next": "{a} lives next door to {b}.",
}

_WEIGHTS = {
    "same": 0.5,
    "left": 0.8,
    "next": 0.9,
    "at": 1.5,
    "before": 1.6,
    "different": 2.0,
    "not_at": 2.5,
}
"""By kind of clue: the higher, the later it is tried."""

Clue = tuple[str, tuple[int, int], Any]
"""A kind, a value, and another value or a house; values are (category, place), all from 0."""


class Zebra(PuzzleEnv):
    """Find out who lives in which house, and with what, from clues.

    Observation: houses, categories and clues. Action: the values of each house.
    Reward: 1.0 for the assignment that satisfies every clue.
    End: after one step. Exactly one assignment satisfies the clues.
    Levels: 3 houses with 2 and 3 categories, 4 with 3 and 4, 5 with 4.
    """

    verifier = rules.Zebra

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw clues that hold for a random assignment, until they hold for no other."""
        houses, count = _LEVELS[level - 1]
        names = ["name", *(list(_CATEGORIES)[1 + i] for i in rng.permutation(5)[: count - 1])]
        categories = {}
        for name in names:
            known = _CATEGORIES[name]
            categories[name] = [known[i] for i in rng.permutation(len(known))[:houses]]
        truth = [rng.permutation(houses).tolist() for _ in names]
        clues = _clues(rng, truth)
        values = list(categories.values())
        named = [[kind, *_named(kind, a, b, values)] for kind, a, b in clues]
        by_house = [[values[c][truth[c].index(h)] for c in range(count)] for h in range(houses)]
        answer = "\n".join(f"House {h}: {', '.join(row)}" for h, row in enumerate(by_house, 1))
        text = _asked(categories, named, houses)
        return Puzzle(text, {"houses": houses, "categories": categories, "clues": named}, answer)


def _named(kind: str, a: tuple[int, int], b: Any, values: list[list[str]]) -> list[Any]:
    """Return a clue's values by their names, and a house counted from 1."""
    second = b + 1 if kind in rules.PLACED else values[b[0]][b[1]]
    return [values[a[0]][a[1]], second]


def _asked(categories: dict[str, list[str]], clues: list[list[Any]], houses: int) -> str:
    category = {value: name for name, values in categories.items() for value in values}

    def phrase(value: Any) -> str:
        return _PHRASES[category[value]].format(value) if value in category else str(value)

    said = [_CLUES[kind].format(a=phrase(a), b=phrase(b)) for kind, a, b in clues]
    numbered = "\n".join(f"{i}. {clue[0].upper()}{clue[1:]}" for i, clue in enumerate(said, 1))
    listed = "\n".join(f"{name}: {', '.join(sorted(v))}" for name, v in categories.items())
    return (
        f"{houses} houses stand in a row, numbered 1 to {houses} from left to right. In each lives "
        f"one person. Each of these values belongs to exactly one house:\n{listed}\n"
        f"Clues:\n{numbered}\n"
        f"What belongs to which house? Answer with {houses} lines, one for each house: the word "
        f"House, its number, a colon, and its {', '.join(categories)}, with commas between them."
    )


# -- clues and a solver: a category is a permutation, a value is (category, place) -------------


def _clues(rng: np.random.Generator, truth: list[list[int]]) -> list[Clue]:
    """Draw true clues, each of which rules out an assignment that those before it allow."""
    search = _Search(len(truth), len(truth[0]))
    pool = _true_clues(rng, truth)
    chosen = []
    while (other := search.another(truth)) is not None:
        clue = next(clue for clue in pool if not _holds(clue, other))
        pool.remove(clue)
        chosen.append(clue)
        search.add(clue)
    return [chosen[i] for i in rng.permutation(len(chosen))]


def _true_clues(rng: np.random.Generator, truth: list[list[int]]) -> list[Clue]:
    """Return the clues that hold, in random order; those that say much tend to come first."""
    houses, count = len(truth[0]), len(truth)
    values = [(c, v) for c in range(count) for v in range(houses)]
    placed: list[Clue] = [(k, a, h) for k in rules.PLACED for a in values for h in range(houses)]
    between: list[Clue] = [
        (kind, a, b)
        for kind in rules.RELATIONS
        for a in values
        for b in values
        if kind not in rules.PLACED
        and (a[0] != b[0] or (a != b and kind not in ("same", "different")))
    ]
    found = [clue for clue in placed + between if _holds(clue, truth)]
    keys = rng.random(len(found)).tolist()
    order = sorted(range(len(found)), key=lambda i: keys[i] * _WEIGHTS[found[i][0]])
    return [found[i] for i in order]


def _holds(clue: Clue, house: list[list[int]]) -> bool:
    """Return True if a clue holds; ``house[c][v]`` is the house, from 0, of a category's value."""
    kind, (c, v), b = clue
    right = b if kind in rules.PLACED else house[b[0]][b[1]]
    return rules.RELATIONS[kind](house[c][v], right)


@lru_cache
def _orders(houses: int) -> tuple[list[tuple[int, ...]], list[list[int]]]:
    """Return all permutations; and for each place and house the set of those that put it there.

    A set of permutations is a number: bit p is set if permutation p is in it.
    """
    perms = list(permutations(range(houses)))
    sets = [
        [sum(1 << p for p, perm in enumerate(perms) if perm[v] == h) for h in range(houses)]
        for v in range(houses)
    ]
    return perms, sets


class _Search:
    """Search with look-ahead for assignments that some clues allow."""

    def __init__(self, count: int, houses: int) -> None:
        self.perms, self.sets = _orders(houses)
        self.houses = houses
        every = (1 << len(self.perms)) - 1
        self.domains = [every] * count
        # with[c][p][d]: the permutations of d that go with permutation p of c
        self.with_ = [[[every] * count for _ in self.perms] for _ in range(count)]

    def add(self, clue: Clue) -> None:
        """Take away what a clue rules out."""
        kind, (c, v), b = clue
        relation = rules.RELATIONS[kind]
        if kind in rules.PLACED or b[0] == c:
            for p, perm in enumerate(self.perms):
                if not relation(perm[v], b if kind in rules.PLACED else perm[b[1]]):
                    self.domains[c] &= ~(1 << p)
            return
        d, w = b
        houses = range(self.houses)
        right = [sum(self.sets[w][j] for j in houses if relation(i, j)) for i in houses]
        left = [sum(self.sets[v][i] for i in houses if relation(i, j)) for j in houses]
        for p, perm in enumerate(self.perms):
            self.with_[c][p][d] &= right[perm[v]]
            self.with_[d][p][c] &= left[perm[w]]

    def another(self, truth: list[list[int]]) -> list[list[int]] | None:
        """Return an assignment that is allowed and is not the true one, or ``None``."""
        return self._extend(truth, self.domains, {})

    def _extend(
        self, truth: list[list[int]], domains: list[int], chosen: dict[int, int]
    ) -> list[list[int]] | None:
        if len(chosen) == len(domains):
            found = [list(self.perms[chosen[c]]) for c in range(len(domains))]
            return None if found == truth else found
        open_ = [c for c in range(len(domains)) if c not in chosen]
        c = min(open_, key=lambda c: domains[c].bit_count())
        rest = domains[c]
        while rest:
            p = (rest & -rest).bit_length() - 1
            rest &= rest - 1
            left = [d & w for d, w in zip(domains, self.with_[c][p], strict=True)]
            if all(left):
                other = self._extend(truth, left, {**chosen, c: p})
                if other is not None:
                    return other
        return None
