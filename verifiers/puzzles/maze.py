"""Maze: does a walk lead from the start to the goal?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, ShortestVerifier, fields
from .reading import Unreadable, items
from .search import shortest_path

Cell = tuple[int, int]
Grid = tuple[str, ...]

STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
MAX_CELLS = 10_000


class Maze(ShortestVerifier):
    r"""Accept any walk over open cells from ``S`` that ends on ``G``.

    Moves are letters (``RRDD``, ``R, R, D, D``), words (``right, down``), points of the compass
    (``E E S`` or ``east``), or arrows, one for each cell; or the walk is a list of cells,
    ``(row, column)`` from 0 at the top left, with or without the start. A move into a wall or off
    the grid fails, and so does a walk that ends anywhere but on the goal, even if it passed it.
    Cells may be visited again, but a walk of more than four moves for each cell of the grid fails.

    Reference: ``{"grid": ["S.#", "..G"]}``, ``#`` for walls, ``.`` or a space for open cells; with
    ``"shortest": true`` only a shortest walk passes.

    Args:
        shortest: only shortest walks win, whatever the reference says.
    """

    def check(self, reference: Any) -> None:
        """Check that the goal can be reached from the start."""
        (grid,) = fields(reference, "grid", flags=("shortest",))
        if not isinstance(grid, list) or not grid or not all(type(row) is str for row in grid):
            raise BadReference(f"grid must be a list of rows of text, got {safe_repr(grid)}")
        if len({len(row) for row in grid}) != 1:
            raise BadReference("all rows of the grid must be of one length")
        if len(grid) * len(grid[0]) > MAX_CELLS:
            size = f"{len(grid)}x{len(grid[0])}"
            raise BadReference(f"the grid must have at most {MAX_CELLS} cells, got {size}")
        flat = "".join(grid)
        if odd := set(flat) - set("#. SG"):
            raise BadReference(f"cells must be '#', '.', ' ', 'S' or 'G', got {min(odd)!r}")
        if (ends := (flat.count("S"), flat.count("G"))) != (1, 1):
            raise BadReference(f"expected one S and one G, got {ends[0]} and {ends[1]}")
        if not shortest_walk(tuple(grid)):
            raise BadReference("the goal cannot be reached")

    def oracle_reply(self, reference: Any) -> str | None:
        return shortest_walk(tuple(reference["grid"]))

    def fault(self, text: str, reference: Any) -> str | None:
        grid = tuple(reference["grid"])
        start = at = position(grid, "S")
        walk = cells_of(text) or list(accumulate(_moves(text), _after, initial=start))
        if walk[0] == start:
            del walk[0]
        if len(walk) > 4 * len(grid) * len(grid[0]):
            return f"{len(walk)} moves are more than four for each cell of the grid"
        for number, cell in enumerate(walk, 1):
            row, column = cell
            if abs(row - at[0]) + abs(column - at[1]) != 1:
                return f"move {number} jumps from {at} to {cell}"
            if not (0 <= row < len(grid) and 0 <= column < len(grid[0])):
                return f"move {number} leaves the grid"
            if grid[row][column] == "#":
                return f"move {number} runs into a wall"
            at = cell
        if at != (goal := position(grid, "G")):
            return f"ends on {at}, not on the goal {goal}"
        if self.demands("shortest", reference):
            least = len(shortest_walk(grid) or "")
            if len(walk) > least:
                return f"takes {len(walk)} moves, {least} suffice"
        return None


def position(grid: Grid, mark: str) -> Cell:
    """Return row and column of a mark that the grid holds."""
    return next((r, row.index(mark)) for r, row in enumerate(grid) if mark in row)


@lru_cache(maxsize=256)
def shortest_walk(grid: Grid) -> str | None:
    """Return the letters of a shortest walk, ``None`` if there is none."""

    def moves(at: Cell) -> Iterator[tuple[str, Cell]]:
        for letter in STEPS:
            row, column = cell = _after(at, letter)
            inside = 0 <= row < len(grid) and 0 <= column < len(grid[0])
            if inside and grid[row][column] != "#":
                yield letter, cell

    path = shortest_path(position(grid, "S"), position(grid, "G").__eq__, moves)
    return None if path is None else "".join(letter for letter, _ in path)


def _after(cell: Cell, letter: str) -> Cell:
    return cell[0] + STEPS[letter][0], cell[1] + STEPS[letter][1]


_NAMES = {
    "up": "U", "north": "U", "n": "U", "u": "U", "down": "D", "south": "D", "s": "D", "d": "D",
    "left": "L", "west": "L", "w": "L", "l": "L", "right": "R", "east": "R", "e": "R", "r": "R",
}  # fmt: skip
_ARROWS = {"↑": "U", "↓": "D", "←": "L", "→": "R", "⬆": "U", "⬇": "D", "⬅": "L", "➡": "R"}
_BETWEEN = frozenset(" \t\r\n,;[](){}\"'")
_FILLERS = frozenset({"go", "move", "then"})


def _moves(text: str) -> list[str]:
    """Return the moves as letters of :data:`STEPS`."""
    words = any(char.isalnum() for char in text)  # else arrows are the moves, not between them
    known = _NAMES if words else _ARROWS
    moves: list[str] = []
    for item in items(text) if words else [char for char in text if char not in _BETWEEN]:
        word = item.casefold()
        if word in known:
            moves.append(known[word])
        elif word not in _FILLERS:
            if unknown := set(word) - known.keys():
                raise Unreadable(f"{safe_repr(item, 40)} is no move: {min(unknown)!r}")
            moves.extend(known[letter] for letter in word)
    if words and not moves:
        raise Unreadable("there are no moves")
    return moves


_CELL = re.compile(r"[\[(]\s{0,3}(\d{1,4})\s{0,3},\s{0,3}(\d{1,4})\s{0,3}[\])]", re.ASCII)
_BESIDE_CELLS = re.compile(r"\b(?:and|then|press|cells?)\b", re.IGNORECASE)
_AROUND_CELLS = frozenset(" \t\r\n,;[](){}->=→")


def cells_of(text: str) -> list[Cell]:
    """Return the cells of a list of cells, empty if the text is none."""
    if not _AROUND_CELLS.issuperset(_BESIDE_CELLS.sub("", _CELL.sub("", text))):
        return []
    return [(int(row), int(column)) for row, column in _CELL.findall(text)]
