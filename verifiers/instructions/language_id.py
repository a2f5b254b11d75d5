"""Whether a text is in a language, as far as its script and a fixed classifier tell."""

from __future__ import annotations

from ..form.script import scripts
from ..form.tongue import NONE, WRITTEN_IN, alike, known
from ..form.tongue import language_of as likeliest

MOST = 4000
"""Characters that are looked at of a piece of text."""

LANGUAGES = frozenset(WRITTEN_IN)
"""The ISO 639 codes that can be told."""

_LEAST_LETTERS = 6  # two letters of Hangul or Thai are told by their script all the same
_LEAST_SHARE = 0.85
_LEAST_SURE = 0.6


def language_of(text: str) -> str | None:
    """The ISO 639 code of a text's language, or ``None`` where it cannot be told.

    Case makes no difference, the same text has the same language always, and only the first 4,000
    characters are looked at. A text too short, in mixed scripts or between two languages has none.
    """
    piece = text[:MOST]
    counted = scripts(piece)
    if not counted:
        return None
    code, sure = likeliest(piece)
    own = sum(counted[name] for name in WRITTEN_IN.get(code, ()))
    enough = counted.total() >= (_LEAST_LETTERS if sure < 1.0 else 2)
    told = enough and sure >= _LEAST_SURE and own >= _LEAST_SHARE * counted.total()
    return code if told and code != NONE else None


def is_in(text: str, language: str) -> bool | None:
    """Whether a text is in a language, or one that cannot be told from it; ``None`` unknown."""
    found = language_of(text)
    return None if found is None else alike(found, known(language) or language)
