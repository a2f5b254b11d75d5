r"""Read ``\boxed{}``: which boxes a reply has, and the text beside the one that counts."""

from __future__ import annotations

import functools
import re

from .answer import Answer
from .beside import sign_and_unit, unit_after
from .hedging import OR_OTHER, is_denied
from .markup import strip_math_delimiters, unwrap_text

_BOX_TOKEN = re.compile(r"\\(?:boxed|fbox)\s{0,8}\{|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}([A-Za-z]|[0-9]{1,20})(?![A-Za-z0-9.,/^_{\\]*\w)")
_BETWEEN_BOXES = re.compile(
    r"(?:[\s$,;&|]|[A-Za-z](?:_\{?\w\}?)?\s?=|\\[()\[\],;!: ]|\\(?:q?quad|mid|vert)|and"
    r"|maybe|perhaps|possibly"
    r"|or(?:\s(?:else|maybe|perhaps|possibly|even)|(?:\s(?:it|that))?\s(?:is|be|may\sbe|could\sbe)){0,3})*"
)
_WIDEST_GAP = 60
_AMOUNT = re.compile(  # of the box beside which a unit is read: it has none of its own
    r"(?:[\d.+*/^_{}() −-]|(?<=\d),(?=\d{3})|\\[,! ]"
    r"|\\(?:[dt]?frac|sqrt|pi|times|cdot|left|right)(?![A-Za-z]))+"
)
_OTHER_OR = re.compile(  # 5 or \boxed{6}
    r"(?<![\w.,/\\^}])(-?\d[\d,./]{0,20}(?:\\?%)?|[A-H])[$)]{0,2},?\s{1,3}or\s{1,3}\$?\Z"
)


def boxes(text: str) -> tuple[list[tuple[int, int, str]], bool]:
    r"""Return the boxes of a text that are not inside another.

    Returns:
        ``(start, end, content)`` of each closed box, in order; and whether one opens after the
        last of them and never closes.
    """
    first = text.find("\\")  # one character is found ten times as fast as several
    start = text.find("\\boxed", first) if first >= 0 else -1
    framed = text.find("\\fbox", first, start if start >= 0 else None) if first >= 0 else -1
    start = start if framed < 0 else framed
    if start < 0:
        return [], False
    depth: list[int] = []  # one entry per open brace: where its box began, or -1
    bodies: list[int] = []
    closed: list[tuple[int, int, int, int]] = []  # box and content; nested ones are not cut out
    for token in _BOX_TOKEN.finditer(text, start):
        mark = token.group()
        if mark == "}":
            if not depth:
                continue
            began, body = depth.pop(), bodies.pop()
            if began >= 0:
                while closed and closed[-1][0] > began:  # the outer box holds the inner ones
                    closed.pop()
                closed.append((began, token.end(), body, token.start()))
        elif mark == "{" or (mark[-1] == "{" and len(mark) > 2):
            depth.append(token.start() if len(mark) > 2 else -1)
            bodies.append(token.end())
    last = closed[-1][0] if closed else -1
    contents = [(began, end, text[left:right]) for began, end, left, right in closed]
    return contents, any(began > last for began in depth)


def boxed(text: str) -> Answer | None:
    r"""Return the answer of the last box, with the sign or the unit beside it.

    ``-\boxed{5}`` is -5 and ``\boxed{5}\%`` is 5%. A box that is part of a larger formula, such as
    ``2\boxed{5}`` or ``\boxed{5}^2``, is no answer.
    """
    found = last_box(text)
    return None if found is None else found[0]


def last_box(text: str) -> tuple[Answer, int] | None:
    """Return the result of :func:`boxed` and the end of the last box."""
    closed, unclosed = boxes(text)
    if unclosed:
        return Answer(None, reason="the last box is never closed"), len(text)
    if not closed:
        bare = [(f.start(), f.end(), f[1]) for f in _BARE_BOX.finditer(text)]
        closed = bare[-1:]
    if not closed:
        return None
    run = [closed[-1]]
    for box in reversed(closed[:-1]):
        gap = text[box[1] : run[-1][0]]
        if len(gap) > _WIDEST_GAP or not _BETWEEN_BOXES.fullmatch(unwrap_text(gap)):
            break
        run.append(box)
    start, end = run[-1][0], run[0][1]
    if is_denied(text, start, end):
        return Answer(None, reason="the boxed answer is denied or taken back"), end
    around = sign_and_unit(text, start, end)
    if around is None:
        return Answer(None, reason="the box is a part of a larger formula"), end
    other = None
    contents = list(dict.fromkeys(unboxed(content) for _, _, content in reversed(run)))
    if len(contents) == 1 or len(run) == 1:
        contents = [_joined(around[0], contents[0], around[1])]
        after = unwrap_text(text[end : end + _WIDEST_GAP])
        other = OR_OTHER.match(after) if len(run) == 1 else None
        contents += [other[1]] if other else []
        first = _OTHER_OR.search(unwrap_text(text[max(0, start - _WIDEST_GAP) : start]))
        if first and len(run) == 1 and not other:
            other, contents = first, [first[1], *contents]
    elif around != ("", ""):
        contents[0] = _joined(around[0], contents[0], "")
        contents[-1] = _joined("", contents[-1], around[1])
    amount = len(contents) == 1 and len(contents[0]) < 200 and _AMOUNT.fullmatch(contents[0])
    unit = unit_after(text, end) if amount else ""
    return Answer((" or " if other else " , ").join(contents), unit=unit), end


def _joined(before: str, content: str, after: str) -> str:
    """Return a content with its sign and its unit; a sign before a sum needs brackets."""
    if before and content.strip() and re.search(r"(?<!\A)[-+−]", content.strip()):
        content = f"({content})"
    return f"{before}{content}{after}"


@functools.lru_cache(maxsize=4096)
def boxed_or_bare(text: str) -> str:
    r"""Return a reference given alone, in ``$...$``, or as a solution that boxes it."""
    found = boxed(text)
    if found is not None and found.text is None:  # prose around a box is not judged in a reference
        closed, _unclosed = boxes(text)
        return unboxed(closed[-1][2] if closed else text)
    return unboxed(text if found is None or found.text is None else found.text)


def unboxed(content: str) -> str:
    r"""Remove the ``$...$`` and the boxes around all of a text."""
    content = strip_math_delimiters(content.strip())
    for _ in range(4):
        if "box" not in content:
            break
        inner, _unclosed = boxes(content)
        if len(inner) != 1 or inner[0][:2] != (0, len(content)):
            break
        content = strip_math_delimiters(inner[0][2].strip())
    return content
