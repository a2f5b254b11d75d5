"""The result of an extraction rule."""

from __future__ import annotations

from typing import NamedTuple

MAX_ANSWER = 2000
"""Characters. A longer answer is not read: no reference is near that long."""


class Answer(NamedTuple):
    """The result of a rule.

    Attributes:
        text: the answer, or ``None`` if the reply gives none that can be judged.
        rule: the rule that decided; empty if none applied.
        reason: why there is no text.
    """

    text: str | None
    rule: str = ""
    reason: str = ""
