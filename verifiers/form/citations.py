"""Citations: does a reply say where it has things from, and quote what is there?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..text.sentences import sentences
from ..text.thought import UNCLOSED
from ..text.words import distinct_words, phrase_pattern, words
from ..verdict import Verdict
from ..verifier import Verifier
from .prose import part_of, prose

_MARK = re.compile(r"\[(\d{1,4}(?:\s?[,;–-]\s?\d{1,4}){0,20})\]")
_NUMBERS = re.compile(r"(\d+)(?:\s?[–-]\s?(\d+))?")
_AFTER_STOP = re.compile(
    r"(?<![.!?。！？])([.!?。！？]++[\"”’»」]?)([ \t]{0,3}(?:\[[\d,;–\- ]{1,100}\][ \t]?){1,20})"
)
_FEW_WORDS = 3
_QUOTES = 50
_WIDEST_RANGE = 20


@dataclass
class _Found:
    """The citations in the sentences of a reply."""

    claims: int = 0
    cited: int = 0
    sources: set[int] = field(default_factory=set)
    quotes: list[tuple[str, list[int]]] = field(default_factory=list)
    widest: int = 0


class Citations(Verifier):
    """Full marks for a reply that cites its sources and quotes them correctly.

    A citation is a source's number in brackets, from 1: ``[1]``, ``[1, 3]``, ``[2-4]``, in the
    sentence or right after its stop. Every number must be that of a source. Every sentence,
    heading and item of at least three distinct words must cite one, or a share ``coverage`` of
    them. A quotation of three or more words in a sentence with citations must occur in one of the
    cited sources, as whole words, ignoring white space, case and the form of quotation marks;
    ``...`` omits text. Only the answer is read, without code.

    Whether a source supports a sentence is not checked, unless it is quoted: combine this with a
    verifier that checks it.

    Reference: ``{"sources": ["text of source 1", ...]}``; ignored if ``sources`` are given.

    Args:
        sources: the texts, if they are the same for every task.
        coverage: the share of sentences that must cite.
        least: how many different sources must be cited.
        most: how many one sentence may cite.
        quotes: how many quotations there must be.
        graded: if every number and quotation is right, but too few sentences cite, the score
            is their share.

    Raises:
        ValueError: sources are no texts, coverage is not in (0, 1], or a number is too small.

    Example:
        >>> cited = Citations(quotes=1)
        >>> known = {"sources": ["Water boils at 100 °C at sea level.", "Ice floats."]}
        >>> cited.verify('There "water boils at 100 °C" [1]. Ice stays on top [2].', known).score
        1.0
        >>> cited.verify('At sea level "water boils at 90 °C" [1].', known).reason
        "no cited source says 'water boils at 90 °C'"
    """

    judges_form = True

    def __init__(
        self,
        *,
        sources: Sequence[str] | None = None,
        coverage: float = 1.0,
        least: int = 1,
        most: int = 3,
        quotes: int = 0,
        graded: bool = False,
    ) -> None:
        self.sources = None if sources is None else list(sources)
        fault = None if self.sources is None else _fault(self.sources)
        if fault or isinstance(sources, str):
            raise ValueError(fault or f"sources must be a list of texts, got {sources!r:.80}")
        if not 0 < coverage <= 1:
            raise ValueError(f"coverage must be above 0 and at most 1, got {coverage!r}")
        if least < 1 or most < 1 or not 0 <= quotes <= _QUOTES:
            raise ValueError(
                f"need least >= 1, most >= 1 and quotes from 0 to {_QUOTES}, "
                f"got {least!r}, {most!r} and {quotes!r}"
            )
        self.coverage, self.least, self.most = coverage, least, most
        self.quotes, self.graded = quotes, graded

    def check_reference(self, reference: Any) -> str | None:
        """Require a list of sources, at least as many as must be cited."""
        if self.sources is not None:
            return None
        if not isinstance(reference, dict) or "sources" not in reference:
            return f'expected {{"sources": [...]}}, got {reference!r:.80}'
        fault = _fault(reference["sources"])
        if fault is None and len(reference["sources"]) < self.least:
            return f"{self.least} sources must be cited, of {len(reference['sources'])}"
        return fault

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Read the citations sentence by sentence, then look up what is quoted."""
        text = part_of(reply, "answer")
        if text is None:
            return Verdict.unparseable(UNCLOSED)
        sources = reference["sources"] if self.sources is None else self.sources
        found = _read(prose(text))
        if not found.sources:
            return Verdict.unparseable("nothing is cited")
        fault = self._fault_of(found, len(sources)) or _misquoted(found, sources)
        if fault:
            return Verdict.wrong(fault)
        share = found.cited / found.claims if found.claims else 0.0
        if share < self.coverage:
            reason = f"{found.cited} of {found.claims} sentences cite a source"
            return Verdict.wrong(reason, score=share if self.graded else 0.0)
        return Verdict.correct(f"{found.cited} of {found.claims} sentences cite a source")

    def _fault_of(self, found: _Found, many: int) -> str:
        outside = [n for n in sorted(found.sources) if not 1 <= n <= many]
        if outside:
            return f"there is no source {outside[0]}"
        if found.widest > self.most:
            return f"a sentence cites {found.widest} sources, at most {self.most} are allowed"
        if len(found.sources) < self.least:
            return f"{len(found.sources)} sources are cited, at least {self.least} are required"
        if len(found.quotes) < self.quotes:
            return f"{len(found.quotes)} quotations, at least {self.quotes} are required"
        if len(found.quotes) > _QUOTES:
            return f"more than {_QUOTES} quotations"
        return ""


