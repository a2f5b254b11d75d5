r"""Read answers to several parts of a question: ``(a) 3, (b) 5`` and ``(1) 3; (2) 5``."""

from __future__ import annotations

import re

from ..text.markup import unwrap_text

_MARK = re.compile(r"(?<![\w\\)])\(?([a-e]|[1-5]|iv|v|i{1,3})\)(?:[.:]|\\(?:quad|[ ,;]))*\s")
_SERIES = (tuple("abcde"), tuple("12345"), ("i", "ii", "iii", "iv", "v"))


def read_items(text: str) -> tuple[str, ...]:
    """Return the parts in their order; empty if the marks do not begin the text and follow it."""
    if ")" not in text[:16]:
        return ()
    plain = unwrap_text(text).replace("\\quad", " ").replace("\\ ", " ").strip()
    marks = list(_MARK.finditer(plain))
    labels = tuple(mark[1] for mark in marks)
    if len(marks) < 2 or marks[0].start() or not any(labels == s[: len(labels)] for s in _SERIES):
        return ()
    ends = [*(mark.start() for mark in marks[1:]), len(plain)]
    parts = tuple(
        plain[mark.end() : end].strip(" ,;.") for mark, end in zip(marks, ends, strict=True)
    )
    return parts if all(parts) else ()
