"""Lights out: put out all lights."""

from __future__ import annotations

import numpy as np

from ...verifiers import LightsOut as LightsOutVerifier
from .puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((3, 2), (3, 4), (4, 5), (5, 6), (6, 12))
"""Rows, and how many cells are pressed to make the lights."""


class LightsOut(PuzzleEnv):
    """Press cells until no light is on; a press switches the cell and its neighbours.

    Observation: the grid. Action: the reply.
    Reward: 1.0 for any presses that do it. End: after one step.
    Levels have 3, 3, 4, 5 and 6 rows.
    """

    verifier = LightsOutVerifier

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """The lights that presses at random leave, of which one is on."""
        size, number = _LEVELS[level - 1]
        lit = np.zeros((size + 2, size + 2), dtype=bool)
        pressed: list[tuple[int, int]] = []
        while not lit[1:-1, 1:-1].any():
            lit[:] = False
            cells = rng.permutation(size * size)[: number + int(rng.integers(3))]
            pressed = sorted(divmod(int(cell), size) for cell in cells)
            for row, column in pressed:
                lit[row + 1, column : column + 3] ^= True
                lit[row : row + 3 : 2, column + 1] ^= True
        grid = ["".join("#" if on else "." for on in row) for row in lit[1:-1, 1:-1].tolist()]
        drawn = "\n".join(grid)
        return Puzzle(
            "# is a light that is on, a dot one that is off. Pressing a cell switches it and the "
            f"cells above, below, left and right of it.\n\n{drawn}\n\n"
            "Which cells are to be pressed, so that all lights are off? Give each as "
            "(row, column), counted from 0 at the top left, parted by commas.",
            {"grid": grid},
            ", ".join(map(str, pressed)),
        )
