r"""Does a reply stand by the number or answer that it names?

It may hedge ("5 or 6", "at least 6"), deny ("not 6"), drop it ("6 is wrong"), ask ("is it 6?"), or
hold it as a part of something else (the 6 of ``x^6``, ``5+6`` and "Step 6"). A model that is paid
for its last number must not earn by naming one that it does not commit to. Only the words right
beside the number are read.
"""

from __future__ import annotations

import re

_REACH = 60  # characters that are read on either side
_MARKS = re.compile(r"(?:\\(?:(?:text|textbf|mathbf|mathrm)\{|\[)?|(?<!\w)\*\*)[$*(\s]{0,4}\Z")
_WORDS = re.compile(r"\\(?:text|textrm|mbox|mathrm)\{([^{}]*)\}")  # \text{not } is the word not
_OPEN = r"[ \t$*(\\]{0,6}\Z"
_ONE_OF_SEVERAL = (
    r"\d[^\n]{0,30}\bor\b[^\n\d]{0,20}\Z"
    r"|\bbetween\b[^\n]{0,20}\d[^\n]{0,20}\band\b[^\n\d]{0,20}\Z"
    r"|\d[%)}$]{0,3}[ \t]{0,3}(?:\band|\bto|\bthrough|[,;|]|[ \t])[ \t$*({\\]{0,6}\Z"
    r"|\d[:–—]\Z"
)
_DENIED = (
    r"(?:\b(?:not|never|neither|nor|cannot)\b|n['’]t\b|≠|!=|\\neq?)\s{0,4}"
    r"(?:(?:be|equal|to|the|number|answer|is)\s{1,4}){0,4}[-+$*\\({]{0,4}\Z"
    rf"|\b(?:wrong|incorrect):?\s{{0,2}}{_OPEN}"
    r"|\b(?:excluding|except|without|unlike|longer|hardly|barely|near|far\s+from|instead\s+of|"
    r"(?:other|rather)\s+than|alternatively|(?:any|anything|all|nothing)\s+but)\b" + _OPEN
)
_DOUBTED = r"\b(?:perhaps|maybe|possibly|probably|(?:could|might|may)\s+be)\b" + _OPEN
_BOUND = (
    r"\b(?:exceeds?|over|under|above|below|up\s+to|at\s+(?:least|most)|"
    r"(?:less|more|greater|fewer|smaller|larger|bigger|higher|lower)\s+than)\b" + _OPEN
)
_UNSOLVED = r"\d\s{0,3}[A-Za-z]\s{0,3}=[ \t$*({]{0,4}\Z"  # 42x = 5 does not say that x is 5
_NAMED = re.compile(r"(?<![A-Za-z])\$?[A-Za-z](?:_\{?\w\}?)?\$?\s{0,3}=[ \t$*({]{0,4}\Z")
_PART_OF = (
    r"\b(?:negative|minus|plus|times|(?:multiplied|divided)\s+by|log|ln|sin|cos|tan|root\s+of|"
    r"step|problem|question|equation|eq\.|example|exercise|case|section|figure)" + _OPEN
    + r"|(?:[<≤≥±√×÷~|\[]|(?<!>)>)\s{0,3}[$*(\\]{0,3}\Z"
    r"|(?:(?<![A-Za-z])[A-Za-z]|[\d)}])\s{0,3}(?:[-+−–/]|\*(?!\*))[ \t$(]{0,3}\Z"
    r"|\\(?:pm|mp|times|cdot|div|sqrt|le|leq|ge|geq|lt|gt|log|ln|sin|cos|tan)\s{0,3}[$({]{0,3}\Z"
    r"|(?:[\^_{]|(?<!\\)[A-Za-z]\(?|\w\*\*)\Z"
)  # fmt: skip
_BEFORE = re.compile(
    "|".join((_ONE_OF_SEVERAL, _DENIED, _DOUBTED, _BOUND, _PART_OF, _UNSOLVED)), re.IGNORECASE
)
_DENIED_NAME = re.compile(f"{_DENIED}|{_DOUBTED}", re.IGNORECASE)
_AFTER = re.compile(
    r"[%*$)}\s(]{0,4}(?:(?:(?:is|was|be|seems|looks)\s{1,4}){0,2}(?:not|wrong|incorrect|false)\b"
    r"|or\b|\?)"
    r"|[_²³√π]|\^(?!\{?\s?\\circ)|[A-Za-z](?![A-Za-z])|\s?[xyzn](?![A-Za-z'’])|\([A-Za-z0-9]"
    r"|\s{0,3}(?:[+×·<>]|\*[\w(]|\s\*\s|[-−/]\s{0,3}[A-Za-z](?![A-Za-z])"
    r"|\\(?!text|mathrm|circ|degree|q?quad|[^A-Za-z]))",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:(?:wrong|incorrect|false|not|if|suppose|assume|assuming|whether|that)\s+"
    r"(?:the|an|a|my|our)?\s*|(?:wrong|incorrect|false)\s+"
    r"|(?:one|you|some|someone|people|many|students?)\s+(?:(?:may|might|could|would)\s+)?"
    r"(?:think|say|guess|believe)\s+(?:that\s+)?(?:the\s+)?)"
    r"(?:final\s+|correct\s+)?\Z",
    re.IGNORECASE,
)
_RETRACTED = re.compile(
    r"[\s.,!*)$]{0,6}(?:(?:but|no|wait|actually|hmm|oops|sorry|correction)\b"
    r"|(?-i:or)\s+\S|or\s+(?:something|some|any|anything|maybe|perhaps|not|whatever)\b"
    r"|(?:that|this|it|which)(?:\s+is|['’]s)\s+(?:wrong|incorrect|not|false|mistaken)\b)",
    re.IGNORECASE,
)


