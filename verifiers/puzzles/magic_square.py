"""Magic squares: are all sums the same, and what was given kept?"""

from __future__ import annotations

import re
from functools import lru_cache
from math import isqrt
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from .any_answer import AnyAnswer, items

Square = tuple[int, ...]

_SEPARATOR = re.compile(r"[\s,;|\[\](){}&-]+")
_NUMBER = re.compile(r"\d{1,3}", re.ASCII)
_SEARCH = 20_000
"""Steps of the search for a solution."""


class MagicSquare(AnyAnswer):
    r"""Accept any magic square that keeps the numbers given.

    A square of ``n`` rows holds each whole number from 1 to ``n**2`` once, and every row, column
    and both diagonals have one sum. The answer is all its numbers row by row, as lines, a table or
    a list of lists.

    Reference: ``{"square": [[8, 0, 6], [0, 5, 0], [0, 0, 2]]}`` with 0 for what is missing; 3 to 6
    rows. A square that is known to have no solution is refused; for a large one that may stay
    unknown.

    Example:
        >>> square = {"square": [[8, 0, 6], [0, 5, 0], [0, 0, 2]]}
        >>> MagicSquare().verify("8 1 6\n3 5 7\n4 9 2", square).score
        1.0
    """

    def check_reference(self, reference: Any) -> str | None:
        """A square with something missing that is not known to have no solution."""
        if not isinstance(reference, dict) or "square" not in reference:
            return f"expected a square, got {shown(reference)}"
        rows = reference["square"]
        if not isinstance(rows, list) or not 3 <= len(rows) <= 6:
            return f"square must be a list of 3 to 6 rows, got {shown(rows)}"
        if any(not isinstance(row, list) or len(row) != len(rows) for row in rows):
            return f"each row must be a list of {len(rows)} numbers, got {shown(rows)}"
        numbers = [number for row in rows for number in row]
        for number in numbers:
            if type(number) is not int or not 0 <= number <= len(numbers):
                return f"numbers must be from 0 to {len(numbers)}, got {shown(number, 60)}"
        given = [number for number in numbers if number]
        if len(set(given)) < len(given):
            return f"each number may be given once, got {shown(rows, 120)}"
        if len(given) == len(numbers):
            return "a number must be missing, or nothing is to be done"
        return "no magic square keeps these numbers" if completed(tuple(numbers)) == () else None

    def winning_reply(self, reference: Any) -> str | None:
        """A square, where a search finds one soon."""
        rows = reference["square"]
        found, size = completed(tuple(number for row in rows for number in row)), len(rows)
        if not found:
            return None
        lines = (found[at : at + size] for at in range(0, len(found), size))
        return "\n".join(" ".join(map(str, line)) for line in lines)

    def fault(self, text: str, reference: Any) -> str | None:
        """Add up all lines."""
        given = [number for row in reference["square"] for number in row]
        numbers = []
        for item in items(text, _SEPARATOR):
            if not _NUMBER.fullmatch(item):
                raise Unreadable(f"{shown(item, 40)} is no number")
            numbers.append(int(item))
        if len(numbers) != len(given):
            raise Unreadable(f"expected {len(given)} numbers, got {len(numbers)}")
        if sorted(numbers) != list(range(1, len(given) + 1)):
            return f"the numbers must be 1 to {len(given)}, each once"
        for number, kept in zip(numbers, given, strict=True):
            if kept not in (0, number):
                return f"has {number} where {kept} is given"
        sums = {sum(numbers[at] for at in line) for line in _lines(len(reference["square"]))}
        return f"the sums differ: {', '.join(map(str, sorted(sums)))}" if len(sums) > 1 else None


def _lines(size: int) -> list[range]:
    rows = [range(size * row, size * (row + 1)) for row in range(size)]
    columns = [range(column, size * size, size) for column in range(size)]
    diagonals = [range(0, size * size, size + 1), range(size - 1, size * size - 1, size - 1)]
    return rows + columns + diagonals


@lru_cache(maxsize=256)
def completed(given: Square) -> Square | None:
    """A magic square, ``()`` where there is none, ``None`` where the search was too long.

    Numbers are tried row by row; a line that is full must have the sum ``n (n**2 + 1) / 2``.
    """
    size = isqrt(len(given))
    total = size * (len(given) + 1) // 2
    lines_of = [[line for line in _lines(size) if at in line] for at in range(len(given))]
    square, free = list(given), set(range(1, len(given) + 1)) - set(given)
    open_cells = [at for at, number in enumerate(given) if not number]
    steps = 0

    def fits(line: range) -> bool:
        numbers = [square[at] for at in line]
        return sum(numbers) == total if all(numbers) else sum(numbers) < total

    def fill(place: int) -> bool | None:
        nonlocal steps
        if place == len(open_cells):
            return True
        at = open_cells[place]
        for number in sorted(free):
            steps += 1
            if steps > _SEARCH:
                return None
            square[at] = number
            if all(fits(line) for line in lines_of[at]):
                free.remove(number)
                found = fill(place + 1)
                if found is not False:
                    return found
                free.add(number)
        square[at] = 0
        return False

    if not all(fits(line) for line in _lines(size)):
        return ()
    found = fill(0)
    return tuple(square) if found else None if found is None else ()
