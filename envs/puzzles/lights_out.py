"""Lights out: put out all lights."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import lights_out as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((3, 2), (3, 4), (4, 5), (5, 6), (6, 12))
"""Rows, and how many cells are pressed to make the lights."""


class LightsOut(PuzzleEnv):
    """Press cells until no light is on; a press switches the cell and its neighbours.

    Observation: the grid. Action: the reply.
    Reward: 1.0 for any presses that do it. End: after one step.
    Levels have 3, 3, 4, 5 and 6 rows.
    """

    verifier = rules.LightsOut

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw presses until a light that they leave is on."""
        size, number = _LEVELS[level - 1]
        lit = 0
        while not lit:
            cells = rng.permutation(size * size)[: number + int(rng.integers(3))]
            pressed = sorted(divmod(int(cell), size) for cell in cells)
            for cell in pressed:
                lit ^= rules.switched(*cell, size, size)
        signs = ["#" if lit >> at & 1 else "." for at in range(size * size)]
        grid = ["".join(signs[at : at + size]) for at in range(0, size * size, size)]
        drawn = "\n".join(grid)
        return Puzzle(
            "# is a light that is on, a dot one that is off. Pressing a cell switches it and the "
            f"cells above, below, left and right of it.\n\n{drawn}\n\n"
            "Which cells are to be pressed, so that all lights are off? Give each as "
            "(row, column), counted from 0 at the top left, parted by commas.",
            {"grid": grid},
            ", ".join(map(str, pressed)),
        )
