r"""Words of any script, and whether there are enough of them to say anything.

A reward for what a reply leaves out (it is not too long, repeats nothing) is also earned by saying
nothing. So such verifiers first ask for a number of different words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u0900-\u0963\u0971-\u0d63\u0d7a-\u0dff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)  # ``\w`` leaves out the vowel signs of Indic scripts and the points of Hebrew and Arabic
_UNSPACED = (
    r"\u0e00-\u0e4e\u0e80-\u0ece\u0f00-\u0fff\u1000-\u103f\u1780-\u17d3\u3005-\u3007\u3040-\u30fa"
    r"\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003ffff"
)  # Thai, Lao, Tibetan, Burmese, Khmer, kana and Han
_INVISIBLE = r"\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"

_HIDDEN = re.compile(f"[{_INVISIBLE}]+")
_WORD = re.compile(rf"[{_UNSPACED}]|(?>(?:[^\W_{_UNSPACED}]++|[{_MARKS}]++)+)")
_LETTERS = re.compile(rf"\\[A-Za-z]++|([{_UNSPACED}]|(?>(?:[^\W\d_{_UNSPACED}]++|[{_MARKS}]++)+))")


def visible(text: str) -> str:
    """A text without the characters that have no shape, such as zero-width spaces."""
    return _HIDDEN.sub("", text)


def words(text: str) -> Iterator[str]:
    """The words and numbers of a text in lower case; each letter of a script without spaces.

    Invisible characters part no word, so none is made new by them.

    Example:
        >>> list(words("Tokyo, 東京 in 2024."))
        ['tokyo', '東', '京', 'in', '2024']
    """
    return (found.group() for found in _WORD.finditer(visible(text.lower())))


def distinct_words(text: str, *, enough: int | None = None) -> int:
    r"""How many different words a text holds; letters count, digits and LaTeX commands do not.

    Args:
        text: any text.
        enough: stop counting here.

    Example:
        >>> distinct_words(r"0 or 1 or x2 or \frac{1}{x3}")
        2
    """
    seen: set[str] = set()
    for found in _LETTERS.finditer(visible(text.lower())):
        if found[1]:
            seen.add(found[1])
            if enough is not None and len(seen) >= enough:
                break
    return len(seen)


def check_content(content: int) -> None:
    """Refuse a floor that an empty reply would pass.

    Raises:
        ValueError: it is below 1.
    """
    if content < 1:
        raise ValueError(f"content must be at least 1 word, or silence would earn, got {content!r}")
