"""Read lists of names, numbers and pairs in the spellings of people and models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ..text.markup import PLAIN_SIGNS, unwrap_text
from ..validation import safe_repr


class Unreadable(ValueError):
    """The text has not the form of an answer; the message says why."""


_LATEX_FRAME = re.compile(r"\\(?:begin|end)\{[a-z]{1,12}\*?\}(?:\{[lcr|]{0,40}\})?")
_LATEX_SIGNS = {
    "longrightarrow": "→", "rightarrow": "→", "Rightarrow": "→", "to": "→", "leftarrow": "←",
    "uparrow": "↑", "downarrow": "↓", "quad": " ", "qquad": " ", "left": "", "right": "",
    "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "times": "×", "lt": "<", "gt": ">", "hline": "",
}  # fmt: skip
_LATEX_NAME = re.compile(r"\\([A-Za-z]{1,20})")
_LATEX_ESCAPE = re.compile(r"\\([,;:! {}\[\]_&%#]|\\)")
_LIST_MARK = re.compile(
    r"^[ \t]{0,8}(?:(?:step|move)[ \t]{1,3}\d{1,4}[.):]?[ \t]{1,3}|\d{1,4}[.)][ \t]{1,3}"
    r"|[-*+•>][ \t]{1,3})",
    re.MULTILINE | re.IGNORECASE,
)


def unmarked(text: str) -> str:
    r"""Remove list marks, bold and code; replace LaTeX's and fullwidth signs by plain ones.

    Example:
        >>> unmarked(r"\text{A} \to \text{B}")
        'A → B'
        >>> unmarked("1. up\n2. down")
        'up\ndown'
    """
    if "\\" in text:
        text = _LATEX_NAME.sub(_named, _LATEX_FRAME.sub("", text))  # before A follows \to
        text = _LATEX_ESCAPE.sub(_escaped, unwrap_text(text))
    text = text.translate(PLAIN_SIGNS)
    for mark in ("**", "`", "$", "\ufe0f"):  # the last makes an emoji of an arrow
        text = text.replace(mark, "")
    return _LIST_MARK.sub("", text.strip()).strip().removesuffix(".").rstrip()


def _named(found: re.Match[str]) -> str:
    return _LATEX_SIGNS.get(found[1], found.group())


def _escaped(found: re.Match[str]) -> str:
    mark = found[1]
    return "\n" if mark == "\\" else " " if mark in ",;:! " else mark


_OPEN = {"[": "]", "(": ")", "{": "}"}


def unbracketed(text: str) -> str:
    """Remove brackets around the whole of a text, two pairs at most.

    Example:
        >>> unbracketed("[A, B]"), unbracketed("(0, 1), (0, 2)")
        ('A, B', '(0, 1), (0, 2)')
    """
    for _ in range(2):
        text = text.strip()
        if not text or _OPEN.get(text[0]) != text[-1] or _closes(text) != len(text) - 1:
            break
        text = text[1:-1]
    return text.strip()


def _closes(text: str) -> int:
    """Return the index that closes the bracket at the start of a text, -1 if unclosed."""
    depth, left, right = 0, text[0], _OPEN[text[0]]
    for at, char in enumerate(text):
        depth += (char == left) - (char == right)
        if depth == 0:
            return at
    return -1


ARROWS = "→⟶⇒➔➜➝➞➡↦"
ARROW = rf"[-=]{{0,3}}>|[{ARROWS}]"
_SEPARATOR = re.compile(rf"(?:[\s,;+&]|{ARROW}|[-–—|])+")
_QUOTES = "\"'“”‘’"
_LAST_AND = re.compile(
    r"(?:,\s{0,3}|((?:\A|,)\s{0,3}[^\s,]{1,60})\s{1,3})and\s{1,3}(?=[^\s,]{1,60}\s{0,3}\Z)"
)


def items(text: str, separator: re.Pattern[str] = _SEPARATOR) -> list[str]:
    """Return the items of a list in any usual spelling, without quotes around them.

    Example:
        >>> items('["A", "B"]'), items("A -> B"), items("A, B and C"), items("A-B")
        (['A', 'B'], ['A', 'B'], ['A', 'B', 'C'], ['A', 'B'])
    """
    text = _LAST_AND.sub(lambda found: f"{found[1] or ''}, ", unbracketed(text))
    found = (item.strip(_QUOTES) for item in separator.split(text))
    return [item for item in found if item]


def names(given: list[str], known: Sequence[str], *, run: bool = False) -> list[str]:
    """Return names as they are known; case matters only if two differ in nothing else.

    Args:
        given: the names of a reply.
        known: all that there are.
        run: ``ABD`` alone is ``A, B, D`` if all known names are single characters.

    Raises:
        Unreadable: there is none, or one that is not known.
    """
    exact = {name: name for name in known}
    folded = {name.casefold(): name for name in exact}
    if len(folded) == len(exact):
        exact = folded | exact
    if run and len(given) == 1 and given[0] not in exact and all(len(n) == 1 for n in known):
        given = list(given[0])
    if not given:
        raise Unreadable("there is no name")
    found = []
    for name in given:
        meant = exact.get(name) or exact.get(name.casefold())
        if meant is None:
            raise Unreadable(f"{safe_repr(name, 40)} is not one of the names")
        found.append(meant)
    return found


def whole_numbers(text: str, separator: re.Pattern[str], digits: int = 9) -> list[int]:
    """Return the integers of a list or a sum, each of a number of digits at most.

    Raises:
        Unreadable: there is none, or something else among them.
    """
    found = items(text, separator)
    for item in found:
        if not (item.isascii() and item.isdecimal() and len(item) <= digits):
            raise Unreadable(f"{safe_repr(item, 40)} is no number")
    if not found:
        raise Unreadable("there are no numbers")
    return [int(item) for item in found]


def consists_of(
    part: re.Pattern[str], between: re.Pattern[str], text: str, expected: str
) -> list[tuple[str, ...]]:
    """Return the groups of the parts that a text consists of.

    Raises:
        Unreadable: there is none, or something else among them.
    """
    found, at = [], 0
    while at < len(text):
        match = part.match(text, at)
        gap = match and between.match(text, match.end())
        if match is None or (gap is None and match.end() < len(text)):
            raise Unreadable(f"expected {expected}, got {text[at : at + 40]!r}")
        found.append(tuple(group for group in match.groups() if group is not None))
        at = gap.end() if gap else len(text)
    if not found:
        raise Unreadable(f"expected {expected}")
    return found


def unquoted(text: str) -> str:
    """Remove all quotes."""
    return text.translate(str.maketrans("", "", _QUOTES))


def repeated(given: Sequence[str]) -> str | None:
    """Return the first name that occurs more than once."""
    count = Counter(given)
    return next((name for name in given if count[name] > 1), None)
