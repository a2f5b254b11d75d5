"""``name=value`` on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .sandbox.redaction import remember


def settings(pairs: Sequence[str], flag: str = "--set") -> dict[str, Any]:
    """Read ``["split=train", "seed=1"]`` as keyword arguments; values are JSON, else text.

    Raises:
        ValueError: a pair has no equals sign.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"{flag} takes name=value, got {pair!r}")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    remember(found)
    return found
