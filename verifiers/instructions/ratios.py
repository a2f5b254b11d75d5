"""Constraints on proportions: of words, of sentences, of what is shared with a text."""

# ruff: noqa: SIM905 # lists of words read best as text

from __future__ import annotations

from ..text.sentences import sentences
from ..text.words import folded_words
from .registry import Percentage, Text, constraint

STOP_WORDS = frozenset(
    "a an the and but or nor for so yet if then else than because while although though unless "
    "until since whether as of at by with about against between into through during before after "
    "above below to from up down in out on off over under again further once here there when "
    "where why how all any both each few more most other some such no not only own same too very "
    "just now also i me my mine myself we us our ours ourselves you your yours yourself yourselves "
    "he him his himself she her hers herself it its itself they them their theirs themselves what "
    "which who whom whose this that these those am is are was were be been being have has had "
    "having do does did doing done will would shall should can could may might must ought".split()
)
"""English words that carry grammar rather than meaning."""

_NEAR = 2.0  # per cent, as the instruction says
_LEAST_RUNS = 10


@constraint("ratio:stop_words")
def stop_words(reply: str, *, percentage: Percentage) -> bool:
    """At most N per cent of the words are stop words of English."""
    found = folded_words(reply)
    stops = sum(word.partition("'")[0] in STOP_WORDS for word in found)
    return found != [] and 100 * stops <= percentage * len(found)


def _kinds(reply: str) -> tuple[int, int, int]:
    """Count sentences that end in a full stop, a question mark, an exclamation mark."""
    ends = [sentence.rstrip("'\"”’»)]*_ ") for sentence in sentences(reply)]
    marks = [next((c for c in reversed(end[-12:]) if c in ".?!…。？！"), "") for end in ends]
    return (
        sum(mark in (".", "…", "。") for mark in marks),
        sum(mark in ("?", "？") for mark in marks),
        sum(mark in ("!", "！") for mark in marks),
    )


@constraint("ratio:sentence_type")
def sentence_type(reply: str) -> bool:
    """Twice as many sentences end in a full stop as in a question mark, at least two."""
    declarative, interrogative, _ = _kinds(reply)
    return declarative == 2 * interrogative > 0


@constraint("ratio:sentence_balance")
def sentence_balance(reply: str) -> bool:
    """Equally many sentences end in a full stop, a question mark and an exclamation mark."""
    declarative, interrogative, exclamatory = _kinds(reply)
    return declarative == interrogative == exclamatory > 0


@constraint("ratio:sentence_words")
def sentence_words(reply: str) -> bool:
    """Three sentences with the same number of characters, in which no word occurs twice."""
    found = sentences(reply)
    said = folded_words(" ".join(found))
    return len(found) == 3 and len({len(s) for s in found}) == 1 and len(said) == len(set(said))


@constraint("ratio:overlap", whole=True)
def overlap(reply: str, *, reference_text: Text, percentage: Percentage) -> bool:
    """N per cent, +-2, of the different runs of three words, or of three characters, are in it.

    There are ten, or as many as in the text if it has fewer.
    """
    return any(
        _overlap(_trigrams(said), _trigrams(given), percentage)
        for said, given in (
            (folded_words(reply), folded_words(reference_text)),
            (list(reply), list(reference_text)),
        )
    )


def _overlap(said: set[tuple[str, ...]], given: set[tuple[str, ...]], percentage: float) -> bool:
    if not said or len(said) < min(_LEAST_RUNS, len(given)):
        return False
    return abs(100 * len(said & given) / len(said) - percentage) <= _NEAR


def _trigrams(found: list[str]) -> set[tuple[str, ...]]:
    return set(zip(found, found[1:], found[2:], strict=False))
