"""Numbers without rounding."""

from __future__ import annotations

from fractions import Fraction

Number = int | Fraction
"""Both compare and hash by value: ``2`` and ``Fraction(2)`` are one key of a dict."""


def to_exact(written: float | str) -> Number:
    """Return a number as it is written: ``0.1`` is a tenth, not the float next to it.

    Raises:
        ValueError: a text is no number.

    Example:
        >>> to_exact(3), to_exact("-4"), to_exact(0.1)
        (3, Fraction(-4, 1), Fraction(1, 10))
    """
    return written if type(written) is int else Fraction(str(written))