def _fault(sources: Any) -> str | None:
    if not isinstance(sources, list) or not sources:
        return f"sources must be a list of texts, got {sources!r:.80}"
    for source in sources:
        if not isinstance(source, str) or not source.strip():
            return f"a source must be a text that is not blank, got {source!r:.80}"
    return None


def _read(text: str) -> _Found:
    found = _Found()
    # a citation after the stop is drawn into the sentence that it belongs to
    for sentence in sentences(_AFTER_STOP.sub(r"\2\1", shield_quotations(text)), headings=True):
        cited = _cited(sentence)
        said = distinct_words(_MARK.sub(" ", sentence), enough=_FEW_WORDS) >= _FEW_WORDS
        found.claims += said
        found.cited += said and bool(cited)
        found.sources |= cited
        found.widest = max(found.widest, len(cited))
        if cited and len(found.quotes) <= _QUOTES:
            quoted = (q for q in quotations(sentence) if len(words(q)) >= _FEW_WORDS)
            found.quotes += [(quote, sorted(cited)) for quote in quoted]
    return found


def _cited(sentence: str) -> set[int]:
    numbers: set[int] = set()
    for mark in _MARK.finditer(sentence):
        for first, last in _NUMBERS.findall(mark[1]):
            low, high = int(first), int(last or first)
            # a range that runs backwards or is too wide cites nothing that exists
            numbers |= {*range(low, high + 1)} if 0 <= high - low < _WIDEST_RANGE else {0}
    return numbers


def _misquoted(found: _Found, sources: Sequence[str]) -> str:
    known = {n: normalize_quote(sources[n - 1]) for _, numbers in found.quotes for n in numbers}
    for quote, numbers in found.quotes:
        if not any(contains_quotation(known[n], quote) for n in numbers):
            return f"no cited source says {quote!r:.80}"
    return ""


_QUOTE = re.compile(
    r"“([^“”]{1,2000})”|«([^«»]{1,2000})»|„([^„“”]{1,2000})[“”]|「([^「」]{1,2000})」"
    r"|(?<![\w\"])\"(?=\S)([^\"]{1,2000})(?<=\S)\"(?!\w)"  # not the inches of a 5" pipe
)
_STOPS = str.maketrans(".!?。！？", "\ue000\ue001\ue002\ue003\ue004\ue005")
_BACK = {to: at for at, to in _STOPS.items()}
_SIGNS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\xa0": " "})
_LEFT_OUT = re.compile(r"\s*(?:\[(?:\.\.\.|…)\]|\(\.\.\.\)|\.\.\.|…)\s*")


def shield_quotations(text: str) -> str:
    """Replace the stops inside quotations, so that no sentence ends there."""
    return _QUOTE.sub(lambda found: found.group().translate(_STOPS), text)


def quotations(text: str) -> list[str]:
    """Return the quotations of a shielded text, unshielded."""
    found = (next(filter(None, groups)) for groups in _QUOTE.findall(text))
    return [quote.translate(_BACK) for quote in found]


def normalize_quote(text: str) -> str:
    """Normalize a text for comparison: single blanks, plain typographic signs, lower case."""
    return " ".join(text.translate(_SIGNS).casefold().split())


def contains_quotation(source: str, quote: str) -> bool:
    """Return whether a normalized source contains a quotation, in which ``...`` may omit text.

    Example:
        >>> source = normalize_quote("The cat sat on the mat.")
        >>> contains_quotation(source, "the cat ... on the  mat,")
        True
    """
    at = 0
    for piece in _LEFT_OUT.split(quote):
        found = re.compile(phrase_pattern(normalize_quote(piece).strip(" .,;:!?"))).search(
            source, at
        )
        if found is None:
            return False
        at = found.end()
    return True
