"""Which prompts are one and the same problem."""

from __future__ import annotations

import re
import unicodedata

_OPEN, _CLOSE = "[\"'`$(\\[{“‘«¿¡]", "[\"'`$)\\]}”’»]"
_AROUND = re.compile(rf"(?<!\S){_OPEN}+(?=\w)|(?<=\w){_CLOSE}*+[.,;:!?]?{_CLOSE}*+(?!\S)")
_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]+")


def plain_prompt(prompt: str) -> str:
    r"""Return a prompt without what does not make it another one.

    That is case, white space, invisible characters and punctuation around words. All other signs
    stay: they may be a drawing, such as a maze.

    Example:
        >>> plain_prompt("  What is `x`?") == plain_prompt("what is\nx")
        True
    """
    text = _UNSEEN.sub("", unicodedata.normalize("NFC", prompt)).casefold()
    return " ".join(_AROUND.sub(" ", text).split())
