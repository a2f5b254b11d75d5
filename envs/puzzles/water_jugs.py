"""Water jugs: measure out an amount."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import water_jugs as rules
from ..puzzle_env import Puzzle, PuzzleEnv
from ..seeding import between, several

_LEVELS = (
    (2, 30, 2, False),
    (2, 20, 4, False),
    (3, 13, 4, False),
    (2, 19, 8, True),
    (3, 22, 6, True),
)
"""Jugs, the largest capacity, the least steps, and whether no more are allowed."""


class WaterJugs(PuzzleEnv):
    """Measure an amount with jugs that have no marks; from level 4 on in the fewest steps.

    Observation: the capacities and the amount. Action: the reply.
    Reward: 1.0 for any steps that do it, from level 4 on for any with the fewest.
    End: after one step. Levels 1, 2 and 4 have two jugs, the others three.
    """

    verifier = rules.WaterJugs

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw capacities and an amount until it takes enough steps."""
        jugs, largest, least, optimal = _LEVELS[level - 1]
        steps: tuple[rules.Step, ...] = ()
        while len(steps) < least:
            capacities = [2 + n for n in several(rng, largest - 1, jugs)]
            target = between(rng, 1, max(capacities))
            steps = rules.fewest_steps(tuple(capacities), target)
        listed = ", ".join(f"{'ABC'[n]} holds {litres}" for n, litres in enumerate(capacities))
        fewest = ", in as few steps as possible" if optimal else ""
        return Puzzle(
            f"Jugs without marks hold so many litres: {listed}. They are empty, and there is "
            "plenty of water. You can fill a jug to the brim, empty it, or pour from one into "
            "another until the first is empty or the second full. Measure out "
            f"{target} litres in one of the jugs{fewest}. Give the steps, parted by commas, in "
            "words such as fill X, empty X and pour X into Y.",
            {"capacities": capacities, "target": target, "optimal": optimal},
        )
