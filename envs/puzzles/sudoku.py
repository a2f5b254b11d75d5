"""Sudoku: fill a grid so that no row, column or box repeats a digit."""

from __future__ import annotations

import numpy as np

from ...verifiers import Sudoku as SudokuVerifier
from .puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((4, 5), (4, 10), (6, 22), (9, 36), (9, 60))
"""By level: the size of the grid, and how many cells are blanked at most."""
_BOXES = {4: (2, 2), 6: (2, 3), 9: (3, 3)}

Grid = list[list[int]]


class Sudoku(PuzzleEnv):
    """Fill a grid of 4, 6 or 9 rows.

    Observation: the grid, 0 for a blank cell. Action: the grid, filled in.
    Reward: 1.0 for any filling by the rules. With ``think``, a sixth of it is paid for the format.
    End: after one step. Every grid has exactly one filling, found without guessing.

    Levels: 4 x 4 with up to 5 blank cells; 4 x 4 with up to 10; 6 x 6 with up to 22; 9 x 9 with up
    to 36; 9 x 9 with as many as singles can fill, some 50.
    """

    verifier = SudokuVerifier

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """A full grid by permutations, and cells blanked one by one."""
        size, blanks = _LEVELS[level - 1]
        full = _full(rng, size)
        grid = _blanked(rng, full, blanks)
        high, wide = _BOXES[size]
        text = (
            f"Fill in this {size} x {size} Sudoku: every row, every column and every box of {high} "
            f"rows and {wide} columns holds each digit from 1 to {size} once. 0 is a blank cell.\n"
            f"{_written(grid)}\n"
            f"Answer with the whole grid: {size} lines of {size} digits with blanks between them."
        )
        return Puzzle(text, {"grid": grid}, _written(full))


def _written(grid: Grid) -> str:
    return "\n".join(" ".join(map(str, row)) for row in grid)


def _full(rng: np.random.Generator, size: int) -> Grid:
    """A pattern that keeps the rules, with digits, rows, columns, bands and stacks permuted."""
    high, wide = _BOXES[size]
    digits = (rng.permutation(size) + 1).tolist()
    rows = _within_bands(rng, size, high)
    columns = _within_bands(rng, size, wide)
    return [[digits[(wide * (r % high) + r // high + c) % size] for c in columns] for r in rows]


def _within_bands(rng: np.random.Generator, size: int, band: int) -> list[int]:
    bands = rng.permutation(size // band).tolist()
    return [b * band + k for b in bands for k in rng.permutation(band).tolist()]


def _blanked(rng: np.random.Generator, full: Grid, most: int) -> Grid:
    """Blank cells whose digit the others tell at once, so that there is one filling.

    A cell is blanked where its digit is the only one that fits it, or where it is the only cell of
    a row, column or box that its digit fits. The last one blanked can then be filled in first, and
    so on back to the full grid: no search is needed.
    """
    size = len(full)
    high, wide = _BOXES[size]
    grid = [row[:] for row in full]
    for cell in rng.permutation(size * size).tolist():
        if most == 0:
            break
        r, c = divmod(cell, size)
        digit, grid[r][c] = grid[r][c], 0
        if _told(grid, r, c, digit, high, wide):
            most -= 1
        else:
            grid[r][c] = digit
    return grid


def _told(grid: Grid, r: int, c: int, digit: int, high: int, wide: int) -> bool:
    size = len(grid)
    top, left = r // high * high, c // wide * wide
    box = [(i, j) for i in range(top, top + high) for j in range(left, left + wide)]
    row = [(r, j) for j in range(size)]
    column = [(i, c) for i in range(size)]
    seen = {grid[i][j] for unit in (row, column, box) for i, j in unit}
    if len(seen - {0}) == size - 1:
        return True
    rows = {i for i in range(size) if digit in grid[i]}
    columns = {j for j in range(size) if any(grid[i][j] == digit for i in range(size))}
    boxes = {(i // high, j // wide) for i in rows for j in columns if grid[i][j] == digit}

    def fits(i: int, j: int) -> bool:
        taken = i in rows or j in columns or (i // high, j // wide) in boxes
        return not grid[i][j] and not taken

    return any(sum(fits(i, j) for i, j in unit) == 1 for unit in (row, column, box))
