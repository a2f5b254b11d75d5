"""Which language a text is in: by its script first, then by a fixed model; never by chance."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache
from typing import Any

MOST = 4000
"""Characters that are looked at of a piece of text."""

_ONE_LANGUAGE = {
    "HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "THAI": "th", "LAO": "lo",
    "GREEK": "el", "ARMENIAN": "hy", "GEORGIAN": "ka", "ETHIOPIC": "am", "KHMER": "km",
    "MYANMAR": "my", "SINHALA": "si", "GUJARATI": "gu", "GURMUKHI": "pa", "TAMIL": "ta",
    "TELUGU": "te", "KANNADA": "kn", "MALAYALAM": "ml", "BENGALI": "bn", "HEBREW": "he",
}  # fmt: skip
_MANY = {
    "LATIN": "af az bs ca cs cy da de en es et eu fi fr ga gl ha hr ht hu id ig is it la lt lv mg "
    "ms mt nl no pl pt ro sk sl so sq sv sw tl tr uz vi xh yo zu",
    "CYRILLIC": "be bg kk ky mk mn ru sr tg uk",
    "ARABIC": "ar fa ps ur",
    "DEVANAGARI": "hi mr ne",
}
LANGUAGES = frozenset([*_ONE_LANGUAGE.values(), *" ".join(_MANY.values()).split()])
"""The ISO 639-1 codes that can be told."""

_LEAST_LETTERS = (
    6  # of an alphabet with many languages; two words of Hangul are Korean all the same
)
_LEAST_SHARE = 0.85
_CLEAR = 1.5


def language_of(text: str) -> str | None:
    """The ISO 639-1 code of a text's language, or ``None`` where it cannot be told.

    Case makes no difference, the same text has the same language always, and only the first 4,000
    characters are looked at. A text too short, in mixed scripts or between two languages has none.
    """
    script, share, count = _script(text[:MOST])
    if share < _LEAST_SHARE:
        return None
    if script in _ONE_LANGUAGE:
        return _ONE_LANGUAGE[script] if count > 1 else None
    if script not in _MANY or count < _LEAST_LETTERS:
        return None
    known = _MANY[script].split()
    safe = text[:MOST].encode("utf-8", "replace").decode("utf-8").lower()
    scores = [(score, code) for code, score in _model().rank(safe) if code in known]
    (best, code), (second, _) = sorted(scores, reverse=True)[:2]
    return code if best >= _CLEAR * second else None


def _script(text: str) -> tuple[str, float, int]:
    """The script of most letters, their share, and how many they are."""
    kinds = Counter(
        unicodedata.name(c, "").partition(" ")[0].partition("-")[0]
        for c in unicodedata.normalize("NFKC", text)
        if c.isalpha()
    )
    if kinds["HIRAGANA"] + kinds["KATAKANA"] > 0.1 * kinds["CJK"]:  # Japanese writes all three
        kinds["HIRAGANA"] += kinds.pop("KATAKANA", 0) + kinds.pop("CJK", 0)
    if not kinds:
        return "", 0.0, 0
    script, count = kinds.most_common(1)[0]
    return script, count / kinds.total(), count


@cache
def _model() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # half a second: only when asked

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
