"""Maze: does a walk lead from the start to the goal?"""

from __future__ import annotations

import re
from collections import deque
from functools import lru_cache
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from .any_answer import AnyAnswer, items

Cell = tuple[int, int]
Grid = tuple[str, ...]

STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
MAX_CELLS = 10_000


class Maze(AnyAnswer):
    r"""Accept any walk over open cells from ``S`` that ends on ``G``.

    Moves are letters (``RRDD``, ``R, R, D, D``), words (``right, down``), points of the compass
    (``E E S`` or ``east``), or arrows, one for each cell; or the walk is a list of cells,
    ``(row, column)`` from 0 at the top left, with or without the start. A move into a wall or off
    the grid loses, and so does a walk that ends anywhere but on the goal, even if it passed it.
    Cells may be visited again, but a walk of more than four moves for each cell of the grid loses.

    Reference: ``{"grid": ["S.#", "..G"]}``, ``#`` for walls, ``.`` or a space for open cells; with
    ``"shortest": true`` only a shortest walk wins.

    Args:
        shortest: only shortest walks win, whatever the reference says.

    Example:
        >>> maze = {"grid": ["S.#", "..G"]}
        >>> [Maze().verify(reply, maze).score for reply in ("RDR", "down, right, right", "RRD")]
        [1.0, 1.0, 0.0]
    """

    def __init__(self, *, shortest: bool = False) -> None:
        self.shortest = shortest

    def check_reference(self, reference: Any) -> str | None:
        """A grid with one start and one goal that can be reached from it."""
        if not isinstance(reference, dict) or "grid" not in reference:
            return f"expected a grid, got {shown(reference)}"
        if type(reference.get("shortest", False)) is not bool:
            return f"shortest must be true or false, got {shown(reference['shortest'])}"
        grid = reference["grid"]
        if not isinstance(grid, list) or not grid or not all(type(row) is str for row in grid):
            return f"grid must be a list of rows of text, got {shown(grid)}"
        if len({len(row) for row in grid}) != 1:
            return "all rows of the grid must be of one length"
        if len(grid) * len(grid[0]) > MAX_CELLS:
            return f"the grid must have at most {MAX_CELLS} cells, got {len(grid)}x{len(grid[0])}"
        flat = "".join(grid)
        if odd := set(flat) - set("#. SG"):
            return f"cells must be '#', '.', ' ', 'S' or 'G', got {min(odd)!r}"
        if flat.count("S") != 1 or flat.count("G") != 1:
            return f"expected one S and one G, got {flat.count('S')} and {flat.count('G')}"
        return None if shortest_walk(tuple(grid)) else "the goal cannot be reached"

    def winning_reply(self, reference: Any) -> str | None:
        """A shortest walk, in letters."""
        return shortest_walk(tuple(reference["grid"]))

    def fault(self, text: str, reference: Any) -> str | None:
        """Follow the walk cell by cell."""
        grid = tuple(reference["grid"])
        start = at = position(grid, "S")
        walk = _cells(text, start)
        if walk is None:
            walk = _walk(start, _moves(text))
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
        least = len(shortest_walk(grid) or "")
        if (self.shortest or reference.get("shortest", False)) and len(walk) > least:
            return f"takes {len(walk)} moves where {least} are enough"
        return None


def position(grid: Grid, mark: str) -> Cell:
    """Row and column of a mark that the grid holds."""
    return next((r, row.index(mark)) for r, row in enumerate(grid) if mark in row)


@lru_cache(maxsize=256)
def shortest_walk(grid: Grid) -> str | None:
    """The letters of a shortest walk by breadth-first search, or ``None`` where there is none."""
    start, goal = position(grid, "S"), position(grid, "G")
    came: dict[Cell, tuple[Cell, str]] = {start: (start, "")}
    queue = deque([start])
    while queue and goal not in came:
        row, column = at = queue.popleft()
        for letter, (down, right) in STEPS.items():
            cell = r, c = row + down, column + right
            inside = 0 <= r < len(grid) and 0 <= c < len(grid[0])
            if inside and grid[r][c] != "#" and cell not in came:
                came[cell] = at, letter
                queue.append(cell)
    if goal not in came:
        return None
    letters, at = [], goal
    while at != start:
        at, letter = came[at]
        letters.append(letter)
    return "".join(reversed(letters))


_NAMES = {
    "up": "U", "north": "U", "n": "U", "u": "U", "down": "D", "south": "D", "s": "D", "d": "D",
    "left": "L", "west": "L", "w": "L", "l": "L", "right": "R", "east": "R", "e": "R", "r": "R",
}  # fmt: skip
_ARROWS = {"↑": "U", "↓": "D", "←": "L", "→": "R", "⬆": "U", "⬇": "D", "⬅": "L", "➡": "R"}
_BETWEEN = frozenset(" \t\r\n,;[](){}\"'")
_FILLERS = frozenset({"go", "move", "then"})


def _moves(text: str) -> str:
    """The moves as letters of :data:`STEPS`."""
    if not any(char.isalnum() for char in text):  # else arrows stand between the moves
        return "".join(_arrow(char) for char in text if char not in _BETWEEN)
    moves = []
    for item in items(text):
        word = item.casefold()
        if word in _NAMES:
            moves.append(_NAMES[word])
        elif word not in _FILLERS:
            if unknown := set(word) - _NAMES.keys():
                raise Unreadable(f"{shown(item, 40)} is no move: {min(unknown)!r}")
            moves.extend(_NAMES[letter] for letter in word)
    if not moves:
        raise Unreadable("there are no moves")
    return "".join(moves)


def _arrow(char: str) -> str:
    if char not in _ARROWS:
        raise Unreadable(f"{char!r} is no move")
    return _ARROWS[char]


def _walk(at: Cell, moves: str) -> list[Cell]:
    walk = []
    for letter in moves:
        at = at[0] + STEPS[letter][0], at[1] + STEPS[letter][1]
        walk.append(at)
    return walk


_CELL = re.compile(r"[\[(]\s{0,3}(\d{1,4})\s{0,3},\s{0,3}(\d{1,4})\s{0,3}[\])]", re.ASCII)
_AROUND_CELLS = frozenset(" \t\r\n,;[](){}->=→")


def cells_of(text: str) -> list[Cell]:
    """The cells of a list of cells, empty where the text is none."""
    if not _AROUND_CELLS.issuperset(_CELL.sub("", text)):
        return []
    return [(int(row), int(column)) for row, column in _CELL.findall(text)]


def _cells(text: str, start: Cell) -> list[Cell] | None:
    """The cells after the start, or ``None`` where the text is no list of cells."""
    cells = cells_of(text)
    if not cells:
        return None
    return cells[1:] if cells[0] == start else cells
