"""Knight's paths: do the knight's moves lead from square to square?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, ShortestVerifier, check_list, check_whole, fields
from .reading import Unreadable, items, repeated
from .search import shortest_path

_SQUARE = re.compile(r"[a-z][1-9][0-9]?")
_PIECE = re.compile(r"[Nn](?=[a-z])")
_LEAPS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]


class KnightPath(ShortestVerifier):
    r"""Accept any way of a chess knight from the start to the goal.

    The way names its squares from first to last, ``a1, b3, c5``, ``a1 -> b3 -> c5`` or the like,
    also with the knight's letter, ``Nb3``; the start may be left out. It visits no square twice
    and none that is blocked.

    Reference: ``{"size": 8, "start": "a1", "goal": "c5", "blocked": ["b3"]}``, a board of 3 to 20
    rows and columns, by default 8; with ``"shortest": true`` only a shortest way passes.

    Args:
        shortest: only shortest ways win, whatever the reference says.
    """

    def check(self, reference: Any) -> None:
        """Check that one square can be reached from the other."""
        start, goal = fields(reference, "start", "goal", flags=("shortest",))
        size, blocked = reference.get("size", 8), reference.get("blocked", [])
        check_whole("size", size, 3, 20)
        check_list("blocked", blocked, 0, size * size, "squares")
        for square in [start, goal, *blocked]:
            if type(square) is not str or not _on_board(square, size):
                last = _name(size - 1, size - 1)
                raise BadReference(
                    f"expected squares from a1 to {last}, got {safe_repr(square, 60)}"
                )
        if start == goal or start in blocked or goal in blocked:
            raise BadReference("start and goal must differ, and neither may be blocked")
        if not _way(reference):
            raise BadReference("no way leads from start to goal")

    def oracle_reply(self, reference: Any) -> str | None:
        return ", ".join(_way(reference))

    def fault(self, text: str, reference: Any) -> str | None:
        size, start, goal = reference.get("size", 8), reference["start"], reference["goal"]
        way = [_PIECE.sub("", item, count=1).casefold() for item in items(text)]
        for square in way:
            if not _SQUARE.fullmatch(square):
                raise Unreadable(f"{safe_repr(square, 40)} is no square")
        if not way:
            raise Unreadable("there are no squares")
        way = way if way[0] == start else [start, *way]
        if (twice := repeated(way)) is not None:
            return f"visits {twice} twice"
        blocked = reference.get("blocked", [])
        for a, b in pairwise(way):
            if b in blocked or b not in _leaps(a, size):
                return f"no knight may go from {a} to {b}"
        if way[-1] != goal:
            return f"ends on {way[-1]}, not on {goal}"
        if self.demands("shortest", reference) and len(way) > (least := len(_way(reference))):
            return f"takes {len(way) - 1} moves, {least - 1} suffice"
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
    """Return a shortest way by breadth-first search, empty if there is none."""
    path = shortest_path(
        start, goal.__eq__, lambda at: ((0, to) for to in _leaps(at, size) if to not in blocked)
    )
    return (start, *(square for _, square in path)) if path else ()
