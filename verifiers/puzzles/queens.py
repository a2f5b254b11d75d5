"""Queens: does a board hold as many queens as rows, none attacking another?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from ..shown import shown
from ..text.markup import strip_layout
from ..text.read_answer import Unreadable
from .solution import Solution
from .square import read_square

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


class Queens(Solution):
    r"""Accept any placing of n queens that keeps those already placed and in which none attacks.

    The placing is all that stands in the last ``<answer>``, else the last ``\boxed{}``, else the
    last fenced block, else the last paragraph, or the whole reply. It is a board, a line for each
    row, with ``Q`` (or 1) for a queen and ``.`` (or ``_``, ``-``, 0) for an empty square; or n
    numbers, the column of each row's queen from the first row on; or n pairs of row and column in
    any order. Rows and columns are counted from 1.

    Reference: ``{"n": 8, "placed": [[1, 5], [4, 2]]}``: the squares, row and column from 1, that
    have a queen already; there may be none.

    Example:
        >>> board = ". Q . .\n. . . Q\nQ . . .\n. . Q ."
        >>> Queens().verify(board, {"n": 4, "placed": []}).score
        1.0
        >>> Queens().verify("2, 4, 1, 3", {"n": 4, "placed": [[4, 3]]}).score
        1.0
    """

    def check_reference(self, reference: Any) -> str | None:
        """A reference has a size from 4 on, and queens on the board that do not attack."""
        if not isinstance(reference, dict) or {"n", "placed"} - set(reference):
            return f"expected n and placed, got {shown(reference)}"
        n, placed = reference["n"], reference["placed"]
        if type(n) is not int or not 4 <= n <= LARGEST:
            return f"n must be a whole number from 4 to {LARGEST}, got {shown(n)}"
        if not isinstance(placed, list) or len(placed) >= n:
            return f"placed must be a list of fewer than {n} squares, got {shown(placed)}"
        if _squares(placed, n) and _apart(placed):
            return None
        for square in placed:
            if not isinstance(square, list) or len(square) != 2:
                return f"a square must be [row, column], got {shown(square)}"
            if not all(type(x) is int and 1 <= x <= n for x in square):
                return f"rows and columns must be from 1 to {n}, got {shown(square)}"
        attack = _attack([(r, c) for r, c in placed])
        return None if attack is None else f"placed queens must not attack, but {attack}"

    def read(self, text: str, reference: Any) -> list[Place]:
        """The squares with a queen."""
        return _read(text, reference["n"])

    def broken(self, solution: list[Place], reference: Any) -> str | None:
        """Too many or too few queens, one that is gone, or two of which one attacks the other."""
        queens, n = set(solution), reference["n"]
        if len(queens) != n:
            return f"has {len(queens)} queens, not {n}"
        for r, c in reference["placed"]:
            if (r, c) not in queens:
                return f"the queen at row {r}, column {c} is gone"
        return None if _apart(queens) else _attack(solution)


def _squares(placed: list[Any], n: int) -> bool:
    """Whether all are pairs of numbers on the board: nearly always, and soon told."""
    if not {list}.issuperset(map(type, placed)) or not {2}.issuperset(map(len, placed)):
        return False
    numbers = list(chain.from_iterable(placed))
    return {int}.issuperset(map(type, numbers)) and (
        not numbers or (min(numbers) >= 1 and max(numbers) <= n)
    )


@lru_cache
def rows(n: int) -> dict[str, int]:
    """Each row with one queen, as a task asks for it, and the column of its queen."""
    return {" ".join("Q" if c == queen else "." for c in range(n)): queen + 1 for queen in range(n)}


def _read(text: str, n: int) -> list[Place]:
    """The squares with a queen."""
    lines, bare = text.split("\n"), rows(n)
    if len(lines) == n and bare.keys() >= set(lines):  # as tasks ask for it
        return [(r, bare[line]) for r, line in enumerate(lines, start=1)]
    numbers = _numbers(text)
    if len(numbers) == n:
        squares = list(enumerate(numbers, start=1))
    elif len(numbers) == 2 * n:
        first, second = numbers[::2], numbers[1::2]
        if _COLUMN_FIRST.match(text):  # column 5, row 1
            first, second = second, first
        squares = list(zip(first, second, strict=True))
    else:
        board = read_square(text, n, _SQUARES)
        return [(r, c) for r, row in enumerate(board, 1) for c, cell in enumerate(row, 1) if cell]
    outside = next((s for s in squares if not (1 <= s[0] <= n and 1 <= s[1] <= n)), None)
    if outside is not None:
        raise Unreadable(f"rows and columns count from 1 to {n}, got {outside}")
    return squares


def _numbers(text: str) -> list[int]:
    """The numbers of a text that holds little else; none where they are part of a board."""
    bare = strip_layout(text)
    found = _NUMBER.findall(bare)
    if not _BESIDE.fullmatch(_NUMBER.sub(" ", bare)) or any(len(d) > 2 for d in found):
        return []
    return [int(digits) for digits in found]


def _apart(queens: Collection[Sequence[int]]) -> bool:
    """Whether all queens differ in their rows, columns and diagonals."""
    size = len(queens)
    return (
        len({r for r, _ in queens}) == size
        and len({c for _, c in queens}) == size
        and len({r + c for r, c in queens}) == size
        and len({r - c for r, c in queens}) == size
    )


def _attack(queens: Iterable[Place]) -> str | None:
    """Two queens of which one attacks the other, in words."""
    lines: dict[tuple[str, int], Place] = {}
    for r, c in queens:
        for line in (("row", r), ("column", c), ("rising", r + c), ("falling", r - c)):
            other = lines.setdefault(line, (r, c))
            if other != (r, c):
                return f"the queens at {other} and {(r, c)} attack each other"
    return None
