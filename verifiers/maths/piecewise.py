r"""Compare functions by cases: ``\begin{cases} x & x \ge 0 \\ -x & x < 0 \end{cases}``."""

from __future__ import annotations

import re

from .comparison import Comparison, all_of, any_of

_CASES = re.compile(
    r"(?:(?P<head>(?=[A-Za-z\\])[^=<>&]{1,40})=)?\\begin\{cases\}"
    r"(?P<rows>(?:(?!\\begin).)*)\\end\{cases\}",
    re.DOTALL,
)
_SAID = re.compile(r"\\text\{ ?(?:if|when|for|where)? ?\}|^(?:if|when|for) |,$")
_ELSE = re.compile(r"(?:\\text\{)? ?(?:otherwise|else)\.? ?\}?")
_BRACED = re.compile(r"_\{(\w)\}")
_MOST_ROWS = 12


def read_cases(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Parse what precedes the cases, and each value with its condition, empty for all others."""
    found = _CASES.fullmatch(text)
    if found is None:
        return None
    rows = []
    for row in re.split(r"\\\\", found["rows"].strip()):
        sides = row.partition("&") if "&" in row else row.strip(" ,;.").rpartition(",")
        value, _, condition = (part.strip(" ,;.") for part in sides)
        condition = _SAID.sub("", condition.replace("&", "")).strip(" ,;.")
        if value and condition:
            rows.append((value, "" if _ELSE.fullmatch(condition) else condition))
        elif value or condition:
            return None
    if not 1 < len(rows) <= _MOST_ROWS:
        return None
    return _BRACED.sub(r"_\1", found["head"] or ""), tuple(rows)


def same_cases(gold: str, answer: str, on: Comparison, depth: int) -> bool | None:
    """Return whether each case of one is a case of the other, in any order."""
    left, right = read_cases(gold), read_cases(answer)
    if left is None or right is None:
        return None if left is None else False
    if (left[0] and right[0] and left[0] != right[0]) or len(left[1]) != len(right[1]):
        return False
    if any(sum(not condition for _, condition in rows) > 1 for rows in (left[1], right[1])):
        return False
    found = [[_same(row, other, on, depth) for other in right[1]] for row in left[1]]
    return all_of(any_of(line) for line in (*found, *zip(*found, strict=True)))


def _same(
    gold: tuple[str, str], answer: tuple[str, str], on: Comparison, depth: int
) -> bool | None:
    if not (gold[1] and answer[1]):
        # "otherwise" is what the rest of the cases leaves
        return on.same(gold[0], answer[0], depth + 1)
    found = [on.same(x, y, depth + 1) for x, y in zip(gold, answer, strict=True)]
    return all_of(found)
