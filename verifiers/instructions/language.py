"""Constraints on language and case."""

from __future__ import annotations

from typing import Annotated

from ..form.prose import prose
from ..text.language import (
    LEAST_SHARE,
    MOST,
    WRITTEN_IN,
    are_merged,
    detect_language,
    is_in,
    language_code,
    own_share,
    scripts,
)
from ..text.words import collapse_spaces, words
from .blocks import lines
from .registry import Count, Relation, Rule, compare, constraint

Language = Annotated[
    str,
    Rule("an ISO 639-1 code that can be identified, such as 'en'", lambda v: str(v) in WRITTEN_IN),
]
_PIECES = 40
_LONG = 80
_FOREIGN = 0.2
_SHORT = 60
_SURE = 0.4
_LIKELY = 0.25
_MOST_CODE = 4  # times as many letters as prose: whoever fences an essay writes in its language


@constraint("language:response_language")
def response_language(reply: str, *, language: Language) -> bool:
    """The reply is in the language, as a whole and in at least four fifths of its longer lines."""
    said = _spoken(reply)
    return _likely(said, language) or _wholly(said, language)


@constraint("change_case:english_capital")
def english_capital(reply: str) -> bool:
    """The reply is in English, as far as a few words can show, and has no lowercase letter."""
    return reply.isupper() and _in_english(reply)


@constraint("change_case:english_lowercase")
def english_lowercase(reply: str) -> bool:
    """The reply is in English, as far as a few words can show, and has no capital letter."""
    return reply.islower() and _in_english(reply)


@constraint("change_case:capital_word_frequency")
def capital_word_frequency(
    reply: str, *, capital_frequency: Count, capital_relation: Relation
) -> bool:
    """Words entirely in capitals (including I and A) occur less than, or at least, N times."""
    return compare(sum(w.isupper() for w in words(reply)), capital_relation, capital_frequency)


def _in_english(reply: str) -> bool:
    """Return whether a reply is in English; short ASCII text need only not look foreign."""
    if len(reply) > _SHORT or not reply.isascii():
        return _wholly(reply, "en")
    found, sure = detect_language(reply)
    return found == "en" or (found != "" and sure < _SURE)


def _spoken(reply: str) -> str:
    """Return a reply without code, formulas and addresses, if a quarter of its letters remains."""
    said = "\n".join(map(collapse_spaces, lines(prose(reply))))
    return said if _MOST_CODE * scripts(said).total() >= scripts(reply).total() else reply


def _likely(reply: str, language: str) -> bool:
    """Return whether a short reply is more likely in one language than in any other."""
    found, sure = detect_language(reply) if len(reply) <= _SHORT else ("", 0.0)
    return (
        sure >= _LIKELY
        and are_merged(found, language_code(language) or language)
        and own_share(reply, found) >= LEAST_SHARE
    )


def _wholly(reply: str, language: str) -> bool:
    """Return whether a reply is in a language: its start, and samples of its lines."""
    if not is_in(reply, language):
        return False
    long = [line for line in lines(reply) if len(line) >= _LONG]
    step = max(1, len(long) // _PIECES)
    sample = long[::step] if len(long) > 1 else [reply[k : k + MOST] for k in _starts(reply)]
    foreign = sum(is_in(piece, language) is False for piece in sample)
    return foreign <= _FOREIGN * len(sample)


def _starts(reply: str) -> range:
    return range(0, len(reply), max(MOST, len(reply) // _PIECES))
