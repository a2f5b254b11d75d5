"""Magic squares: fill in what is missing."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import magic_square as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((3, 4), (3, 6), (4, 5), (4, 8), (5, 9))
"""Rows, and how many numbers are missing."""
_THREE = ((2, 7, 6), (9, 5, 1), (4, 3, 8))


class MagicSquare(PuzzleEnv):
    """Fill in a square whose rows, columns and diagonals all have one sum.

    Observation: the square. Action: the reply.
    Reward: 1.0 for any magic square that keeps the numbers given. End: after one step.
    Levels have 3, 3, 4, 4 and 5 rows, with 4, 6, 5, 8 and 9 numbers missing.
    """

    verifier = rules.MagicSquare

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Turn and mirror a square, and leave numbers out."""
        size, holes = _LEVELS[level - 1]
        square = _square(rng, size)
        missing = np.zeros(size * size, dtype=bool)
        missing[rng.permutation(size * size)[:holes]] = True
        given = np.where(missing.reshape(size, size), 0, square)
        drawn = "\n".join(" ".join(str(n or "_") for n in row) for row in given.tolist())
        return Puzzle(
            f"Complete this magic square of the numbers 1 to {size * size}, each once: all rows, "
            f"all columns and both diagonals have the same sum.\n\n{drawn}\n\n"
            "Give the whole square, a row on each line, numbers parted by blanks.",
            {"square": given.tolist()},
            "\n".join(" ".join(map(str, row)) for row in square.tolist()),
        )


def _square(rng: np.random.Generator, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Draw a magic square: of 3 rows the only one, of 4 by pairs, of 5 by knight's moves."""
    if size == 3:
        square = np.array(_THREE)
    elif size == 4:
        square = np.arange(1, 17).reshape(4, 4)
        kept = np.equal.outer(np.arange(4) % 3 == 0, np.arange(4) % 3 == 0)
        square = np.where(kept, 17 - square, square)
    else:
        rows, columns = np.indices((size, size))
        high, low = (rng.permutation(size) for _ in range(2))
        # Modulo 5 both patterns take every value once in each row, column and diagonal.
        square = size * high[(2 * rows + columns) % size] + low[(rows + 2 * columns) % size] + 1
    if size == 4:  # swapping rows and columns alike by pairs keeps the diagonals
        first, second = rng.permutation(2)
        swap = np.array([first, second, 3 - second, 3 - first])
        square = square[np.ix_(swap, swap)]
    square = np.rot90(square, int(rng.integers(4)))
    return square.T if rng.integers(2) else square
