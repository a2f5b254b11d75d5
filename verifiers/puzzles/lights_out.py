"""Lights out: do the presses put out all lights?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from .any_answer import AnyAnswer
from .maze import cells_of

Grid = tuple[str, ...]


class LightsOut(AnyAnswer):
    r"""Accept any cells whose presses put out all lights.

    A press switches the cell and those above, below, left and right of it. The answer is the cells
    to press, ``(row, column)`` from 0 at the top left, in any order: ``(0, 1), (2, 2)`` or a list
    of lists. A cell that is named twice is pressed twice; more than 1,000 presses lose.

    Reference: ``{"grid": ["#.", ".#"]}``, ``#`` where a light is on, ``.`` where it is off; 2 to 10
    rows and columns. A grid that cannot be put out or is dark already is refused.

    Example:
        >>> LightsOut().verify("(0, 0)", {"grid": ["##.", "#..", "..."]}).score
        1.0
    """

    def check_reference(self, reference: Any) -> str | None:
        """A grid with lights that presses can put out."""
        if not isinstance(reference, dict) or "grid" not in reference:
            return f"expected a grid, got {shown(reference)}"
        grid = reference["grid"]
        if not isinstance(grid, list) or not 2 <= len(grid) <= 10:
            return f"grid must be a list of 2 to 10 rows, got {shown(grid)}"
        if not all(type(row) is str and set(row) <= set("#.") for row in grid):
            return f"rows must be text of '#' and '.', got {shown(grid)}"
        if len({len(row) for row in grid}) != 1 or not 2 <= len(grid[0]) <= 10:
            return f"rows must be of one length from 2 to 10, got {shown(grid)}"
        if "#" not in "".join(grid):
            return "a light must be on, or nothing is to be done"
        return None if presses(tuple(grid)) is not None else "no presses put out all lights"

    def winning_reply(self, reference: Any) -> str | None:
        """Presses that do it."""
        return ", ".join(map(str, presses(tuple(reference["grid"])) or ()))

    def fault(self, text: str, reference: Any) -> str | None:
        """Press the cells."""
        grid = tuple(reference["grid"])
        cells = cells_of(text)
        if not cells:
            raise Unreadable("expected cells such as (0, 1)")
        if len(cells) > 1_000:
            return f"{len(cells)} presses are more than 1000"
        lit = _lit(grid)
        for row, column in cells:
            if row >= len(grid) or column >= len(grid[0]):
                return f"there is no cell ({row}, {column})"
            lit ^= _cross(row, column, len(grid), len(grid[0]))
        return f"{lit.bit_count()} lights stay on" if lit else None


def _lit(grid: Grid) -> int:
    """The lights that are on, as the bits of a number."""
    return sum(1 << at for at, char in enumerate("".join(grid)) if char == "#")


def _cross(row: int, column: int, height: int, width: int) -> int:
    cells = [(row, column), (row - 1, column), (row + 1, column), (row, column - 1)]
    cells.append((row, column + 1))
    return sum(1 << r * width + c for r, c in cells if 0 <= r < height and 0 <= c < width)


@lru_cache(maxsize=256)
def presses(grid: Grid) -> tuple[tuple[int, int], ...] | None:
    """Cells to press, ``None`` where there are none: Gauss's elimination over two elements.

    Each row of the system holds the lights that presses switch, and above them these presses.
    """
    height, width = len(grid), len(grid[0])
    size = height * width
    rows = [_cross(at // width, at % width, height, width) | 1 << size + at for at in range(size)]
    wanted = _lit(grid)
    for light in range(size):
        pivot = next((row for row in rows if row >> light & 1), None)
        if pivot is None:
            continue
        rows = [row ^ pivot if row >> light & 1 else row for row in rows if row is not pivot]
        if wanted >> light & 1:
            wanted ^= pivot
    if wanted & ((1 << size) - 1):
        return None
    return tuple(divmod(at, width) for at in range(size) if wanted >> size + at & 1)
