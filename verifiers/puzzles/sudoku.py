"""Sudoku: is the grid filled in by the rules?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..validation import safe_repr
from .grid import read_grid
from .puzzle import BadReference, GridVerifier, check_whole, fields

BOXES = {4: (2, 2), 6: (2, 3), 9: (3, 3)}
"""Rows and columns of a box, by the size of the grid."""

Grid = list[list[int]]


class Sudoku(GridVerifier):
    r"""Accept any grid that keeps the givens and repeats nothing in a row, column or box.

    The grid may be lines of digits with or without blanks, commas, bars and ruled lines, one line
    of all digits, lists as in JSON, a table of Markdown or a matrix of LaTeX. Two grids, a blank
    cell or words beside the grid fail: it is all that stands in the last ``<answer>``, else the
    last ``\boxed{}``, else the last fenced block, else the last paragraph or the whole reply. If
    several fillings keep the rules, each of them passes.

    Reference: ``{"grid": [[1, 0, 0, 4], ...]}``, 0 for a blank; or its digits in one string, 0 or
    ``.`` for a blank. Grids have 4, 6 or 9 rows; the boxes of 6 are 2 rows by 3 columns.
    """

    def check(self, reference: Any) -> None:
        """Check that a square of 4, 6 or 9 keeps the rules and has a blank."""
        grid = _given(*fields(reference, "grid"))
        if all(all(row) for row in grid):
            raise BadReference("grid must have a blank cell, written 0: nothing is left to fill in")
        if clash := _clash(grid):
            raise BadReference(f"grid must keep the rules, but {clash}")

    def fault(self, text: str, reference: Any) -> str | None:
        known = _given(reference["grid"])
        symbols = {str(digit): digit for digit in range(1, len(known) + 1)}
        grid = read_grid(text.rstrip(" .。"), len(known), symbols)
        for r, row in enumerate(known):
            for c, given in enumerate(row):
                if given not in (0, grid[r][c]):
                    return f"row {r + 1}, column {c + 1} is {given}, not {grid[r][c]}"
        return _clash(grid)


def _given(grid: Any) -> Grid:
    if isinstance(grid, str):
        size = next((n for n in BOXES if n * n == len(grid)), 0)
        if not size or set(grid) - set(".0123456789"):
            raise BadReference(f"grid must be 16, 36 or 81 digits or dots, got {safe_repr(grid)}")
        cells = [int(sign) if sign != "." else 0 for sign in grid]
        grid = [cells[i : i + size] for i in range(0, size * size, size)]
    rows: Grid = grid if isinstance(grid, list) else []
    size = len(rows)
    if size not in BOXES or not all(isinstance(row, list) and len(row) == size for row in rows):
        raise BadReference(f"grid must be 4 lists of 4, 6 of 6 or 9 of 9, got {safe_repr(grid)}")
    for value in (value for row in rows for value in row):
        check_whole("cells", value, 0, size)
    return rows


@lru_cache
def units(size: int) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return rows, columns and boxes by name, each with the places of its cells."""
    high, wide = BOXES[size]
    found = []
    for k in range(size):
        found.append((f"row {k + 1}", [(k, c) for c in range(size)]))
        found.append((f"column {k + 1}", [(r, k) for r in range(size)]))
        top, left = k // (size // wide) * high, k % (size // wide) * wide
        box = [(top + r, left + c) for r in range(high) for c in range(wide)]
        found.append((f"the box at row {top + 1}, column {left + 1}", box))
    return found


def _clash(grid: Grid) -> str | None:
    """Describe a digit that occurs twice in a unit."""
    for name, places in units(len(grid)):
        digits = [digit for r, c in places if (digit := grid[r][c])]
        if len(set(digits)) < len(digits):
            twice = next(d for d in digits if digits.count(d) > 1)
            return f"{name} has {twice} twice"
    return None
