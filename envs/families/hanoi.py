"""Tower of Hanoi: bring the disks from one arrangement to another."""

from __future__ import annotations

import numpy as np

from ...verifiers import Hanoi as HanoiVerifier
from ...verifiers.families.hanoi import fewest_moves, written
from .draws import below, several
from .family import Family, Puzzle

_LEVELS = ((3, 3, False), (4, 3, False), (4, 3, True), (5, 4, True), (7, 3, True))


class Hanoi(Family):
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
        before, after = several(rng, pegs, disks), several(rng, pegs, disks)
        after[-1] = (before[-1] + 1 + below(rng, pegs - 1)) % pegs
        start, goal = _arranged(before, pegs), _arranged(after, pegs)
        fewest = " with as few moves as possible" if optimal else ""
        return Puzzle(
            f"Disks 1 to {disks}, 1 the smallest, lie on the pegs {_NAMED[pegs]}. A move takes the "
            "top disk of one peg to another peg, never onto a smaller disk.\n\n"
            f"Start, from the bottom up:\n{_told(start)}\n\nGoal:\n{_told(goal)}\n\n"
            f"Bring the disks from start to goal{fewest}. "
            "Give all moves as pairs of pegs, parted by commas, like X->Y, Y->Z.",
            {"start": start, "goal": goal, "optimal": optimal},
            written(fewest_moves(tuple(before), tuple(after), pegs)),
        )


_NAMED = {3: "A, B and C", 4: "A, B, C and D"}


def _arranged(at: list[int], pegs: int) -> list[list[int]]:
    arranged: list[list[int]] = [[] for _ in range(pegs)]
    for disk in range(len(at), 0, -1):
        arranged[at[disk - 1]].append(disk)
    return arranged


def _told(pegs: list[list[int]]) -> str:
    told = [" ".join(map(str, peg)) if peg else "empty" for peg in pegs]
    return "\n".join(map(": ".join, zip("ABCDEF", told, strict=False)))
