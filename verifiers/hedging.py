r"""Does a reply stand by a number, or hedge ("5 or 6"), deny ("not 6") or drop it ("6 is wrong")?

Only the words right beside the number are read: a model that is paid for its last number must not
earn by naming one that it does not commit to.
"""

from __future__ import annotations

import re

_REACH = 60  # characters that are read on either side
_HEDGED = re.compile(
    r"(?:\d[^\n]{0,30}\bor|\bbetween\b[^\n]{0,20}\d[^\n]{0,20}\band)\b[^\n\d]{0,20}$", re.IGNORECASE
)
_DENIED = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot)\b|n['’]t\b|≠|!=|\\neq?)\s{0,4}"
    r"(?:(?:be|equal|to|the|number|answer|is)\s{1,4}){0,4}[-+$*\\({]{0,4}$",
    re.IGNORECASE,
)
_DROPPED = re.compile(
    r"[%*$)}\s]{0,4}"
    r"(?:(?:(?:is|was|be|seems|looks)\s{1,4}){0,2}(?:not|wrong|incorrect|false)\b|or\b|\?)",
    re.IGNORECASE,
)


def taken_back(text: str, start: int, end: int) -> bool:
    """Whether the words beside ``text[start:end]``, a number, hedge, deny or drop it.

    Example:
        >>> [taken_back(t, len(t) - 1, len(t)) for t in ("5 or 6", "It isn't 6", "so it is 6")]
        [True, True, False]
    """
    before = text[max(0, start - _REACH) : start]
    after = text[end : end + _REACH]
    return bool(_HEDGED.search(before) or _DENIED.search(before) or _DROPPED.match(after))
