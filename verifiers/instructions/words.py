"""Words: what counts as one, and where a keyword stands as one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Vowel signs and accents belong to the word they stand in; re's \w knows none of them.
_MARKS = "".join(
    chr(c)
    for start, end in ((0x300, 0x2000), (0x20D0, 0x2100), (0x3099, 0x309B), (0xA66F, 0xAC00))
    for c in range(start, end)
    if unicodedata.category(chr(c)).startswith("M")
)
_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han: no spaces between
_LETTER = rf"[^\W_{_SINGLE}]"
_MORE = rf"(?:{_LETTER}++|[{_MARKS}]++)"
_WORD = re.compile(  # atomic throughout: nothing is tried twice, nothing is kept for it
    rf"[{_SINGLE}]"
    r"|(?>(?:[^\W\d_]\.){2,})"  # U.S., e.g.
    rf"|{_LETTER}(?>{_MORE}*)(?>(?:(?:(?<=\d)[.,](?=\d)|['’])(?>{_MORE}+))*)"
    rf"(?>(?:[-‐‑](?>{_MORE}+)(?>(?:['’](?>{_MORE}+))*)){{0,3}})"
)
_UNSPACED = re.compile(f"[{_SINGLE}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_WORDLIKE = re.compile(_MORE)
_STRAIGHT = str.maketrans("’‘“”", "''\"\"")


def words(text: str) -> list[str]:
    """The words of a text, in order.

    A word is a run of letters and digits with their accents. It may hold apostrophes (don't), up
    to three hyphens (state-of-the-art), and a number its points and commas (10,000.5). A Han or
    kana character is a word by itself, as word processors count.
    """
    return _WORD.findall(text)


def about_how_many(text: str) -> int:
    """How many words a text has at least, where Thai and its like are written without spaces."""
    return max(len(words(text)), len(_UNSPACED.findall(text)) // 4)


def folded(text: str) -> list[str]:
    """The words of a text with neither case nor kinds of apostrophe told apart."""
    return words(plain(text).casefold())


def plain(text: str) -> str:
    """A text with its quotes straight and its accents composed, so that spellings compare."""
    return unicodedata.normalize("NFC", text).translate(_STRAIGHT)


def collapsed(text: str) -> str:
    """A text with each run of white space as one space."""
    return " ".join(text.split())


def letters(word: str) -> str:
    """The letters and digits of a word, without its hyphens and apostrophes."""
    return "".join(c for c in word if c.isalnum())


def has_content(text: str) -> bool:
    """Whether there is a letter or a digit at all."""
    return any(c.isalnum() for c in text)


def occurrences(text: str, keyword: str) -> int:
    """How often a keyword stands in a text as a word or phrase of its own, in any case.

    It is taken literally, never as a pattern. In scripts written without spaces it may stand
    anywhere.
    """
    pieces = plain(keyword).casefold().split()
    literal = r"\s+".join(map(re.escape, pieces))
    if not _UNSPACED.search(keyword):  # a mark such as "!" stands where it likes
        before = r"(?<![^\W_])" if _WORDLIKE.match(pieces[0]) else ""
        after = rf"(?!{_MORE})" if _WORDLIKE.match(pieces[-1][-1]) else ""
        literal = f"{before}{literal}{after}"
    return sum(1 for _ in re.finditer(literal, plain(text).casefold()))


def initials(found: Iterable[str]) -> list[str]:
    """The first letter of each word, without its accents."""
    return [unicodedata.normalize("NFD", word)[0] for word in found]
