"""Sliding tiles: do the moves put the tiles in order?"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, PuzzleVerifier, fields
from .reading import Unreadable, items

Board = tuple[int, ...]
"""The tiles row by row; 0 is the gap."""

MAX_MOVES = 2_000
_FILLERS = frozenset({"move", "slide", "tile", "then"})
_SEARCH = 20_000
"""Boards that the search for a solution looks at."""


class SlidingTiles(PuzzleVerifier):
    r"""Accept any moves that put the tiles in order, the gap last.

    A move slides a tile next to the gap into it. The answer names the tiles that move, in their
    order: ``8, 5, 6``, ``8 -> 5 -> 6``, ``[8, 5, 6]`` or the like. More than 2,000 moves lose.

    Reference: ``{"board": [[1, 2, 3], [4, 5, 6], [7, 0, 8]]}``, with 0 for the gap; 2 to 5 rows
    and columns. A board that cannot be solved or is in order already is refused.
    """

    def check(self, reference: Any) -> None:
        """Check that moves can put all tiles in order."""
        (rows,) = fields(reference, "board")
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise BadReference(f"board must be a list of rows, got {safe_repr(rows)}")
        widths = {len(row) for row in rows}
        if not 2 <= len(rows) <= 5 or len(widths) != 1 or not 2 <= min(widths) <= 5:
            raise BadReference(
                f"board must have 2 to 5 rows of one length from 2 to 5, got {safe_repr(rows)}"
            )
        tiles = [tile for row in rows for tile in row]
        if any(type(tile) is not int for tile in tiles) or sorted(tiles) != [*range(len(tiles))]:
            raise BadReference(
                f"board must hold 0 to {len(tiles) - 1}, each once, got {safe_repr(rows, 120)}"
            )
        if tuple(tiles) == in_order(len(tiles)):
            raise BadReference("the tiles must not be in order already, or nothing is to be done")
        if not solvable(tuple(tiles), len(rows[0])):
            raise BadReference("no moves put the tiles in order")

    def oracle_reply(self, reference: Any) -> str | None:
        rows = reference["board"]
        moves = solved(tuple(tile for row in rows for tile in row), len(rows[0]))
        return None if moves is None else ", ".join(map(str, moves))

    def fault(self, text: str, reference: Any) -> str | None:
        rows = reference["board"]
        board, width = [tile for row in rows for tile in row], len(rows[0])
        moves = [item for item in items(text) if item.casefold() not in _FILLERS]
        if not moves:
            raise Unreadable("there are no moves")
        if len(moves) > MAX_MOVES:
            return f"{len(moves)} moves are more than {MAX_MOVES}"
        tiles = {str(tile): tile for tile in board if tile}
        for number, move in enumerate(moves, 1):
            if move not in tiles:
                raise Unreadable(f"{safe_repr(move, 40)} is no tile")
            at, gap = board.index(tiles[move]), board.index(0)
            if at not in beside(gap, width, len(board)):
                return f"move {number}: tile {move} is not next to the gap"
            board[gap], board[at] = board[at], 0
        return None if tuple(board) == in_order(len(board)) else f"ends with {board}"


def in_order(size: int) -> Board:
    """Return the tiles in order."""
    return (*range(1, size), 0)


def beside(gap: int, width: int, size: int) -> Iterator[int]:
    """Yield the places next to the gap."""
    if gap % width:
        yield gap - 1
    if (gap + 1) % width:
        yield gap + 1
    if gap >= width:
        yield gap - width
    if gap + width < size:
        yield gap + width


def solvable(board: Board, width: int) -> bool:
    """Return True if moves put the tiles in order: Johnson and Story (1879).

    Each move is a swap with the gap, so the parity of the swaps that are needed is that of the
    gap's distance to its place.
    """
    gap = board.index(0)
    distance = (width - 1 - gap % width) + (len(board) // width - 1 - gap // width)
    order = [tile or len(board) for tile in board]
    swaps = sum(order[a] > order[b] for b in range(len(order)) for a in range(b))
    return swaps % 2 == distance % 2


@lru_cache(maxsize=256)
def solved(board: Board, width: int) -> tuple[int, ...] | None:
    """Return the tiles to move, not the fewest; ``None`` if the search was too long.

    Best first, by the number of moves and five times the tiles' distances to their places.
    """
    goal = in_order(len(board))
    came: dict[Board, tuple[Board, int]] = {board: (board, 0)}
    queue = [(0, 0, board)]
    while queue and len(came) < _SEARCH:
        _, moves, at = heapq.heappop(queue)
        if at == goal:
            break
        gap = at.index(0)
        for place in beside(gap, width, len(at)):
            after = list(at)
            after[gap], after[place] = after[place], 0
            key = tuple(after)
            if key not in came:
                came[key] = at, at[place]
                heapq.heappush(queue, (moves + 1 + 5 * _far(key, width), moves + 1, key))
    if goal not in came:
        return None
    found, at = [], goal
    while at != board:
        at, tile = came[at]
        found.append(tile)
    return tuple(reversed(found))


def _far(board: Board, width: int) -> int:
    return sum(
        abs(at % width - (tile - 1) % width) + abs(at // width - (tile - 1) // width)
        for at, tile in enumerate(board)
        if tile
    )
