"""Scripts and languages: which a text is written in, by Unicode's blocks and a fixed classifier.

The script decides for most scripts. Languages that share one are distinguished by py3langid's naive
Bayes over byte n-grams (Lui and Baldwin, "langid.py", ACL 2012), which draws no random numbers and
keeps no state, so a passage always gets the same answer.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from typing import Any

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
    """Return the script of a character; ``None`` for marks, digits, signs and mathematical letters.

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
    """Count a text's letters by script, in letters of an alphabet.

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


BY_SCRIPT = {
    "el": "Greek", "hy": "Armenian", "ka": "Georgian", "ta": "Tamil", "te": "Telugu",
    "kn": "Kannada", "ml": "Malayalam", "gu": "Gujarati", "pa": "Gurmukhi", "or": "Oriya",
    "si": "Sinhala", "th": "Thai", "lo": "Lao", "km": "Khmer", "my": "Burmese", "bo": "Tibetan",
    "am": "Ethiopic", "he": "Hebrew", "ko": "Hangul", "ja": "Kana", "zh": "Han",
}  # fmt: skip
"""The one language each of these scripts is taken for."""

_SHARED = {
    "Latin": "af az br bs ca cs cy da de en eo es et eu fi fr ga gl ha hr ht hu id ig is it jv ku "
    "la lb lt lv mg ms mt nl nn no oc pl pt qu ro rw sk sl so sq sr sv sw tk tl tr uz vi wa xh "
    "yo zu",
    "Cyrillic": "be bg kk ky mk mn ru sr tg tt uk",
    "Arabic": "ar fa ku ps ug ur",
    "Devanagari": "hi mr ne sa",
    "Bengali": "as bn",
}
_TOLD_APART = {name: codes.split() for name, codes in _SHARED.items()}
_FOLDED = {
    "pcm": "en", "ext": "es", "arz": "ar", "ary": "ar", "gcf": "fr", "gcr": "fr", "sdh": "ku",
    "uzs": "uz",
}  # fmt: skip
_SAME = {"nb": "no", "iw": "he", "in": "id", "fil": "tl", "cmn": "zh", "sh": "sr"}
_ALIKE = (frozenset({"bs", "hr", "sr"}), frozenset({"nn", "no"}), frozenset({"id", "ms"}))
NONE = "zxx"
"""Text that is no language, such as random letters."""

WRITTEN_IN: dict[str, frozenset[str]] = {
    **{code: frozenset({name}) for code, name in BY_SCRIPT.items()},
    **{
        code: frozenset(name for name, codes in _TOLD_APART.items() if code in codes)
        for code in {c for codes in _TOLD_APART.values() for c in codes}
    },
    "ja": frozenset({"Kana", "Han"}),
    "ko": frozenset({"Hangul", "Han"}),
}
"""The scripts of every language that can be asked for, by ISO 639 code."""

_LEAST_KANA = 0.1  # of a Japanese passage; usual prose has half
_NO_WORD = re.compile(r"(?:[!-&(-,./:-@\[-`{-~\u2010-\u2018\u201a-\u2027\u3000-\u303f]|\d)+")
_lock = threading.Lock()


def language_code(tag: str) -> str | None:
    """Return the code of a BCP 47 tag, such as ``pt`` of ``pt-BR``; ``None`` if unknown.

    Regions make no difference. Scripts do, and are not distinguished, so ``zh-Hant`` is unknown.
    """
    code, *rest = tag.replace("_", "-").lower().split("-")
    code = _SAME.get(code, code)
    regional = all(len(part) == 2 or (len(part) == 3 and part.isdigit()) for part in rest)
    return code if code in WRITTEN_IN and regional else None


def are_merged(one: str, other: str) -> bool:
    """Return whether the classifier merges two languages: Norwegian's two, Croatian and Serbian."""
    return one == other or any({one, other} <= group for group in _ALIKE)


