"""Constraints on how many words, sentences and paragraphs there are."""

# ruff: noqa: N803 # the public names of arguments

from __future__ import annotations

from collections import Counter

from ..text.sentences import sentences
from ..text.words import count_distinct, folded_words, words
from .blocks import spaced, starred
from .registry import Count, Index, Relation, Text, compare, constraint


@constraint("length_constraints:number_words")
def number_words(reply: str, *, num_words: Count, relation: Relation) -> bool:
    """There are fewer than N words, or at least N."""
    return compare(len(words(reply)), relation, num_words)


@constraint("length_constraints:number_sentences")
def number_sentences(reply: str, *, num_sentences: Count, relation: Relation) -> bool:
    """There are fewer than N sentences, or at least N."""
    return compare(len(sentences(reply)), relation, num_sentences)


@constraint("length_constraints:number_paragraphs")
def number_paragraphs(reply: str, *, num_paragraphs: Count) -> bool:
    """``***``, alone on a line, divides the reply into N paragraphs, none empty."""
    return len(starred(reply) or ()) == num_paragraphs


def _nth_exists(num_paragraphs: int, nth_paragraph: int, first_word: str) -> str | None:
    if nth_paragraph > num_paragraphs:
        return f"nth_paragraph must be at most num_paragraphs, got {nth_paragraph}"
    return None


@constraint("length_constraints:nth_paragraph_first_word", together=_nth_exists)
def nth_paragraph_first_word(
    reply: str, *, num_paragraphs: Count, nth_paragraph: Count, first_word: Text
) -> bool:
    """Blank lines divide the reply into N paragraphs; the n-th starts with the word."""
    found, wanted = spaced(reply), folded_words(first_word)
    if len(found) != num_paragraphs:
        return False
    return folded_words(found[nth_paragraph - 1])[: len(wanted)] == wanted


@constraint("paragraphs:paragraphs")
def two_starred(reply: str) -> bool:
    """``***`` divides the reply into two paragraphs."""
    return len(starred(reply) or ()) == 2


@constraint("paragraphs:paragraphs2")
def two_spaced(reply: str) -> bool:
    """Blank lines divide the reply into two paragraphs."""
    return len(spaced(reply)) == 2


def _ordered(min_words: int, max_words: int) -> str | None:
    if max_words < min_words:
        return f"max_words must be at least min_words, got {max_words} and {min_words}"
    return None


@constraint("count:word_count_range", together=_ordered)
def word_count_range(reply: str, *, min_words: Index, max_words: Count) -> bool:
    """There are at least ``min_words`` words and at most ``max_words``."""
    return min_words <= len(words(reply)) <= max_words


@constraint("count:unique_word_count")
def unique_word_count(reply: str, *, N: Count) -> bool:
    """There are at least N different words, ignoring case and accents."""
    return count_distinct(reply) >= N


@constraint("count:count_unique")
def count_unique(reply: str) -> bool:
    """No word occurs twice, ignoring case."""
    found = folded_words(reply)
    return len(found) == len(set(found))


@constraint("words:repeats")
def repeats(reply: str, *, small_n: Count) -> bool:
    """No word occurs more than ``small_n`` times, ignoring case."""
    return max(Counter(folded_words(reply)).values(), default=0) <= small_n


@constraint("count:lowercase_counting")
def lowercase_counting(reply: str, *, N: Count) -> bool:
    """At most N words are entirely in lowercase letters."""
    return sum(word.islower() for word in words(reply)) <= N


@constraint("count:counting_composition")
def counting_composition(reply: str, *, n_sent: Count, n_words: Count) -> bool:
    """Three paragraphs between ``***``, each of ``n_sent`` sentences of ``n_words`` words."""
    paragraphs = [sentences(p) for p in starred(reply) or ()]
    return len(paragraphs) == 3 and all(
        len(p) == n_sent and all(len(words(s)) == n_words for s in p) for p in paragraphs
    )
