"""Which language a passage is in: by its script where that tells, else by a classifier.

The classifier is py3langid's naive Bayes over byte n-grams (Lui and Baldwin, "langid.py", ACL
2012). It draws no random numbers and keeps no state, so a passage always gets the same answer.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Any

from .script import script, scripts

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


def known(tag: str) -> str | None:
    """The code of a BCP 47 tag, such as ``pt`` of ``pt-BR``; ``None`` for one not known here.

    Regions make no difference. Scripts do, and are not told apart, so ``zh-Hant`` is not known.
    """
    code, *rest = tag.replace("_", "-").lower().split("-")
    code = _SAME.get(code, code)
    regional = all(len(part) == 2 or (len(part) == 3 and part.isdigit()) for part in rest)
    return code if code in WRITTEN_IN and regional else None


def alike(one: str, other: str) -> bool:
    """Whether two languages are one to the classifier: Norwegian's two, Croatian and Serbian."""
    return one == other or any({one, other} <= group for group in _ALIKE)


@lru_cache(maxsize=4096)
def language_of(passage: str) -> tuple[str, float]:
    """The likeliest language of a passage of a few hundred characters, and how sure that is.

    Returns:
        A code and a probability among languages of the passage's main script; ``("", 0.0)``
        where there are no letters, or of a script that is not known.
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
    return (best, found[best] / total) if total > 0 else ("", 0.0)


_loaded: list[Any] = []


def _classifier() -> Any:
    """Read once, in about half a second, when first needed."""
    with _lock:
        if not _loaded:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier

            _loaded.append(LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True))
    return _loaded[0]
