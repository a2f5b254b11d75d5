"""Knight's paths: do the knight's moves lead from square to square?"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from .any_answer import AnyAnswer, items
from .graph import repeated

_SQUARE = re.compile(r"[a-z][1-9][0-9]?")
_PIECE = re.compile(r"[Nn](?=[a-z])")
_LEAPS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]


class KnightPath(AnyAnswer):
    r"""Accept any way of a chess knight from the start to the goal.

    The way names its squares from first to last, ``a1, b3, c5``, ``a1 -> b3 -> c5`` or the like,
    also with the knight's letter, ``Nb3``; the start may be left out. It visits no square twice
    and none that is blocked.

    Reference: ``{"size": 8, "start": "a1", "goal": "c5", "blocked": ["b3"]}``, a board of 3 to 20
    rows and columns, of 8 where ``size`` is left out; with ``"shortest": true`` only a shortest way
    wins.

    Args:
        shortest: only shortest ways win, whatever the reference says.

    Example:
        >>> KnightPath().verify("a1, b3, c5", {"start": "a1", "goal": "c5"}).score
        1.0
    """

    def __init__(self, *, shortest: bool = False) -> None:
        self.shortest = shortest

    def check_reference(self, reference: Any) -> str | None:
        """Two squares of a board, one to be reached from the other."""
        if not isinstance(reference, dict) or {"start", "goal"} - set(reference):
            return f"expected start and goal, got {shown(reference)}"
        if type(reference.get("shortest", False)) is not bool:
            return f"shortest must be true or false, got {shown(reference['shortest'])}"
        size, blocked = reference.get("size", 8), reference.get("blocked", [])
        if type(size) is not int or not 3 <= size <= 20:
            return f"size must be from 3 to 20, got {shown(size, 60)}"
        if not isinstance(blocked, list) or len(blocked) > size * size:
            return f"blocked must be a list of squares, got {shown(blocked)}"
        start, goal = reference["start"], reference["goal"]
        for square in [start, goal, *blocked]:
            if type(square) is not str or not _on_board(square, size):
                last = _name(size - 1, size - 1)
                return f"expected squares from a1 to {last}, got {shown(square, 60)}"
        if start == goal or start in blocked or goal in blocked:
            return "start and goal must differ, and neither may be blocked"
        return None if _way(reference) else "no way leads from start to goal"

    def winning_reply(self, reference: Any) -> str | None:
        """A shortest way."""
        return ", ".join(_way(reference))

    def fault(self, text: str, reference: Any) -> str | None:
        """Follow the knight."""
        size, start, goal = reference.get("size", 8), reference["start"], reference["goal"]
        way = [_PIECE.sub("", item, count=1).casefold() for item in items(text)]
        for square in way:
            if not _SQUARE.fullmatch(square):
                raise Unreadable(f"{shown(square, 40)} is no square")
        if not way:
            raise Unreadable("there are no squares")
        way = way if way[0] == start else [start, *way]
        if (twice := repeated(way)) is not None:
            return f"visits {twice} twice"
        blocked = set(reference.get("blocked", []))
        for a, b in pairwise(way):
            if b in blocked or b not in set(_leaps(a, size)):
                return f"no knight may go from {a} to {b}"
        if way[-1] != goal:
            return f"ends on {way[-1]}, not on {goal}"
        least = len(_way(reference))
        if (self.shortest or reference.get("shortest", False)) and len(way) > least:
            return f"takes {len(way) - 1} moves where {least - 1} are enough"
        return None


def _name(column: int, row: int) -> str:
    return f"{chr(ord('a') + column)}{row + 1}"


def _on_board(square: str, size: int) -> bool:
    if not _SQUARE.fullmatch(square):
        return False
    return ord(square[0]) - ord("a") < size and int(square[1:]) <= size


def _leaps(square: str, size: int) -> Iterator[str]:
    column, row = ord(square[0]) - ord("a"), int(square[1:]) - 1
    for right, up in _LEAPS:
        if 0 <= column + right < size and 0 <= row + up < size:
            yield _name(column + right, row + up)


def _way(reference: Any) -> tuple[str, ...]:
    blocked = frozenset(reference.get("blocked", []))
    return knights_way(reference["start"], reference["goal"], reference.get("size", 8), blocked)


@lru_cache(maxsize=256)
def knights_way(start: str, goal: str, size: int, blocked: frozenset[str]) -> tuple[str, ...]:
    """A shortest way by breadth-first search, empty where there is none."""
    came, queue = {start: start}, deque([start])
    while queue and goal not in came:
        square = queue.popleft()
        for after in _leaps(square, size):
            if after not in came and after not in blocked:
                came[after] = square
                queue.append(after)
    if goal not in came:
        return ()
    way = [goal]
    while way[-1] != start:
        way.append(came[way[-1]])
    return tuple(reversed(way))
