"""Content: does a part of a reply say anything at all?"""

from __future__ import annotations

import re

# Fillers of Hangul count as letters and are blank. ∞ and ∅ are whole answers.
_SOMETHING = re.compile(r"[^\W_\u115f\u1160\u3164\uffa0]|[∞∅]")
_NO_TEXT = re.compile(r"[\ud800-\udfff]")


def says_something(text: str) -> bool:
    r"""Whether a text holds a letter or a digit, and can be written to a file.

    Punctuation, blanks, zero-width and combining characters by themselves say nothing. Half a
    surrogate pair is no character, and what holds one is no text.

    Example:
        >>> [says_something(text) for text in ("42", "π", "...", " \u200b", "\u0301", "4\ud800")]
        [True, True, False, False, False, False]
    """
    return _SOMETHING.search(text) is not None and _NO_TEXT.search(text) is None
