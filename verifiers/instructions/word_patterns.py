"""Constraints on letters and words in their order."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from ..text.sentences import sentences
from ..text.words import folded_words, initials, letters_of
from .blocks import lines
from .registry import Count, Text, constraint

_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")


@constraint("words:alphabet")
def alphabet(reply: str) -> bool:
    """Each word starts with the letter after the previous word's; ``a`` follows ``z``."""
    found = initials(folded_words(reply))
    steps = pairwise(found)
    return (
        len(found) > 1
        and all("a" <= c <= "z" for c in found)
        and all((ord(b) - ord(a)) % 26 == 1 for a, b in steps)
    )


@constraint("words:vowel")
def vowel(reply: str) -> bool:
    """One paragraph on one line with at most three of the five vowels; accents do not count."""
    found = set(unicodedata.normalize("NFD", reply.casefold())) & set("aeiou")
    return len(lines(reply)) == 1 and 0 < len(found) <= 3


@constraint("words:consonants")
def consonants(reply: str) -> bool:
    """Each word has two adjacent consonants; ``y`` is one."""
    found = folded_words(reply)
    return found != [] and all(_CLUSTER.search(letters_of(word)) for word in found)


@constraint("words:prime_lengths")
def prime_lengths(reply: str) -> bool:
    """Each word has a prime number of letters and digits."""
    sizes = {len(letters_of(word)) for word in folded_words(reply)}
    return sizes != set() and all(map(_prime, sizes))


def _prime(number: int) -> bool:
    return 1 < number < 10_000 and all(number % k for k in range(2, int(number**0.5) + 1))


@constraint("words:no_consecutive")
def no_consecutive(reply: str) -> bool:
    """No two adjacent words start with the same letter."""
    found = initials(folded_words(reply))
    return not any(a == b for a, b in pairwise(found))


@constraint("words:last_first")
def last_first(reply: str) -> bool:
    """At least two sentences; the last word of each is the first of the next."""
    found = [folded_words(sentence) for sentence in sentences(reply)]
    pairs = pairwise(found)
    return len(found) > 1 and all(a and b and a[-1] == b[0] for a, b in pairs)


@constraint("words:paragraph_last_first")
def paragraph_last_first(reply: str) -> bool:
    """Each line ends with the word it starts with, and has others between."""
    found = [words for line in lines(reply) if (words := folded_words(line))]
    return found != [] and all(len(w) > 2 and w[0] == w[-1] for w in found)


@constraint("first_word:first_word_sent")
def first_word_sent(reply: str, *, first_word: Text) -> bool:
    """Each sentence starts with the word, in any case."""
    found, wanted = [folded_words(s) for s in sentences(reply)], folded_words(first_word)
    return found != [] and all(s[: len(wanted)] == wanted for s in found)


@constraint("first_word:first_word_answer")
def first_word_answer(reply: str, *, first_word: Text) -> bool:
    """The reply starts with the word, in any case."""
    wanted = folded_words(first_word)
    return folded_words(reply)[: len(wanted)] == wanted


@constraint("last_word:last_word_sent")
def last_word_sent(reply: str, *, last_word: Text) -> bool:
    """Each sentence ends with the word, in any case; punctuation may follow."""
    found, wanted = [folded_words(s) for s in sentences(reply)], folded_words(last_word)
    return found != [] and all(s[-len(wanted) :] == wanted for s in found)


@constraint("last_word:last_word_answer")
def last_word_answer(reply: str, *, last_word: Text) -> bool:
    """The reply ends with the word, in any case; punctuation may follow."""
    wanted = folded_words(last_word)
    return folded_words(reply)[-len(wanted) :] == wanted


@constraint("sentence:increment")
def increment(reply: str, *, small_n: Count) -> bool:
    """At least two sentences, each ``small_n`` words longer than the one before."""
    sizes = [len(folded_words(sentence)) for sentence in sentences(reply)]
    return len(sizes) > 1 and all(b - a == small_n for a, b in pairwise(sizes))


@constraint("sentence:alliteration_increment")
def alliteration_increment(reply: str) -> bool:
    """At least two sentences, each with a longer alliteration than the one before."""
    runs = [_longest_run(initials(folded_words(sentence))) for sentence in sentences(reply)]
    return len(runs) > 1 and all(a < b for a, b in pairwise(runs))


def _longest_run(found: list[str]) -> int:
    longest = run = min(1, len(found))
    for a, b in pairwise(found):
        run = run + 1 if a == b else 1
        longest = max(longest, run)
    return longest
