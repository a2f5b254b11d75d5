"""Short answer: is the reply one of the known answers, word for word, or nearly?"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any, Literal

from .text.answer import MAX_ANSWER
from .text.markup import strip_markup
from .text.read_answer import read_answer
from .text.words import strip_invisible
from .validation import safe_repr
from .verdict import Verdict
from .verifier import Verifier

_RULES = ("answer", "boxed", "phrase", "fence", "last_line")
_ARTICLES = frozenset(("a", "an", "the"))
_OPEN = frozenset(("or", "not", "no", "never", "neither", "nor", "maybe", "perhaps", "either"))
_JOINED = re.compile(r"(?<!\d)[.'’‘`´]|[.'’‘`´](?!\d)|(?<=\d),(?=\d{3}(?!\d))")
_TOKEN = re.compile(
    r"(?<![\w-])-\d+(?:\.\d+)?|\d+\.\d+"
    r"|[^\W_]*[^\W\d_][^\W_]*"
    r"(?:(?:\+{1,2}|(?<!\d)#)(?!\w)|-(?=\Z|[.,;)\s](?! ?(?:and|or|to)\b)))?|[^\W_]+"
    r"|(?:(?<=\w)|(?<=\w )|(?=.=? ?[-$€£¥]?\d))(?<![-=])[<>≤≥≠]=?|(?<=\d)[/^*×÷+](?=\d)"
)
_DATE = re.compile(r"\d{1,4}/\d{1,2}/\d{1,4}|\d{4}/\d{2,4}")
_SPACED = re.compile(r"(?<=\d) ([/^*×÷+]) (?=\d)")
_FORMULA = re.compile(r"(?<!\\)\$([^$]*)(?<!\\)\$")
_SCRIPT = re.compile(r"(?:(\^)|(?<=[^\W_])_)\{?(-?\d{1,9})\}?")  # 10^{6}, H_2O
_MARK = re.compile(r"[$€£¥₹₩₽]|(?<=\d)\s?[%‰°]")


class ShortAnswer(Verifier):
    r"""Exact match or token F1 with the nearest of the known answers, as for SQuAD.

    Case, punctuation and the articles a, an, the are ignored (Rajpurkar et al., 2016, section 6.1),
    with these corrections: signs that stand at a word or between numbers are kept (``C++``, ``A-``,
    ``-5``, ``3.5``, ``2/3``, ``x < 5``); of ``$``, ``%`` and the like another one is wrong, none is
    not; a hyphen is a space; an answer of articles alone ("The The") keeps them; accents count,
    their encoding does not. An answer of more than ``2 n + 3``
    words, if the longest known one has ``n``, earns nothing, so that copying a passage does not
    pay. Nor does one that asks, or adds "or" or "not".

    The answer is the last ``<answer>``, else the last ``\boxed{}``, else what follows "answer
    is", else the last line.

    Args:
        score: ``"em"``: 1.0 or nothing. ``"f1"``: the harmonic mean of the shares of the answer's
            words that are right and of the right words that are in the answer.

    Raises:
        ValueError: ``score`` is neither.

    Example:
        >>> ShortAnswer().verify("The answer is the Eiffel Tower.", ["Eiffel tower"]).score
        1.0
        >>> ShortAnswer(score="f1").verify("Tower of Eiffel", "Eiffel Tower").score
        0.8
    """

    def __init__(self, *, score: Literal["em", "f1"] = "em") -> None:
        if score not in ("em", "f1"):
            raise ValueError(f"score must be 'em' or 'f1', got {score!r}")
        self.score = score

    def check_reference(self, reference: Any) -> str | None:
        """Require texts with a letter or digit."""
        for answer in reference if isinstance(reference, list) else [reference]:
            if not isinstance(answer, str):
                return f"an answer must be text, got {safe_repr(answer)}"
            if len(answer) > MAX_ANSWER:
                return f"an answer has at most {MAX_ANSWER} characters, got {len(answer)}"
            if not _tokens(answer):
                return f"an answer needs a letter or a digit, got {safe_repr(answer)}"
        return None

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the first known answer."""
        return f"<answer>{_known(reference)[0]}</answer>"

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Compare word by word with each known answer; the best counts."""
        found = read_answer(reply, _RULES)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        if "~~" in found.text:
            return Verdict.unparseable("the answer is struck out", extracted=found.text)
        known = [
            answer for answer in _known(reference) if not _marked_otherwise(answer, found.text)
        ]
        if not known:
            return Verdict.wrong("another currency or unit", extracted=found.text)
        golds, given = [_tokens(answer) for answer in known], _tokens(found.text)
        if found.text.endswith("?") and not any(a.endswith("?") for a in known):
            return Verdict.wrong("asks", extracted=found.text)
        if len(given) > 2 * max(map(len, golds)) + 3:
            return Verdict.wrong(f"{len(given)} words are no short answer", extracted=found.text)
        scores = [_f1(given, gold) for gold in golds]
        best = max(scores)
        if given in golds or (self.score == "f1" and best == 1.0):
            return Verdict.correct("a known answer", extracted=found.text)
        if self.score == "em" or best == 0.0:
            return Verdict.wrong("no known answer", extracted=found.text)
        if _OPEN & set(given) - set(golds[scores.index(best)]):
            return Verdict.wrong("leaves the answer open or denies it", extracted=found.text)
        reason = f"F1 {best:.2f} with a known answer"
        return Verdict.wrong(reason, score=best, extracted=found.text)


def _known(reference: Any) -> list[str]:
    if isinstance(reference, list):
        return reference or ["unanswerable"]
    return [reference]


def _tokens(text: str) -> list[str]:
    """Return normalized words and numbers, without articles unless there is nothing else."""
    text = _SCRIPT.sub(r"\1\2", strip_markup(strip_invisible(text)))
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = plain.replace("−", "-").replace("–", "-").replace("⁄", "/")
    plain = _DATE.sub(lambda date: date[0].replace("/", " "), _JOINED.sub("", plain))
    for written, meant in (("<=", "≤"), (">=", "≥"), ("!=", "≠")):
        plain = plain.replace(written, meant)
    found = _TOKEN.findall(_SPACED.sub(r"\1", plain))
    return [token for token in found if token not in _ARTICLES] or found


def _marked_otherwise(known: str, answer: str) -> bool:
    """Return whether both texts have a sign of a currency or unit, and not the same."""
    signs = [
        {mark.strip() for mark in _MARK.findall(_FORMULA.sub(r"\1", text))}
        for text in (known, answer)
    ]
    return all(signs) and signs[0] != signs[1]


def _f1(given: list[str], gold: list[str]) -> float:
    """Return the token F1 of two bags of words, in [0, 1]."""
    common = (Counter(given) & Counter(gold)).total()
    return 2 * common / (len(given) + len(gold))
