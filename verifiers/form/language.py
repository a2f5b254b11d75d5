"""Language: is a reply written in the required language?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..text.language import (
    BY_SCRIPT,
    NONE,
    STOPS,
    WRITTEN_IN,
    are_merged,
    detect_language,
    language_code,
    own_share,
    scripts,
)
from ..text.words import distinct_words
from ..validation import check_one_of
from ..verdict import Verdict
from ..verifier import Verifier
from .prose import PARTS, Part, missing, part_of, prose

_FEW_LETTERS = 12
_FEW_WORDS = 2
_PASSAGE = 30  # characters that a passage has at least, if the text has as many
_LONGEST = 400
_PASSAGES = 160  # that are read, spread evenly over a longer text
_WHOLE = 4000  # characters of those, read at once
_LIKELY = 0.5  # how sure the text as a whole must be
_SURE = 0.8  # how sure a passage must be to differ from the whole
_STOP = re.compile(rf"[^{STOPS}\n]*+[{STOPS}\n]*+")
_MANY_MARKS = re.compile(r"([\u0300-\u036f]{4})[\u0300-\u036f]++")


class Language(Verifier):
    r"""Full marks for a reply in the wanted language, 0 for one that cannot be identified.

    Code, formulas, LaTeX and addresses are not read. The scripts of the letters come first: they
    decide Chinese, Japanese (Han with kana; kanji alone count as Chinese), Korean,
    Greek, Hebrew, Thai and others by themselves. Languages that share a script are distinguished by
    a classifier, passage by passage. A passage counts as foreign if the classifier is 0.8 sure
    of another language, and the text as a whole must be 0.5 sure of the one wanted. The share of
    a text in the language is that of its letters in the right script, times that of the passages.

    A reply of fewer than 12 letters or of one word, or in no language, earns 0.
    Norwegian's two forms are one language here; so are Bosnian, Croatian and Serbian, and
    Indonesian and Malay. Serbian is right in both scripts; a transliteration is in no language.

    DeepSeek-R1 (arXiv:2501.12948, section 2.3.2) rewards the proportion of the thought's words
    that are in the target language: that is ``Language("en", part="thought", graded=True)``.

    Reference: a code such as ``"de"`` or ``"pt-BR"``, of which the region makes no difference;
    ignored if ``language`` is given.

    Args:
        language: the code, if it is the same for every task.
        part: what is read: ``all``, or the ``thought`` or the ``answer`` alone.
        share: the share that must be in the language.
        graded: the score is that share itself, and full from ``share`` on.

    Raises:
        ValueError: the language or part is not known, or ``share`` is not in (0, 1].

    Example:
        >>> german = Language("de")
        >>> german.verify("Die Antwort ist 42, denn sechs mal sieben ist 42.", None).score
        1.0
        >>> german.verify("The answer is 42, because six times seven is 42.", None).reason
        'en, expected de'
    """

    judges_form = True

    def __init__(
        self,
        language: str | None = None,
        *,
        part: Part = "all",
        share: float = 0.9,
        graded: bool = False,
    ) -> None:
        fault = None if language is None else _fault(language)
        if fault:
            raise ValueError(fault)
        check_one_of("part", part, PARTS)
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {share!r}")
        self.language, self.part, self.share, self.graded = language, part, share, graded

    def check_reference(self, reference: Any) -> str | None:
        """Require a known code, unless the verifier has its own."""
        return _fault(reference) if self.language is None else None

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply: one pass over its letters, and a bounded number of passages."""
        wanted = language_code(reference if self.language is None else self.language) or ""
        whole = part_of(reply, self.part)
        if whole is None:
            return Verdict.unparseable(missing(self.part))
        text = _MANY_MARKS.sub(r"\1", prose(whole))
        counted = scripts(text)
        letters = sum(counted.values())
        if letters < _FEW_LETTERS or distinct_words(text, enough=_FEW_WORDS) < _FEW_WORDS:
            return Verdict.unparseable("too short to identify the language")
        right = own_share(text, wanted)
        if right == 0:
            return Verdict.wrong(f"{max(counted, key=counted.__getitem__)} script, not {wanted}")
        found, share = _share(text, wanted)
        return self._weighed(right * share, found, wanted)

    def _weighed(self, share: float, found: str, wanted: str) -> Verdict:
        if not found:
            return Verdict.unparseable("the language cannot be identified")
        if share >= self.share and are_merged(found, wanted):
            return Verdict.correct(f"{share:.0%} {wanted}", extracted=found)
        score = min(share, 0.999) if self.graded else 0.0  # what is not correct has no full marks
        if not are_merged(found, wanted):
            return Verdict.wrong(f"{found}, expected {wanted}", score=score, extracted=found)
        reason = f"{share:.0%} {wanted}, less than {self.share:.0%}"
        return Verdict.wrong(reason, score=score, extracted=found)


def _fault(language: Any) -> str | None:
    if isinstance(language, str) and language_code(language):
        return None
    return f"language must be a code from {' '.join(sorted(WRITTEN_IN))}, got {language!r:.40}"


def _share(text: str, wanted: str) -> tuple[str, float]:
    """Return the language of a text, and the share of its passages in the wanted one.

    Only letters in the wanted language's scripts are weighed; the others are counted before.
    """
    passages = _spread(list(_passages(text)))
    whole, likely = detect_language("\n".join(passages)[:_WHOLE])
    if likely < _LIKELY or whole == NONE:
        whole = ""
    own = weighed = 0
    for passage in passages:
        counted = scripts(passage)
        weight = sum(counted[name] for name in WRITTEN_IN[wanted])
        if not weight:
            continue
        found, sure = detect_language(passage)
        if found in BY_SCRIPT and BY_SCRIPT[found] not in WRITTEN_IN[wanted]:
            found = whole  # mostly another script, and its letters of this one are strays
        elif sure < _SURE:
            found = whole
        weighed += weight
        own += weight * are_merged(found, wanted)
    return whole, own / weighed if weighed else 0.0


def _passages(text: str) -> Iterator[str]:
    """Yield sentences and lines, joined until they are long enough to identify."""
    start = end = 0
    for found in _STOP.finditer(text):
        end = found.end()
        if end - start >= _PASSAGE:
            yield from (text[at : min(at + _LONGEST, end)] for at in range(start, end, _LONGEST))
            start = end
    if text[start:].strip():
        yield text[start:][:_LONGEST]


def _spread(passages: list[str]) -> list[str]:
    """Return at most N passages, evenly spaced, including the first and the last."""
    many = len(passages)
    if many <= _PASSAGES:
        return passages
    return [passages[k * (many - 1) // (_PASSAGES - 1)] for k in range(_PASSAGES)]
