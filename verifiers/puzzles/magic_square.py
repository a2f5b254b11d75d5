"""Magic squares: are all sums the same, and what was given kept?"""

from __future__ import annotations

import re
from functools import lru_cache
from math import isqrt
from typing import Any

from ..validation import safe_repr
from .grid import bare_rows
from .puzzle import BadReference, PuzzleVerifier, check_list, check_whole, fields
from .reading import Unreadable, whole_numbers

Square = tuple[int, ...]

_SEPARATOR = re.compile(r"(?:[\s,;|\[\](){}&]|(?<=\d)-|-(?!\d))+")
_SEARCH = 20_000
"""Steps of the search for a solution."""


class MagicSquare(PuzzleVerifier):
    r"""Accept any magic square that keeps the numbers given.

    A square of ``n`` rows holds each integer from 1 to ``n**2`` once, and every row, column
    and both diagonals have one sum. The answer is all its numbers row by row, as lines, a table or
    a list of lists.

    Reference: ``{"square": [[8, 0, 6], [0, 5, 0], [0, 0, 2]]}`` with 0 for what is missing; 3 to 6
    rows. A square that is known to have no solution is refused; for a large one that may stay
    unknown.
    """

    def check(self, reference: Any) -> None:
        """Check that something is missing, and that the square is not known to have no solution."""
        (rows,) = fields(reference, "square")
        check_list("square", rows, 3, 6, "rows")
        for row in rows:
            check_list("each row", row, len(rows), len(rows), "numbers")
        numbers = _flat(reference)
        for number in numbers:
            check_whole("numbers", number, 0, len(numbers))
        given = [number for number in numbers if number]
        if len(set(given)) < len(given):
            raise BadReference(f"each number may be given once, got {safe_repr(rows, 120)}")
        if len(given) == len(numbers):
            raise BadReference("a number must be missing, or nothing is to be done")
        if completed(numbers) == ():
            raise BadReference("no magic square keeps these numbers")

    def oracle_reply(self, reference: Any) -> str | None:
        found, size = completed(_flat(reference)), len(reference["square"])
        if not found:
            return None
        lines = (found[at : at + size] for at in range(0, len(found), size))
        return "\n".join(" ".join(map(str, line)) for line in lines)

    def fault(self, text: str, reference: Any) -> str | None:
        given = _flat(reference)
        numbers = whole_numbers("\n".join(bare_rows(text.splitlines())), _SEPARATOR, digits=3)
        if len(numbers) != len(given):
            raise Unreadable(f"expected {len(given)} numbers, got {len(numbers)}")
        if sorted(numbers) != list(range(1, len(given) + 1)):
            return f"the numbers must be 1 to {len(given)}, each once"
        for number, kept in zip(numbers, given, strict=True):
            if kept not in (0, number):
                return f"has {number} in place of the given {kept}"
        sums = {sum(numbers[at] for at in line) for line in _lines(len(reference["square"]))}
        return f"the sums differ: {', '.join(map(str, sorted(sums)))}" if len(sums) > 1 else None


def _flat(reference: Any) -> Square:
    return tuple(number for row in reference["square"] for number in row)


def _lines(size: int) -> list[range]:
    rows = [range(size * row, size * (row + 1)) for row in range(size)]
    columns = [range(column, size * size, size) for column in range(size)]
    diagonals = [range(0, size * size, size + 1), range(size - 1, size * size - 1, size - 1)]
    return rows + columns + diagonals


@lru_cache(maxsize=256)
def completed(given: Square) -> Square | None:
    """Return a magic square, ``()`` if there is none, ``None`` if the search was too long.

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
