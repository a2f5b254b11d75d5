"""Quotations in a text, and whether a source holds them word for word."""

from __future__ import annotations

import re

_QUOTE = re.compile(
    r"“([^“”]{1,2000})”|«([^«»]{1,2000})»|„([^„“”]{1,2000})[“”]|「([^「」]{1,2000})」"
    r"|(?<![\w\"])\"(?=\S)([^\"]{1,2000})(?<=\S)\"(?!\w)"  # not the inches of a 5" pipe
)
_STOPS = str.maketrans(".!?。！？", "\ue000\ue001\ue002\ue003\ue004\ue005")
_BACK = {to: at for at, to in _STOPS.items()}
_SIGNS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\xa0": " "})
_LEFT_OUT = re.compile(r"\s*(?:\[(?:\.\.\.|…)\]|\(\.\.\.\)|\.\.\.|…)\s*")


def shielded(text: str) -> str:
    """Replace the stops inside quotations, so that no sentence ends there."""
    return _QUOTE.sub(lambda found: found.group().translate(_STOPS), text)


def quotations(text: str) -> list[str]:
    """Return the quotations of a shielded text, unshielded."""
    found = (next(filter(None, groups)) for groups in _QUOTE.findall(text))
    return [quote.translate(_BACK) for quote in found]


def plain(text: str) -> str:
    """Normalize a text for comparison: single blanks, plain typographic signs, lower case."""
    return " ".join(text.translate(_SIGNS).casefold().split())


def holds(source: str, quote: str) -> bool:
    """Return whether a normalized source contains a quotation, in which ``...`` may omit text.

    Example:
        >>> holds(plain("The cat sat on the mat."), "the cat ... on the  mat,")
        True
    """
    at = 0
    for piece in _LEFT_OUT.split(quote):
        wanted = plain(piece).strip(" .,;:!?")
        at = source.find(wanted, at)
        if at < 0:
            return False
        at += len(wanted)
    return True
