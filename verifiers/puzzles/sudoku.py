"""Sudoku: is the grid filled in by the rules?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..shown import shown
from .solution import Solution
from .square import read_square

BOXES = {4: (2, 2), 6: (2, 3), 9: (3, 3)}
"""Rows and columns of a box, by the size of the grid."""

Grid = list[list[int]]


class Sudoku(Solution):
    r"""Accept any grid that keeps the givens and repeats nothing in a row, column or box.

    The grid is all that stands in the last ``<answer>``, else the last ``\boxed{}``, else the last
    fenced block, else the last paragraph, or the whole reply. It may be lines of digits with or
    without blanks, commas, bars and ruled lines, one line of all digits, lists as in JSON, a table
    of Markdown or a matrix of LaTeX. Two grids, a blank cell or words beside the grid lose. Where
    several fillings keep the rules, each of them wins.

    Reference: ``{"grid": [[1, 0, 0, 4], ...]}``, 0 for a blank; or its digits in one string, 0 or
    ``.`` for a blank. Grids have 4, 6 or 9 rows; the boxes of 6 are 2 rows by 3 columns.

    Example:
        >>> puzzle = {"grid": "1034341221434321"}
        >>> Sudoku().verify("1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1", puzzle).score
        1.0
    """

    def check_reference(self, reference: Any) -> str | None:
        """A reference is a square of 4, 6 or 9 that keeps the rules and has a blank."""
        if not isinstance(reference, dict) or "grid" not in reference:
            return f"expected a dict with grid, got {shown(reference)}"
        grid = _given(reference["grid"])
        if isinstance(grid, str):
            return grid
        if all(all(row) for row in grid):
            return "grid must have a blank cell, written 0: nothing is left to fill in"
        clash = _clash(grid)
        return None if clash is None else f"grid must keep the rules, but {clash}"

    def read(self, text: str, reference: Any) -> Grid:
        """The grid, filled in."""
        size = len(_known(reference))
        return read_square(
            text.rstrip().removesuffix("."), size, {str(d): d for d in range(1, size + 1)}
        )

    def broken(self, solution: Grid, reference: Any) -> str | None:
        """A given that is changed, or a digit that stands twice."""
        for r, row in enumerate(_known(reference)):
            for c, given in enumerate(row):
                if given not in (0, solution[r][c]):
                    return f"row {r + 1}, column {c + 1} is {given}, not {solution[r][c]}"
        return _clash(solution)


def _known(reference: Any) -> Grid:
    given = _given(reference["grid"])
    assert not isinstance(given, str)  # noqa: S101  # check_reference looked
    return given


def _given(grid: Any) -> Grid | str:
    """The grid of a reference, or what is wrong with it."""
    if isinstance(grid, str):
        size = next((n for n in BOXES if n * n == len(grid)), 0)
        if not size or set(grid) - set(".0123456789"):
            return f"grid must be 16, 36 or 81 digits, 0 or . for a blank, got {shown(grid)}"
        cells = [int(sign) if sign != "." else 0 for sign in grid]
        grid = [cells[i : i + size] for i in range(0, size * size, size)]
    rows = grid if isinstance(grid, list) else []
    size = len(rows)
    if size not in BOXES or not all(isinstance(row, list) and len(row) == size for row in rows):
        return f"grid must be 4 lists of 4, 6 of 6 or 9 of 9, got {shown(grid)}"
    for value in (value for row in rows for value in row):
        if type(value) is not int or not 0 <= value <= size:
            return f"cells must be whole numbers from 0 to {size}, got {shown(value)}"
    return rows


@lru_cache
def units(size: int) -> list[tuple[str, list[tuple[int, int]]]]:
    """Rows, columns and boxes by name, each with the places of its cells."""
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
    """A digit that stands twice in a unit, in words."""
    for name, places in units(len(grid)):
        digits = [digit for r, c in places if (digit := grid[r][c])]
        if len(set(digits)) < len(digits):
            twice = next(d for d in digits if digits.count(d) > 1)
            return f"{name} has {twice} twice"
    return None
