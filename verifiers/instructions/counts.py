"""Constraints on how many things of a kind there are."""

# ruff: noqa: SIM905 # lists of words read best as text
# ruff: noqa: N803 # the public names of arguments

from __future__ import annotations

import re

from ..text.words import folded_words, has_content, strip_invisible
from .registry import Count, constraint

CONJUNCTIONS = frozenset("and but for nor or so yet".split())
"""The coordinating conjunctions of English."""

PRONOUNS = frozenset(
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his "
    "himself she her hers herself it its itself they them their theirs themselves one oneself "
    "this that these those who whom whose which what whoever whomever whichever whatever "
    "anybody anyone anything everybody everyone everything nobody nothing somebody someone "
    "something each either neither both all some any none other others another".split()
)
"""The pronouns of English: personal, possessive, reflexive, demonstrative, and so on."""

NAMES = frozenset(
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander "
    "Amelia Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel "
    "Ella Jacob Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher "
    "Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella Jonathan".split()
)
"""The names that the instruction of ``count:person_names`` lists."""

_NUMBER = re.compile(r"(?<![^\W_])\d+(?:[.,]\d+)*")  # not the 2 of H2O
_INTERROBANG = re.compile(r"\?!|!\?|‽")
_JAPANESE = re.compile(r"[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff]+")
_NO_LETTER = re.compile(r"[\W\d_]+")


@constraint("count:conjunctions")
def conjunctions(reply: str, *, small_n: Count) -> bool:
    """At least N of the seven coordinating conjunctions of English occur."""
    return len(CONJUNCTIONS.intersection(folded_words(reply))) >= small_n


@constraint("count:pronouns")
def pronouns(reply: str, *, N: Count) -> bool:
    """At least N English pronouns occur; contractions (it's) count."""
    return sum(word.partition("'")[0] in PRONOUNS for word in folded_words(reply)) >= N


@constraint("count:person_names")
def person_names(reply: str, *, N: Count) -> bool:
    """At least N different names of the instruction's fifty occur."""
    return len(NAMES.intersection(re.findall(r"\w+", reply))) >= N


@constraint("count:numbers")
def numbers(reply: str, *, N: Count) -> bool:
    """Exactly N numbers in digits occur; points and commas inside one belong to it."""
    return sum(1 for _ in _NUMBER.finditer(reply)) == N


@constraint("count:punctuation")
def punctuation(reply: str) -> bool:
    """Each of ``. , ! ? ; :`` occurs, and an interrobang (``?!``, ``!?`` or ``‽``)."""
    rest, found = _INTERROBANG.subn("", reply, count=1)
    return found > 0 and all(mark in rest for mark in ".,!?;:")


@constraint("count:words_japanese")
def words_japanese(reply: str, *, N: Count) -> bool:
    """Between white space, every N-th word has Japanese letters and no others, or is a number."""
    found = [token for token in strip_invisible(reply).split() if has_content(token)][N - 1 :: N]
    letters = [_NO_LETTER.sub("", token) for token in found]
    return any(letters) and all(_JAPANESE.fullmatch(each or "字") for each in letters)
