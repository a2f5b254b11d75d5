"""Queens: does a board hold as many queens as rows, none attacking another?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..text.markup import strip_layout
from ..validation import safe_repr
from .grid import read_grid
from .puzzle import BadReference, GridVerifier, check_list, check_whole, fields
from .reading import Unreadable

LARGEST = 30
"""Rows of the largest board."""

_SQUARES = dict.fromkeys(".·_-0□⬜", 0) | dict.fromkeys("Qq♛♕1", 1)
_NUMBER = re.compile(r"[0-9]+")
_BESIDE = re.compile(
    r"(?:\b(?:rows?|columns?|cols?|queens?|and|at|in|on|r|c)\b|[\s,;:|.()\[\]{}\"'_-])*",
    re.IGNORECASE,
)
_COLUMN_FIRST = re.compile(r"[^A-Za-z]{0,40}c(?![A-Za-z])|[^A-Za-z]{0,40}col", re.IGNORECASE)

Place = tuple[int, int]


class Queens(GridVerifier):
    r"""Accept any placing of n queens that keeps those already placed and in which none attacks.

    The placing is a board, a line for each row, with ``Q`` (or 1) for a queen and ``.`` (or ``_``,
    ``-``, 0) for an empty square; or n numbers, the column of each row's queen from the first row
    on; or n pairs of row and column in any order. Rows and columns are counted from 1. Nothing
    else may stand in the last ``<answer>``, else the last ``\boxed{}``, else the last fenced block,
    else the last paragraph or the whole reply.

    Reference: ``{"n": 8, "placed": [[1, 5], [4, 2]]}``: the squares, row and column from 1, that
    have a queen already; there may be none.
    """

    def check(self, reference: Any) -> None:
        """Check that the queens are on a board of at least 4 rows and do not attack."""
        n, placed = fields(reference, "n", "placed")
        check_whole("n", n, 4, LARGEST)
        check_list("placed", placed, 0, n - 1, "squares")
        for square in placed:
            if not isinstance(square, list) or len(square) != 2:
                raise BadReference(f"a square must be [row, column], got {safe_repr(square)}")
            for number in square:
                check_whole("rows and columns", number, 1, n)
        if attack := _attack([(r, c) for r, c in placed]):
            raise BadReference(f"placed queens must not attack, but {attack}")

    def fault(self, text: str, reference: Any) -> str | None:
        n = reference["n"]
        queens = _read(text, n)
        if len(set(queens)) != n:
            return f"has {len(set(queens))} queens, not {n}"
        for r, c in reference["placed"]:
            if (r, c) not in queens:
                return f"the queen at row {r}, column {c} is missing"
        return _attack(queens)


def _read(text: str, n: int) -> list[Place]:
    numbers = _numbers(text)
    if len(numbers) == n:
        squares = list(enumerate(numbers, start=1))
    elif len(numbers) == 2 * n:
        first, second = numbers[::2], numbers[1::2]
        if _COLUMN_FIRST.match(text):  # column 5, row 1
            first, second = second, first
        squares = list(zip(first, second, strict=True))
    else:
        board = read_grid(text, n, _SQUARES)
        return [(r, c) for r, row in enumerate(board, 1) for c, cell in enumerate(row, 1) if cell]
    outside = next((s for s in squares if not (1 <= s[0] <= n and 1 <= s[1] <= n)), None)
    if outside is not None:
        raise Unreadable(f"rows and columns count from 1 to {n}, got {outside}")
    return squares


def _numbers(text: str) -> list[int]:
    """Return the numbers of a text that holds little else; none if they are part of a board."""
    bare = strip_layout(text)
    found = _NUMBER.findall(bare)
    if not _BESIDE.fullmatch(_NUMBER.sub(" ", bare)) or any(len(d) > 2 for d in found):
        return []
    return [int(digits) for digits in found]


def _attack(queens: Iterable[Place]) -> str | None:
    """Return two queens of which one attacks the other, in words."""
    lines: dict[tuple[str, int], Place] = {}
    for r, c in queens:
        for line in (("row", r), ("column", c), ("rising", r + c), ("falling", r - c)):
            other = lines.setdefault(line, (r, c))
            if other != (r, c):
                return f"the queens at {other} and {(r, c)} attack each other"
    return None
