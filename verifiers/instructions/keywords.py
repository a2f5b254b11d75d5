"""Constraints on keywords and letters."""

# ruff: noqa: N803 # the public names of arguments

from __future__ import annotations

import html
import re
import unicodedata
from itertools import pairwise

from ..text.sentences import sentences
from ..text.words import (
    LOOKALIKES,
    canonical,
    count_occurrences,
    folded_words,
    initials,
    letters_of,
)
from .registry import Count, Letter, Relation, Text, Texts, compare, constraint

_ACCENT = re.compile("[\u0300-\u036f]++")
_SIGNS = re.compile("[*`]|~~")
_MARKUP = re.compile(_SIGNS.pattern + r"|</?[A-Za-z]{1,10}+>|<!--[^>]*+>")


@constraint("keywords:existence")
def existence(reply: str, *, keywords: Texts) -> bool:
    """Each keyword occurs, as a word of its own, in any case."""
    return all(count_occurrences(reply, keyword) for keyword in keywords)


@constraint("keywords:frequency")
def frequency(reply: str, *, keyword: Text, frequency: Count, relation: Relation) -> bool:
    """The keyword occurs, as a word of its own, less than N times or at least N times."""
    return compare(count_occurrences(reply, keyword), relation, frequency)


@constraint("keywords:forbidden_words")
def forbidden_words(reply: str, *, forbidden_words: Texts) -> bool:
    """None of the words occurs as a word of its own, in any case."""
    return not any(_shows(reply, word) for word in forbidden_words)


def _shows(reply: str, keyword: str) -> bool:
    """Return whether a reply contains a keyword as written, rendered, or spelt in lookalikes."""
    # Behind the last ">" no tag or comment ends, and each that opens would be read to the end.
    marked, end, rest = html.unescape(reply).rpartition(">")
    rendered = _MARKUP.sub("", marked + end) + _SIGNS.sub("", rest)
    texts = {reply, rendered}
    if keyword.isascii() and not rendered.isascii():
        bare = _ACCENT.sub("", unicodedata.normalize("NFD", rendered)).replace("ı", "i")
        texts |= {bare, bare.translate(LOOKALIKES)}
    return any(count_occurrences(text, keyword) for text in texts)


@constraint("keywords:letter_frequency", "letters:letter_counting2")
def letter_frequency(
    reply: str, *, letter: Letter, let_frequency: Count, let_relation: Relation
) -> bool:
    """The letter occurs, in either case, less than N times or at least N times."""
    found = canonical(reply).count(canonical(letter.strip()))
    return compare(found, let_relation, let_frequency)


@constraint("letters:letter_counting")
def letter_counting(reply: str, *, N: Count, relation: Relation) -> bool:
    """There are fewer than N letters, or at least N."""
    return compare(sum(c.isalpha() for c in reply), relation, N)


@constraint("keywords:word_once")
def word_once(reply: str, *, keyword: Text) -> bool:
    """The keyword occurs, as a word of its own, in any case."""
    return count_occurrences(reply, keyword) > 0


@constraint("keywords:word_count_different_numbers")
def word_count_different_numbers(
    reply: str, *, keyword: Text, frequency: Count, relation: Relation = "at least"
) -> bool:
    """The keyword occurs exactly N times: the prompt mentions no relation."""
    return count_occurrences(reply, keyword) == frequency


@constraint("keywords:exclude_word_harder")
def exclude_word_harder(reply: str, *, keyword: Text, instruction: Text = "") -> bool:
    """The keyword does not occur as a word of its own, in any case."""
    return not _shows(reply, keyword)


@constraint("count:count_increment_word")
def count_increment_word(reply: str, *, keyword1: Text, keyword2: Text) -> bool:
    """The first keyword occurs once, the second twice."""
    return count_occurrences(reply, keyword1) == 1 and count_occurrences(reply, keyword2) == 2


@constraint("count:keywords_multiple")
def keywords_multiple(
    reply: str,
    *,
    keyword1: Text,
    keyword2: Text,
    keyword3: Text,
    keyword4: Text,
    keyword5: Text,
) -> bool:
    """The five keywords occur once, twice, three, five and seven times."""
    keywords = (keyword1, keyword2, keyword3, keyword4, keyword5)
    return [count_occurrences(reply, keyword) for keyword in keywords] == [1, 2, 3, 5, 7]


@constraint("sentence:keyword")
def sentence_keyword(reply: str, *, word: Text, N: Count) -> bool:
    """The N-th sentence contains the keyword."""
    found = sentences(reply)
    return len(found) >= N and count_occurrences(found[N - 1], word) > 0


@constraint("words:keywords_specific_position", "keywords:keyword_specific_position")
def keyword_position(reply: str, *, keyword: Text, n: Count, m: Count) -> bool:
    """The m-th word of the n-th sentence is the keyword."""
    found, wanted = sentences(reply), folded_words(keyword)
    return len(found) >= n and folded_words(found[n - 1])[m - 1 : m - 1 + len(wanted)] == wanted


@constraint("words:words_position")
def words_position(reply: str, *, keyword: Text) -> bool:
    """The second word and the second to last are the keyword."""
    found, wanted = folded_words(reply), folded_words(keyword)
    return len(found) > 2 and [found[1]] == [found[-2]] == wanted


@constraint("keywords:palindrome")
def palindrome(reply: str) -> bool:
    """A word of at least three letters, not all the same, is a palindrome."""
    return bool(palindromes(reply, 3))


@constraint("words:palindrome")
def ten_palindromes(reply: str) -> bool:
    """Ten different words of at least five letters are palindromes."""
    return len(palindromes(reply, 5)) >= 10


def palindromes(reply: str, shortest: int) -> set[str]:
    """Return the distinct palindromes among the words, except ``aaa`` and numbers."""
    found = {letters_of(word) for word in folded_words(reply)}
    return {
        w for w in found if len(w) >= shortest and w.isalpha() and w == w[::-1] and len(set(w)) > 1
    }


@constraint("keywords:start_end")
def start_end(reply: str) -> bool:
    """The first word is also the last, and nothing follows it, not even a full stop."""
    found = folded_words(reply)
    return len(found) > 2 and found[0] == found[-1] and reply.strip()[-1].isalnum()


@constraint("keywords:no_adjacent_consecutive")
def no_adjacent_consecutive(reply: str) -> bool:
    """No word starts with the letter that follows the first letter of the word before."""
    found = initials(folded_words(reply))
    pairs = pairwise(found)
    return not any(a.isalpha() and ord(b) - ord(a) == 1 for a, b in pairs)
