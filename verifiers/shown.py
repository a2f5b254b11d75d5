"""Any value in a few characters, for messages that name what is wrong."""

from __future__ import annotations

from typing import Any


def shown(value: Any, most: int = 80) -> str:
    """Return the first characters of a value's ``repr``, without raising.

    Example:
        >>> shown([1, 2]), shown(10**5000)
        ('[1, 2]', 'an int that is too long to show')
    """
    try:
        return f"{value!r:.{most}}"
    except (ValueError, RecursionError):  # Python writes no number of more than 4,300 digits
        kind = type(value).__name__
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} that is too long to show"
