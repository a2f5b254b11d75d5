"""Twenty-four: four numbers, one target."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...verifiers.puzzles import countdown as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = (27, 12, 7, 4, 1)
"""By level: a problem has at least so many ways, and fewer than those of the level before."""

Made = dict[Fraction, tuple[int, str]]
"""Values, each with the number of ways to make it and one of them."""


class TwentyFour(PuzzleEnv):
    """Make 24 of four numbers from 1 to 13.

    Observation: the numbers. Action: an expression.
    Reward: 1.0 for any expression that uses each number once and equals 24.
    End: after one step. Every task can be solved.

    Levels: problems by how many ways there are to reach 24, from many to few. There are 1,362 in
    all, so a level holds a few hundred: train on several levels.
    """

    verifier = rules.Countdown

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw four numbers in rising order until they belong to the level."""
        most = _LEVELS[level - 2] if level > 1 else None
        while True:
            drawn = tuple(sorted(int(n) for n in rng.integers(1, 14, size=4)))
            ways, expression = solved(drawn)
            if expression and ways >= _LEVELS[level - 1] and (most is None or ways < most):
                break
        text = (
            f"Use each of {', '.join(map(str, drawn))} exactly once with + - * / and brackets to "
            "make 24. Answer with the expression on one line."
        )
        return Puzzle(text, {"numbers": list(drawn), "target": 24}, expression)


@lru_cache(maxsize=2048)
def solved(numbers: tuple[int, ...], target: int = 24) -> tuple[int, str]:
    """Return in how many ways numbers make a target, and one of them, empty if there is none.

    A way is a choice of two parts and a sign, and of a way to make each part.
    """
    whole = (1 << len(numbers)) - 1
    made = {1 << i: {Fraction(n): (1, str(n))} for i, n in enumerate(numbers)}
    for part in range(1, whole):
        if part not in made:
            made[part] = {}
            for left in _parts(part):
                _join(made[left], made[part ^ left], made[part])
    ways, expression = 0, ""
    for part in _parts(whole):
        fewer, more = sorted((made[part], made[whole ^ part]), key=len)
        for a, (ways_a, text_a) in fewer.items():
            for sign, b in _needed(a, target):
                ways_b, text_b = more.get(b, (0, ""))
                if ways_b:
                    ways += ways_a * ways_b
                    pair = (text_b, sign[1], text_a) if sign[0] == "~" else (text_a, sign, text_b)
                    expression = "".join(pair)
    return ways, expression


def _parts(part: int) -> list[int]:
    """Return the subsets that hold the lowest number of a set of numbers, but not all of it."""
    lowest = part & -part
    return [s for s in range(1, part) if s & part == s and s & lowest]


def _join(left: Made, right: Made, made: Made) -> None:
    for a, (ways_a, text_a) in left.items():
        for b, (ways_b, text_b) in right.items():
            values = [(a + b, "+", False), (a * b, "*", False)]
            values += [(a - b, "-", False), (b - a, "-", True)]
            values += [(a / b, "/", False)] if b else []
            values += [(b / a, "/", True)] if a else []
            for value, sign, swapped in values:
                before, first = made.get(value, (0, ""))
                if not first:
                    one, two = (text_b, text_a) if swapped else (text_a, text_b)
                    first = f"({one}{sign}{two})"
                made[value] = before + ways_a * ways_b, first


def _needed(a: Fraction, target: int) -> list[tuple[str, Fraction]]:
    """Return for each sign the b that makes the target of a; ``~`` if b comes first."""
    needed = [("+", target - a), ("-", a - target), ("~-", target + a)]
    if a:
        needed += [("*", target / a), ("/", a / target), ("~/", target * a)]
    return needed
