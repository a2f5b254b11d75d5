"""Tower of Hanoi: bring the disks from one arrangement to another."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import hanoi as rules
from ..puzzle_env import Puzzle, PuzzleEnv
from ..seeding import below

_LEVELS = ((3, 3, False), (4, 3, False), (4, 3, True), (5, 4, True), (7, 3, True))
"""Disks, pegs, and whether only the fewest moves win."""
_NAMED = {3: "A, B and C", 4: "A, B, C and D"}


class Hanoi(PuzzleEnv):
    """Move disks from peg to peg, never onto a smaller one, until all are at their targets.

    Observation: both arrangements. Action: the reply.
    Reward: 1.0 for any legal moves that do it, from level 3 on for any with the fewest moves.
    End: after one step. Levels have 3, 4, 4, 5 and 7 disks; level 4 has a fourth peg.
    """

    verifier = rules.Hanoi

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw two arrangements, each disk on any peg; the largest has to move."""
        disks, pegs, optimal = _LEVELS[level - 1]
        every, alike = pegs**disks, pegs ** (disks - 1)  # alike: with the largest on one peg
        first, further = divmod(below(rng, every * (every - alike)), every - alike)
        second = ((first // alike + 1) * alike + further) % every
        before, after = ([n // pegs**d % pegs for d in range(disks)] for n in (first, second))
        start, goal = _stacks(before, pegs), _stacks(after, pegs)
        fewest = " with as few moves as possible" if optimal else ""
        return Puzzle(
            f"Disks 1 to {disks}, 1 the smallest, lie on the pegs {_NAMED[pegs]}. A move takes the "
            "top disk of one peg to another peg, never onto a smaller disk.\n\n"
            f"Start, from the bottom up:\n{_drawn(start)}\n\nGoal:\n{_drawn(goal)}\n\n"
            f"Bring the disks from start to goal{fewest}. "
            "Give all moves as pairs of pegs, parted by commas, like X->Y, Y->Z.",
            {"start": start, "goal": goal, "optimal": optimal},
        )


def _stacks(at: list[int], pegs: int) -> list[list[int]]:
    """Return the disks of each peg from the bottom, by the peg of each disk."""
    disks = range(len(at), 0, -1)
    return [[disk for disk in disks if at[disk - 1] == peg] for peg in range(pegs)]


def _drawn(stacks: list[list[int]]) -> str:
    rows = (" ".join(map(str, stack)) or "empty" for stack in stacks)
    return "\n".join(map(": ".join, zip(rules.PEGS, rows, strict=False)))
