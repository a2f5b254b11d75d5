"""How long is a text? In words, characters or sentences, none of which blanks make longer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from .words import visible, words

Unit = Literal["words", "characters", "sentences"]
UNITS = ("words", "characters", "sentences")

_STOP = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*]*+(?=\s|\Z)"
    r"|(?<![。！？।॥])[。！？।॥]++[”’」』）)]*+|\n[ \t\r]*+\n"
    r"|\n(?=\s{0,8}(?:[-*•#>]|\d{1,3}[.)])\s)"
)
_WEAK = (".", "...", "…")
_NOT_THE_END = re.compile(
    r"(?:\b(?:[A-Z]|e\.g|i\.e|cf|vs|etc|approx|Mrs?|Ms|Dr|Prof|St|Fig|Eq|No)|^\s*\d{1,3})\.\Z"
)
_SAYS = re.compile(r"[^\W_]")
_GOES_ON = re.compile(r"\s+[a-z]")


def check_unit(unit: str) -> None:
    """Refuse a name that is no unit.

    Raises:
        ValueError: it is none.
    """
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")


def length(text: str, unit: Unit) -> int:
    """The length of a text.

    Words are those of :func:`~assay.verifiers.form.words.words`: letters count by themselves
    where a script has no spaces. Of white space one character counts between others, and none
    at the ends; invisible characters do not count.

    Example:
        >>> [length("Yes. I saw  it, e.g. in Paris.", unit) for unit in UNITS]
        [8, 29, 2]
    """
    if unit == "words":
        return sum(1 for _ in words(text))
    if unit == "characters":
        return len(" ".join(visible(text).split()))
    return sum(1 for _ in sentences(text))


def sentences(text: str) -> Iterator[str]:
    """The sentences, headings and items of a text that hold a word.

    A stop ends one unless a lower-case letter goes on, or it belongs to an initial, a usual
    abbreviation or the number of an item.
    """
    start = 0
    for stop in _STOP.finditer(text):
        end = stop.end()
        if stop.group() in _WEAK and (
            _GOES_ON.match(text, end, end + 40)
            or _NOT_THE_END.search(text[max(start, end - 12) : end])
        ):
            continue
        if _SAYS.search(text, start, end):
            yield text[start:end].strip()
        start = end
    if _SAYS.search(text, start):
        yield text[start:].strip()
