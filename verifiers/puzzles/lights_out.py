"""Lights out: do the presses put out all lights?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..validation import safe_repr
from .maze import cells_of
from .puzzle import BadReference, PuzzleVerifier, check_list, fields
from .reading import Unreadable

Grid = tuple[str, ...]


class LightsOut(PuzzleVerifier):
    r"""Accept any cells whose presses put out all lights.

    A press switches the cell and those above, below, left and right of it. The answer is the cells
    to press, ``(row, column)`` from 0 at the top left, in any order: ``(0, 1), (2, 2)`` or a list
    of lists. A cell that is named twice is pressed twice; more than 1,000 presses lose.

    Reference: ``{"grid": ["#.", ".#"]}``, ``#`` for a light that is on, ``.`` for one that is off;
    2 to 10 rows and columns. A grid that cannot be put out or is dark already is refused.
    """

    def check(self, reference: Any) -> None:
        """Check that there are lights that presses can put out."""
        (grid,) = fields(reference, "grid")
        check_list("grid", grid, 2, 10, "rows")
        if not all(type(row) is str and set(row) <= set("#.") for row in grid):
            raise BadReference(f"rows must be text of '#' and '.', got {safe_repr(grid)}")
        if len({len(row) for row in grid}) != 1 or not 2 <= len(grid[0]) <= 10:
            raise BadReference(f"rows must be of one length from 2 to 10, got {safe_repr(grid)}")
        if "#" not in "".join(grid):
            raise BadReference("a light must be on, or nothing is to be done")
        if presses(tuple(grid)) is None:
            raise BadReference("no presses put out all lights")

    def oracle_reply(self, reference: Any) -> str | None:
        return ", ".join(map(str, presses(tuple(reference["grid"])) or ()))

    def fault(self, text: str, reference: Any) -> str | None:
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
            lit ^= switched(row, column, len(grid), len(grid[0]))
        return f"{lit.bit_count()} lights stay on" if lit else None


def _lit(grid: Grid) -> int:
    """Return the lights that are on, as the bits of a number."""
    return sum(1 << at for at, char in enumerate("".join(grid)) if char == "#")


def switched(row: int, column: int, height: int, width: int) -> int:
    """Return the lights that a press switches, as the bits of a number, row by row."""
    cells = [(row, column), (row - 1, column), (row + 1, column), (row, column - 1)]
    cells.append((row, column + 1))
    return sum(1 << r * width + c for r, c in cells if 0 <= r < height and 0 <= c < width)


@lru_cache(maxsize=256)
def presses(grid: Grid) -> tuple[tuple[int, int], ...] | None:
    """Return cells to press, ``None`` if none do it: Gauss's elimination over two elements.

    Each row of the system holds the lights that presses switch, and above them these presses.
    """
    height, width = len(grid), len(grid[0])
    size = height * width
    rows = [switched(*divmod(at, width), height, width) | 1 << size + at for at in range(size)]
    left = _lit(grid)
    for light in range(size):
        pivot = next((row for row in rows if row >> light & 1), None)
        if pivot is None:
            continue
        rows = [row ^ pivot if row >> light & 1 else row for row in rows if row is not pivot]
        if left >> light & 1:
            left ^= pivot
    if left & ((1 << size) - 1):
        return None
    return tuple(divmod(at, width) for at in range(size) if left >> size + at & 1)
