r"""Words: what counts as one, which are the same, and whether a text says anything.

Characters that have no shape (zero-width spaces, soft hyphens, fillers) belong to no word, and a
letter that only looks like a Latin one counts as that one inside a Latin word: neither hides a
word nor makes a new one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import unescape

from .thought import END_TOKEN

_INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
# Vowel signs and accents belong to the word they stand in; re's \w knows none of them.
_MARKS = "".join(
    chr(c)
    for first, last in ((0x300, 0x2000), (0x20D0, 0x2100), (0x3099, 0x309B), (0xA66F, 0xFE30))
    for c in range(first, last)
    if unicodedata.category(chr(c)).startswith("M")
)
_SINGLE = (  # Han and kana: each letter is a word
    r"\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED = r"\u0e00-\u0e4e\u0e80-\u0ece\u0f00-\u0fbc\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
_LETTER = rf"[^\W_{_SINGLE}{_UNSPACED}]"
_MORE = rf"(?:{_LETTER}++|[{_MARKS}]++)"
_WORD = re.compile(  # atomic throughout: nothing is tried twice, nothing is kept for it
    rf"(?=[^\W_])(?:[{_SINGLE}]|[{_UNSPACED}{_MARKS}]{{1,6}}+)"
    r"|(?>(?:[^\W\d_]\.){2,})"  # U.S., e.g.
    rf"|{_LETTER}(?>{_MORE}*)(?>(?:(?:(?<=\d)[.,](?=\d)|['’])(?>{_MORE}+))*)"
    rf"(?>(?:[-‐‑](?>{_MORE}+)(?>(?:['’](?>{_MORE}+))*)){{0,3}})"
)
_ANYWHERE = re.compile(f"[{_SINGLE}{_UNSPACED}]")
_WORDLIKE = re.compile(_MORE)
_HIDDEN = re.compile(f"[{_INVISIBLE}]+")
_COMMAND = re.compile(r"\\[A-Za-z]++")
_STACKED = re.compile(  # with the vowel signs of Arabic and Hebrew, and the tatweel
    r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0670]+"
)
_ALPHABETIC = re.compile(r"[^\W\d_]++")
_ASCII_LETTER = re.compile(r"[A-Za-z]")
# ∞ and ∅ are whole answers; half a surrogate pair is no character, and what holds one is no text.
_SOMETHING = re.compile(r"[^\W_\u115f\u1160\u3164\uffa0]|[∞∅]")
_NO_TEXT = re.compile(r"[\ud800-\udfff]")
_MAY_HIDE = re.compile("[<&]")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,20})(?:\s[^<>]{0,99}?)?(/?)>")
_NO_SIGN = re.compile(rf"<!\[CDATA\[|\]\]>|{END_TOKEN.pattern}")
_VOID = frozenset(("br", "hr"))
_STYLED = {  # fullwidth, circled and mathematical letters and digits
    c: plain_letter
    for first, last in ((0x24B6, 0x24EA), (0xFF10, 0xFF5B), (0x1D400, 0x1D800))
    for c in range(first, last)
    if (plain_letter := unicodedata.normalize("NFKC", chr(c))).isalnum()
}
_IS_STYLED = re.compile("[\u24b6-\u24e9\uff10-\uff5a\U0001d400-\U0001d7ff]")
_GREEK_OR_CYRILLIC = re.compile("[\u0370-\u052f]")
LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухԁһԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοινα",
    "ABESIJKMHOPCTYXaesijopcyxdhqwABEZHIKMNOPTYXoiva",
)
"""Greek and Cyrillic letters that look like Latin ones, for ``str.translate``."""


_SIGNS = str.maketrans("’‘“”‐‑", "''\"\"--")


def strip_invisible(text: str) -> str:
    """Return a text without the characters that have no shape, such as zero-width spaces."""
    return _HIDDEN.sub("", text)


def replace_surrogates(text: str) -> str:
    r"""Return a text with U+FFFD for halves of surrogate pairs, which UTF-8 cannot hold.

    Example:
        >>> replace_surrogates("4\ud8002")
        '4\ufffd2'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def words(text: str) -> list[str]:
    """Return the words of a text, in order, as they are written.

    A word is a run of letters and digits with their accents. It may hold apostrophes (don't), up
    to three hyphens (state-of-the-art), and a number its points and commas (10,000.5). A Han or
    kana character is a word by itself, as word processors count; so is each group of up to six
    characters of a script without spaces, such as Thai.

    Example:
        >>> words("Don't buy state-of-the-art 東京 maps, 3.50 each.")
        ["Don't", 'buy', 'state-of-the-art', '東', '京', 'maps', '3.50', 'each']
    """
    return _WORD.findall(strip_invisible(text))


def folded_words(text: str) -> list[str]:
    """Return the words of a text, equal if only case, apostrophes or lookalikes differ."""
    return _WORD.findall(canonical(text))


def canonical(text: str) -> str:
    """Return a text in the form in which its words and keywords are compared.

    Case, the shape of quotes and hyphens, styled letters, lookalikes and accents that Unicode
    cannot compose make no difference; accents that it can (é) do.
    """
    text = normalize_characters(text)
    if text.isascii():
        return text.lower()
    if _IS_STYLED.search(text):
        text = text.translate(_STYLED)
    if _GREEK_OR_CYRILLIC.search(text):
        text = _latin(text)
    return _STACKED.sub("", text).casefold()


