"""Tower of Hanoi: bring the disks from one arrangement to another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from ...verifiers import Hanoi as HanoiVerifier
from ...verifiers.puzzles.hanoi import Disks, fewest_moves, written
from ..draws import below
from .puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((3, 3, False), (4, 3, False), (4, 3, True), (5, 4, True), (7, 3, True))


class Hanoi(PuzzleEnv):
    """Move disks from peg to peg, never onto a smaller one, until all lie where they should.

    Observation: both arrangements. Action: the reply.
    Reward: 1.0 for any legal moves that do it, from level 3 on for any with the fewest moves.
    End: after one step. Levels have 3, 4, 4, 5 and 7 disks; level 4 has a fourth peg.
    """

    verifier = HanoiVerifier

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Two arrangements, each disk on a peg at random; the largest has to move."""
        disks, pegs, optimal = _LEVELS[level - 1]
        every = _arrangements(disks, pegs)
        alike = len(every) // pegs  # in turn: those with the largest disk on the same peg
        first, further = divmod(below(rng, len(every) * (len(every) - alike)), len(every) - alike)
        then = (first // alike + 1) * alike + further
        before, start, start_told = every[first]
        after, goal, goal_told = every[then % len(every)]
        fewest = " with as few moves as possible" if optimal else ""
        return Puzzle(
            f"Disks 1 to {disks}, 1 the smallest, lie on the pegs {_NAMED[pegs]}. A move takes the "
            "top disk of one peg to another peg, never onto a smaller disk.\n\n"
            f"Start, from the bottom up:\n{start_told}\n\nGoal:\n{goal_told}\n\n"
            f"Bring the disks from start to goal{fewest}. "
            "Give all moves as pairs of pegs, parted by commas, like X->Y, Y->Z.",
            {"start": list(map(list, start)), "goal": list(map(list, goal)), "optimal": optimal},
            written(fewest_moves(before, after, pegs)),
            own=True,
        )


_NAMED = {3: "A, B and C", 4: "A, B, C and D"}


@lru_cache
def _arrangements(disks: int, pegs: int) -> list[tuple[Disks, tuple[tuple[int, ...], ...], str]]:
    """All arrangements: the peg of each disk, the disks of each peg from the bottom, in words."""
    every = []
    for turned in product(range(pegs), repeat=disks):
        at = turned[::-1]  # the largest disk changes its peg last
        stacks = tuple(
            tuple(disk for disk in range(disks, 0, -1) if at[disk - 1] == peg)
            for peg in range(pegs)
        )
        every.append((at, stacks, _told(stacks)))
    return every


def _told(pegs: Sequence[Sequence[int]]) -> str:
    told = [" ".join(map(str, peg)) if peg else "empty" for peg in pegs]
    return "\n".join(map(": ".join, zip("ABCDEF", told, strict=False)))
