"""Sudoku: fill a grid so that no row, column or box repeats a digit."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import sudoku as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((4, 5), (4, 10), (6, 22), (9, 36), (9, 60))
"""By level: the size of the grid, and how many cells are blanked at most."""

Grid = list[list[int]]


class Sudoku(PuzzleEnv):
    """Fill a grid of 4, 6 or 9 rows.

    Observation: the grid, 0 for a blank cell. Action: the grid, filled in.
    Reward: 1.0 for any filling by the rules.
    End: after one step. Every grid has exactly one filling, found without guessing.
    Levels: 4 x 4 with up to 5 blank cells; 4 x 4 with up to 10; 6 x 6 with up to 22; 9 x 9 with up
    to 36; 9 x 9 with as many as singles can fill, some 50.
    """

    verifier = rules.Sudoku

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a full grid by permutations, and blank cells one by one."""
        size, blanks = _LEVELS[level - 1]
        full = _full(rng, size)
        grid = _blanked(rng, full, blanks)
        high, wide = rules.BOXES[size]
        return Puzzle(
            f"Fill in this {size} x {size} Sudoku: every row, every column and every box of {high} "
            f"rows and {wide} columns holds each digit from 1 to {size} once. 0 is a blank cell.\n"
            f"{_written(grid)}\n"
            f"Answer with the whole grid: {size} lines of {size} digits with blanks between them.",
            {"grid": grid},
            _written(full),
        )


def _written(grid: Grid) -> str:
    return "\n".join(" ".join(map(str, row)) for row in grid)


def _full(rng: np.random.Generator, size: int) -> Grid:
    """Permute digits, rows, columns, bands and stacks of a pattern that keeps the rules."""
    high, wide = rules.BOXES[size]
    digits = (rng.permutation(size) + 1).tolist()
    rows = _within_bands(rng, size, high)
    columns = _within_bands(rng, size, wide)
    return [[digits[(wide * (r % high) + r // high + c) % size] for c in columns] for r in rows]


def _within_bands(rng: np.random.Generator, size: int, band: int) -> list[int]:
    bands = rng.permutation(size // band).tolist()
    return [b * band + k for b in bands for k in rng.permutation(band).tolist()]


def _blanked(rng: np.random.Generator, full: Grid, most: int) -> Grid:
    """Blank cells whose digit the others determine, so that the solution is unique.

    A cell is blanked if its digit is the only one that fits it, or if it is the only cell of a
    row, column or box that its digit fits. The last one blanked can then be filled in first, and
    so on back to the full grid: no search is needed.
    """
    grid = [row[:] for row in full]
    for cell in rng.permutation(len(full) ** 2).tolist():
        if most == 0:
            break
        r, c = divmod(cell, len(full))
        grid[r][c] = 0
        if _determined(grid, r, c, full[r][c]):
            most -= 1
        else:
            grid[r][c] = full[r][c]
    return grid


def _determined(grid: Grid, r: int, c: int, digit: int) -> bool:
    """Return True if only one digit fits a cell, or its digit fits no other cell of a unit."""
    units = [places for _, places in rules.units(len(grid))]
    mine = [places for places in units if (r, c) in places]
    if len({grid[i][j] for places in mine for i, j in places} - {0}) == len(grid) - 1:
        return True
    with_digit = [places for places in units if any(grid[i][j] == digit for i, j in places)]
    taken = {place for places in with_digit for place in places}
    free = [[1 for i, j in places if not grid[i][j] and (i, j) not in taken] for places in mine]
    return [1] in free
