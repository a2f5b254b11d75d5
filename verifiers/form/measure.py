"""How long is a text? In words, characters or sentences, none of which blanks make longer."""

from __future__ import annotations

from typing import Literal

from ..text.sentences import sentences
from ..text.words import strip_invisible, words

Unit = Literal["words", "characters", "sentences"]
UNITS = ("words", "characters", "sentences")


def length(text: str, unit: Unit) -> int:
    """Return the length of a text.

    Words are those of :func:`~assay.verifiers.text.words.words`, sentences those of
    :func:`~assay.verifiers.text.sentences.sentences`, headings included. Of white space one
    character counts between others, and none at the ends; invisible characters do not count.

    Example:
        >>> [length("Yes. I saw  it, e.g. in Paris.", unit) for unit in UNITS]
        [7, 29, 2]
    """
    if unit == "words":
        return len(words(text))
    if unit == "characters":
        return len(" ".join(strip_invisible(text).split()))
    return len(sentences(text, headings=True))