def taken_back(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]``, a number, is not what the reply commits to.

    Example:
        >>> [taken_back(t, len(t) - 1, len(t)) for t in ("5 or 6", "It isn't 6", "so it is 6")]
        [True, True, False]
    """
    before = _WORDS.sub(r" \1 ", text[max(0, start - _REACH) : start])
    after = text[end : end + _REACH]
    if _BEFORE.search(_MARKS.sub("", before)) or _AFTER.match(after):
        return True
    named = _NAMED.search(before)  # not x = 5
    return named is not None and bool(_DENIED_NAME.search(before[: named.start()]))


def supposed(text: str, start: int) -> bool:
    """Whether the words before ``text[start:]``, "answer is ...", make it a guess or a denial."""
    return bool(_SUPPOSED.search(text[max(0, start - _REACH) : start]))


def retracted(text: str, end: int) -> bool:
    """Whether the words after an answer that ends at ``end`` question it or take it back."""
    after = text[end : end + _REACH]
    return after.startswith("?") or bool(_RETRACTED.match(after))


_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|cannot\s+be|isn['’]t)|(?:wrong|incorrect)\s+answer\s+(?:is|would\s+be):?)"
    r"(?:\s+equal\s+to)?[\s$*]{0,4}\Z",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"[\s$*)]{0,4}(?:\?[\s*]{0,3}not?\b|is\s+(?:wrong|incorrect|false|not\s+(?:right|correct|it|the))\b"
    r"|\.?\s{0,3}(?:(?:but|no|wait|actually|hmm|oops|sorry),?\s{1,3}){0,2}"
    r"(?:that|this|it|which)(?:\s+is|\s+was|['’]s)\s+(?:wrong|incorrect|false|mistaken|"
    r"not\s+(?:right|correct))\b)",
    re.IGNORECASE,
)


def denied(text: str, start: int, end: int) -> bool:
    """Whether the words beside a box, ``text[start:end]``, say that it is not the answer."""
    before = text[max(0, start - _REACH) : start]
    return bool(_DENIED_BEFORE.search(before) or _DENIED_AFTER.match(text, end, end + _REACH))


def left_open(text: str, start: int, end: int) -> bool:
    """Whether the words beside a formula, ``text[start:end]``, doubt it, deny it or ask."""
    before = text[max(0, start - _REACH) : start]
    doubt = _DENIED_NAME.search(before) or text[end : end + 1] == "?"
    return bool(doubt) or denied(text, start, end)
