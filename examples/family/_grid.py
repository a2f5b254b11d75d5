"""A grid with a goal and pits, small enough that a policy's return can be computed exactly."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

ROWS = ("S....", ".P.P.", ".....", ".P.P.", "....G")
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
SLIP, COST, HORIZON = 0.1, 0.02, 30
WIDTH = len(ROWS)
STATES = WIDTH * WIDTH
PAYS = {"G": 1.0, "P": -1.0}


class Grid(gymnasium.Env[int, int]):
    """Walk from a corner to the opposite one, around four pits.

    Observation: the cell. Action: up, right, down or left; one time in ten it is a random one.
    Reward: 1 at the goal, -1 in a pit, and 0.02 less for every step.
    End: at the goal or in a pit.
    """

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Discrete(STATES)  # type: ignore[assignment]  # numpy's int
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))  # type: ignore[assignment]  # likewise
        self._cell = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Back to the corner."""
        super().reset(seed=seed)
        self._cell = 0
        return self._cell, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Walk one cell."""
        if self.np_random.random() < SLIP:
            action = int(self.np_random.integers(len(MOVES)))
        self._cell = moved(self._cell, action)
        paid = PAYS.get(sign(self._cell))
        return self._cell, (paid or 0.0) - COST, paid is not None, False, {}

    def clone(self) -> tuple[int, Any]:
        """Copy the cell and the random state."""
        return self._cell, self.np_random.bit_generator.state

    def restore(self, clone: tuple[int, Any]) -> None:
        """Go back there."""
        self._cell, self.np_random.bit_generator.state = clone


def sign(cell: int) -> str:
    """Return the character of a cell."""
    return ROWS[cell // WIDTH][cell % WIDTH]


def moved(cell: int, action: int) -> int:
    """Return the cell that an action leads to; walls block."""
    row, column = (x + d for x, d in zip(divmod(cell, WIDTH), MOVES[action], strict=True))
    return row * WIDTH + column if 0 <= row < WIDTH and 0 <= column < WIDTH else cell


def exact_return(chances: np.ndarray) -> float:
    """Expected sum of rewards over the horizon.

    Args:
        chances: [S, A], of each action in each cell.
    """
    slipped = (1 - SLIP) * chances + SLIP / len(MOVES)
    ahead = np.zeros(STATES)
    for _ in range(HORIZON):
        here = np.zeros(STATES)
        for cell in range(STATES):
            for action in range(len(MOVES)):
                to = moved(cell, action)
                paid = PAYS.get(sign(to))
                worth = ahead[to] if paid is None else paid
                here[cell] += slipped[cell, action] * (worth - COST)
        ahead = here
    return float(ahead[0])