@lru_cache(maxsize=4096)
def detect_language(passage: str) -> tuple[str, float]:
    """Return the likeliest language of a passage of a few hundred characters, and how sure it is.

    Returns:
        A code and a probability among languages of the passage's main script; ``("", 0.0)``
        if there are no letters, or of a script that is not known.
    """
    counted = scripts(passage)
    if not counted:
        return "", 0.0
    if counted["Kana"] and counted["Kana"] >= _LEAST_KANA * (counted["Kana"] + counted["Han"]):
        counted["Kana"] += counted.pop("Han", 0)
    main = max(sorted(counted), key=lambda name: counted[name])
    for code, name in BY_SCRIPT.items():
        if name == main:
            return code, 1.0
    if main not in _TOLD_APART:
        return "", 0.0
    return _classified(passage, main)


def _classified(passage: str, main: str) -> tuple[str, float]:
    letters = "".join(c if script(c) in (main, None) else " " for c in passage)
    text = " ".join(_NO_WORD.sub(" ", letters).split())
    capitals = sum(map(str.isupper, text))
    if 2 * capitals > sum(map(str.isalpha, text)):  # capitals look like other languages
        text = text.lower()
    found = dict.fromkeys([*_TOLD_APART[main], NONE], 0.0)
    for label, likely in _classifier().rank(text):
        code = _FOLDED.get(label, label)
        if code in found:
            found[code] += likely
    for group in _ALIKE:
        together = [code for code in sorted(group) if code in found]
        if together:
            first = max(together, key=lambda code: found[code])
            found[first] = sum(found.pop(code) for code in together)
    total = sum(found.values())
    best = max(found, key=lambda code: found[code])
    return (best, round(found[best] / total, 9)) if total > 0 else ("", 0.0)


_loaded: list[Any] = []


def _classifier() -> Any:
    """Read once, in about half a second, when first needed."""
    with _lock:
        if not _loaded:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier

            found = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
            # Sums of the model's own floats of 32 bits differ from processor to processor.
            found.nb_ptc, found.nb_pc = (t.astype("float64") for t in (found.nb_ptc, found.nb_pc))
            _loaded.append(found)
    return _loaded[0]


MOST = 4000
"""Characters that are looked at of a piece of text."""

LEAST_SHARE = 0.85
"""How much of a text is in a language's scripts at least, if it is in the language."""

_LEAST_LETTERS = 6  # two letters of Hangul or Thai are identified by their script all the same
_LEAST_SURE = 0.6
_BORROWING = 3  # of so many letters in a sentence one at least is its script's own
STOPS = ".!?。！？।॥۔؟።։។။"
"""What ends a sentence, by any script."""

_PIECE = re.compile(rf"[^{STOPS}\n]++")


def language_of(text: str) -> str | None:
    """Return the ISO 639 code of a text's language, or ``None`` if undetermined.

    Case makes no difference, the same text has the same language always, and only the first 4,000
    characters are looked at. A text too short, in mixed scripts or between two languages has none.
    """
    piece = text[:MOST]
    letters = scripts(piece).total()
    code, sure = detect_language(piece)
    enough = letters >= (_LEAST_LETTERS if sure < 1.0 else 2)
    certain = enough and sure >= _LEAST_SURE and own_share(piece, code) >= LEAST_SHARE
    return code if certain and code != NONE else None


def own_share(text: str, language: str) -> float:
    """Return the share of a text's letters that are in a language's scripts.

    A language of another script than Latin borrows: Latin names and terms in a sentence count as
    its own if a third of the letters there are in its script. A sentence all in Latin is foreign.
    """
    own = every = 0
    borrows = language in WRITTEN_IN and "Latin" not in WRITTEN_IN[language]
    for piece in _PIECE.findall(text) if borrows else (text,):
        counted = scripts(piece)
        at_home = sum(counted[name] for name in WRITTEN_IN.get(language, ()))
        if borrows and _BORROWING * at_home >= at_home + counted["Latin"]:
            at_home += counted["Latin"]
        own += at_home
        every += counted.total()
    return own / every if every else 0.0


def is_in(text: str, language: str) -> bool | None:
    """Return whether a text is in a language or one like it; ``None`` if undetermined."""
    found = language_of(text)
    return None if found is None else are_merged(found, language_code(language) or language)
