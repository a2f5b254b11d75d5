"""Prompts with slots for the columns of a row.

``str.format`` is no good for this: it reads attributes of the data, and stumbles over the braces
of LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SLOT = re.compile(r"(\{+)([^\W\d][\w -]*)(\}+)")


def fill(template: str, row: Mapping[str, Any]) -> str:
    r"""Put a row's values into the slots: ``{column}``. What is put in is not read again.

    Braces around anything but a name (``\boxed{}``, ``x^{2}``) stay. As in Python's own format
    strings ``{{name}}`` gives ``{name}``, and ``{{{name}}}`` the value in braces.

    Raises:
        ValueError: there is no such column, or its value is neither text nor a number.

    Example:
        >>> fill(r"{n} apples? Use \boxed{}. \boxed{{{n}}}", {"n": 3})
        '3 apples? Use \\boxed{}. \\boxed{3}'
    """

    def put(found: re.Match[str]) -> str:
        left, name, right = found.groups()
        depth = min(len(left), len(right))
        middle = _value(row, name) if depth % 2 else name
        kept = depth // 2
        return left[depth - kept :] + middle + right[depth - kept :]

    return _SLOT.sub(put, template)


def _value(row: Mapping[str, Any], name: str) -> str:
    if name not in row:
        raise ValueError(
            f"no column {name!r} for the slot {{{name}}}; the row has "
            f"{', '.join(map(str, row)) or 'none'}. Write {{{{{name}}}}} for the braces themselves"
        )
    value = row[name]
    if not isinstance(value, str | int | float):
        raise ValueError(
            f"column {name!r} must be text or a number to stand in a prompt, got {value!r:.80}. "
            "Make the prompt in a function of the row instead: @environment(id, rows=...)"
        )
    return str(value)
