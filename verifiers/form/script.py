"""Which script a text is written in, from Unicode's blocks."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections import Counter
from functools import lru_cache

# first and last code point of blocks, by script; Unicode 15, less those of dead scripts
_BLOCKS: dict[str, tuple[tuple[int, int], ...]] = {
    "Latin": (
        (0x41, 0x5A), (0x61, 0x7A), (0xAA, 0xAA), (0xBA, 0xBA), (0xC0, 0x24F), (0x250, 0x2AF),
        (0x1D00, 0x1D25), (0x1D62, 0x1D77), (0x1D79, 0x1DBF), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F),
        (0xA722, 0xA7FF), (0xAB30, 0xAB64), (0xFB00, 0xFB06), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A),
    ),
    "Greek": ((0x370, 0x3E1), (0x3F0, 0x3FF), (0x1F00, 0x1FFF)),
    "Cyrillic": ((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    "Armenian": ((0x530, 0x58F), (0xFB13, 0xFB17)),
    "Hebrew": ((0x590, 0x5FF), (0xFB1D, 0xFB4F)),
    "Arabic": ((0x600, 0x6FF), (0x750, 0x77F), (0x8A0, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC)),
    "Devanagari": ((0x900, 0x97F), (0xA8E0, 0xA8FF)),
    "Bengali": ((0x980, 0x9FF),),
    "Gurmukhi": ((0xA00, 0xA7F),),
    "Gujarati": ((0xA80, 0xAFF),),
    "Oriya": ((0xB00, 0xB7F),),
    "Tamil": ((0xB80, 0xBFF),),
    "Telugu": ((0xC00, 0xC7F),),
    "Kannada": ((0xC80, 0xCFF),),
    "Malayalam": ((0xD00, 0xD7F),),
    "Sinhala": ((0xD80, 0xDFF),),
    "Thai": ((0xE00, 0xE7F),),
    "Lao": ((0xE80, 0xEFF),),
    "Tibetan": ((0xF00, 0xFFF),),
    "Burmese": ((0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),
    "Georgian": ((0x10A0, 0x10FF), (0x1C90, 0x1CBF), (0x2D00, 0x2D2F)),
    "Ethiopic": ((0x1200, 0x139F), (0x2D80, 0x2DDF), (0xAB01, 0xAB2F)),
    "Khmer": ((0x1780, 0x17FF),),
    "Mongolian": ((0x1800, 0x18AF),),
    "Hangul": (
        (0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xFFA0, 0xFFDC),
    ),
    "Kana": ((0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F)),
    "Han": (
        (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF),
        (0x20000, 0x3FFFF),
    ),
}  # fmt: skip
_SORTED = sorted((first, last, name) for name, all_ in _BLOCKS.items() for first, last in all_)
_FIRSTS = [first for first, _, _ in _SORTED]
_WEIGHTS = {"Han": 3, "Kana": 2, "Hangul": 2}  # a letter that stands for more than one sound


@lru_cache(maxsize=1 << 16)
def script(letter: str) -> str | None:
    """The script of a character; ``None`` for marks, digits, signs and mathematical letters.

    A letter of a script that is not listed here, such as Cherokee, is of script ``"other"``.

    Example:
        >>> [script(c) for c in "aжא字か한1"]
        ['Latin', 'Cyrillic', 'Hebrew', 'Han', 'Kana', 'Hangul', None]
    """
    if not letter.isalpha() or 0x1D400 <= ord(letter) <= 0x1D7FF:
        return None
    at = bisect_right(_FIRSTS, ord(letter)) - 1
    if at >= 0 and ord(letter) <= _SORTED[at][1]:
        return _SORTED[at][2]
    return None if unicodedata.category(letter) == "Lm" else "other"


def scripts(text: str) -> Counter[str]:
    """How much of a text is in which script, in letters of an alphabet.

    A Han character weighs three of those and a syllable of kana or Hangul two, for so many would
    spell it: else one Latin name outweighs the Chinese sentence about it.

    Example:
        >>> dict(scripts("我用 Python"))
        {'Han': 6, 'Latin': 6}
    """
    found: Counter[str] = Counter()
    for letter, times in Counter(text).items():
        name = script(letter)
        if name is not None:
            found[name] += times * _WEIGHTS.get(name, 1)
    return found