def normalize_characters(text: str) -> str:
    """Return a text with plain quotes and hyphens, accents composed and nothing invisible."""
    text = strip_invisible(text)
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text).translate(_SIGNS)


def _latin(text: str) -> str:
    """Spell in Latin the Latin words in which some letters are Greek or Cyrillic lookalikes."""
    return _ALPHABETIC.sub(
        lambda found: (
            found[0].translate(LOOKALIKES) if _ASCII_LETTER.search(found[0]) else found[0]
        ),
        text,
    )


def count_distinct(text: str) -> int:
    """Count the different words of a text; accents and new joins of known parts make no new one.

    Example:
        >>> count_distinct("wide wíde wide-wide, very wide")
        2
    """
    whole: set[str] = set()
    parts: set[str] = set()
    for word in dict.fromkeys(folded_words(text)):
        bare = without_accents(word)
        whole.add(bare)
        parts.update(re.split("[-‐‑]", bare))
    return min(len(whole), len(parts))


def distinct_words(text: str, *, enough: int | None = None) -> int:
    r"""Count the different words of a text by their letters, without digits and LaTeX commands.

    Example:
        >>> distinct_words(r"0 or 1 or x2 or \frac{1}{x3}")
        2
    """
    seen: set[str] = set()
    for word in dict.fromkeys(folded_words(_COMMAND.sub(" ", text))):
        seen.add(_digitless(word))
        seen.discard("")
        if enough is not None and len(seen) >= enough:
            break
    return len(seen)


def _digitless(word: str) -> str:
    return "".join(c for c in without_accents(word) if not c.isdigit() and c not in ".,'’-‐‑")


def without_accents(word: str) -> str:
    """Return a word without the accents of its letters; vowel signs stay."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _STACKED.sub("", unicodedata.normalize("NFD", word)))


def collapse_spaces(text: str) -> str:
    """Return a text with each run of white space as one space."""
    return " ".join(text.split())


def letters_of(word: str) -> str:
    """Return the letters and digits of a word, without its hyphens and apostrophes."""
    return "".join(c for c in word if c.isalnum())


def initials(found: Iterable[str]) -> list[str]:
    """Return the first letter of each word, without its accents."""
    return [unicodedata.normalize("NFD", word)[0] for word in found]


def has_content(text: str) -> bool:
    r"""Return whether a text holds a letter or a digit, and can be written to a file.

    Punctuation, blanks, zero-width and combining characters by themselves say nothing, nor do
    HTML comments, empty elements and end tokens.

    Example:
        >>> [has_content(text) for text in ("42", "π", "...", " \u200b", "\u0301", "4\ud800")]
        [True, True, False, False, False, False]
        >>> [has_content(text) for text in ("<div>", "<p><b></b></p>", "&nbsp;<br>", "<!-- a -->")]
        [True, False, False, False]
    """
    found = _SOMETHING.search(text)
    if found is None or _NO_TEXT.search(text):
        return False
    if not _MAY_HIDE.search(text, 0, found.start()):
        return True
    shown = _NO_SIGN.sub(" ", strip_comments(text))
    if _SOMETHING.search(unescape(_TAG.sub(" ", shown))):
        return True
    tags = _TAG.findall(shown)  # one that opens nothing is spoken of: <div>
    opened = {name for close, name, empty in tags if not (close or empty)} - _VOID
    return not opened <= {name for close, name, _ in tags if close}


def strip_comments(text: str) -> str:
    """Return a text without HTML's comments."""
    head, *pieces = text.split("<!--")
    return "".join([head, *(piece.partition("-->")[2] for piece in pieces)])


def strip_closed_comments(text: str) -> str:
    """Return a text without HTML's comments; one that is never closed is text."""
    head, end, rest = text.rpartition("-->")
    return strip_comments(head + end) + rest


def count_occurrences(text: str, keyword: str) -> int:
    """Count how often a keyword occurs in a text as a word or phrase of its own, in any case.

    It is taken literally, never as a pattern. In scripts written without spaces it may stand
    anywhere.
    """
    wanted = canonical(keyword)
    return (
        sum(1 for _ in re.finditer(phrase_pattern(wanted), canonical(text)))
        if wanted.split()
        else 0
    )


def phrase_pattern(text: str) -> str:
    """Return the pattern of a text that stands for itself, as a word or phrase of its own."""
    pieces = text.split()
    literal = r"\s+".join(map(re.escape, pieces))
    if not pieces or _ANYWHERE.search(text):
        return literal
    before = r"(?<![^\W_])" if _WORDLIKE.match(pieces[0]) else ""
    after = rf"(?!{_MORE})" if _WORDLIKE.match(pieces[-1][-1]) else ""
    return f"{before}{literal}{after}"  # a mark such as "!" stands where it likes


def check_content(content: int) -> None:
    """Refuse a floor that an empty reply would pass.

    Raises:
        ValueError: it is below 1.
    """
    if content < 1:
        raise ValueError(f"content must be at least 1 word, or silence would earn, got {content!r}")
