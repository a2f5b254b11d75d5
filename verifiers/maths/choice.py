"""Multiple choice and words: ``B``, ``(B)``, ``B) 12``, ``(B) Paris``, ``even``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CHOICE = re.compile(r"\(?([A-Z])\)?")
_LABELLED = re.compile(
    r"(?:\(([A-Z])\) ?(?=[\w\\$-])|([A-Z])[).:] ?|\\text\{ ?\(?([A-Z])[).:]+ ?\})"
    r"((?:(?!\bfalse\b|(?<![A-Za-z])[A-Z](?![A-Za-z])).){0,80})"
)
_WHOLE = re.compile(r"\\text\{ ?([^{}]*?)[ .]*\}")
_NAMED = re.compile(r"(?i:option|choice|answer):? ?\(?([A-Z])\)?")


@dataclass(frozen=True, slots=True)
class Choice:
    """A letter, and the text of the option if it is given."""

    letter: str
    option: str = ""


def is_letter(text: str) -> bool:
    """Return whether a text is one capital, as an option's letter is; ``C = B`` names none."""
    return len(text) == 1 and "A" <= text <= "Z"


def read_choice(text: str) -> Choice | None:
    """Read ``B``, ``(B)``, ``Option B``, ``B) 12`` or ``(B) Paris``; ``None`` for the rest."""
    inside = _WHOLE.fullmatch(text)
    text = inside.group(1) if inside else text
    alone = _CHOICE.fullmatch(text) or _NAMED.fullmatch(text)
    if alone:
        return Choice(alone.group(1))
    labelled = _LABELLED.fullmatch(text)
    if labelled is None:
        return None
    first, second, third, option = labelled.groups()
    return Choice(first or second or third, option.strip())
