"""The result of an extraction rule."""

from __future__ import annotations

from typing import NamedTuple

MAX_ANSWER = 2000
"""Characters. A longer answer is not read: no reference is near that long."""


class Answer(NamedTuple):
    r"""The result of a rule.

    Attributes:
        text: the answer, or ``None`` if the reply gives none that can be judged.
        rule: the rule that decided; empty if none applied.
        reason: why there is no text.
        unit: the known unit beside a number, as ``\text{ km}``; only :class:`Math` reads it.
        label: the option's letter before a number, as ``C. ``; only :class:`Math` reads it.
    """

    text: str | None
    rule: str = ""
    reason: str = ""
    unit: str = ""
    label: str = ""
