"""Tower of Hanoi: bring the disks from one arrangement to another."""

from __future__ import annotations

import numpy as np

from ...verifiers import Hanoi as HanoiVerifier
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
        start, goal = _arranged(rng, disks, pegs), _arranged(rng, disks, pegs)
        while _peg_of(start, disks) == _peg_of(goal, disks):
            goal = _arranged(rng, disks, pegs)
        reference = {"start": start, "goal": goal, "optimal": optimal}
        fewest = " with as few moves as possible" if optimal else ""
        return Puzzle(
            f"Disks 1 to {disks}, 1 the smallest, lie on the pegs {_named(pegs)}. A move takes the "
            "top disk of one peg to another peg, never onto a smaller disk.\n\n"
            f"Start, from the bottom up:\n{_told(start)}\n\nGoal:\n{_told(goal)}\n\n"
            f"Bring the disks from start to goal{fewest}. "
            "Give all moves as pairs of pegs, parted by commas, like X->Y, Y->Z.",
            reference,
            HanoiVerifier().winning_reply(reference) or "",
        )


def _arranged(rng: np.random.Generator, disks: int, pegs: int) -> list[list[int]]:
    at = rng.integers(pegs, size=disks).tolist()
    return [[disk for disk in range(disks, 0, -1) if at[disk - 1] == peg] for peg in range(pegs)]


def _peg_of(pegs: list[list[int]], disk: int) -> int:
    return next(number for number, peg in enumerate(pegs) if disk in peg)


def _named(pegs: int) -> str:
    return ", ".join("ABCDEF"[: pegs - 1]) + f" and {'ABCDEF'[pegs - 1]}"


def _told(pegs: list[list[int]]) -> str:
    told = (" ".join(map(str, peg)) or "empty" for peg in pegs)
    return "\n".join(f"{name}: {disks}" for name, disks in zip("ABCDEF", told, strict=False))
