"""Values in messages that name what is wrong, and the checks of options that several share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def safe_repr(value: Any, most: int = 80) -> str:
    """Return the first characters of a value's ``repr``, without raising.

    Example:
        >>> safe_repr([1, 2]), safe_repr(10**5000)
        ('[1, 2]', 'an int that is too long to show')
    """
    try:
        return f"{value!r:.{most}}"
    except (ValueError, RecursionError):  # Python writes no number of more than 4,300 digits
        kind = type(value).__name__
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} that is too long to show"


def check_one_of(name: str, value: object, allowed: Collection[str]) -> None:
    """Refuse an option's value that is none of those allowed.

    Raises:
        ValueError: it is none.
    """
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def check_whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Refuse an option's value that is no whole number from ``least`` to ``most``.

    Raises:
        ValueError: it is none.
    """
    if type(value) is not int or value < least or (most is not None and value > most):
        limit = "" if most is None else f" to {most}"
        raise ValueError(f"{name} must be a whole number from {least}{limit}, got {value!r}")
