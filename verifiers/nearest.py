"""Suggest the nearest known name for one that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return ``Did you mean X?`` for the nearest known name, else ``otherwise``."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, 1)
    return f"Did you mean {by_lower[near[0]]}?" if near else otherwise
