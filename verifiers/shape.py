r"""What kind of thing an answer is: a number, a list, an interval, an equation, words, ...

Only the outermost structure is read; the parts stay text. Texts are respelled and squeezed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction

from .arithmetic import exact_value
from .latex import split_top
from .number import Number, read_respelled


class Kind(Enum):
    """The kinds of answers."""

    NUMBER = auto()
    LIST = auto()
    SET = auto()
    TUPLE = auto()
    UNION = auto()
    MATRIX = auto()
    EQUATION = auto()
    RELATION = auto()
    BASE = auto()
    RATIO = auto()
    EMPTY = auto()
    WORDS = auto()
    EXPRESSION = auto()


@dataclass(frozen=True, slots=True)
class Shape:
    """An answer by its outermost structure.

    Attributes:
        kind: what it is.
        text: all of it.
        parts: its elements, sides or cells.
        mark: what tells two of a kind apart: brackets, the matrix and its rows, a base.
        number: its value, where it is a number.
    """

    kind: Kind
    text: str
    parts: tuple[str, ...] = ()
    mark: str = ""
    number: Number | None = None


_RELATION = re.compile(r"[<>]|\\(?:le|ge|ne|equiv)(?![A-Za-z])")
_MATRIX = re.compile(r"\\begin\{([pv]matrix)\}(.*)\\end\{\1\}", re.DOTALL)
_BASE = re.compile(r"([0-9][0-9A-Z]*|[A-Z][0-9A-Z]+)_\{?(\d{1,2})\}?")
_RATIO = re.compile(r"\d{1,9}(?::\d{1,9})+")
MEMBER = re.compile(r"[a-z](?:_\{?\w\}?)?\\in ?(?![A-Za-z])")
_NOTHING = frozenset(
    ("\\emptyset", "\\{\\}", "no solution", "no solutions", "no real solution", "no real solutions")
)


def read_shape(text: str) -> Shape:
    """Read the outermost structure of a respelled, squeezed text."""
    number = read_respelled(text)
    if number is None:
        value = exact_value(text)
        number = None if value is None else Number(value)
    if number is not None:
        return Shape(Kind.NUMBER, text, number=number)
    if text == "\\mathbb{R}":
        return Shape(Kind.TUPLE, text, ("-\\infty", "\\infty"), "()")
    if text in _NOTHING or words_of(text) in _NOTHING:
        return Shape(Kind.EMPTY, text)
    text = MEMBER.sub("", text, count=1) if MEMBER.match(text) else text
    return _structure(text) or _atom(text)


def _structure(text: str) -> Shape | None:
    if text.count("\\pm") == 1:
        return Shape(Kind.LIST, text, (_signed(text, "+"), _signed(text, "-")))
    parts = _split(text)
    if len(parts) > 1:
        return Shape(Kind.LIST, text, parts)
    pieces = text.split("\\cup")
    if len(pieces) > 1:
        return Shape(Kind.UNION, text, tuple(pieces))
    if _RELATION.search(text):
        return Shape(Kind.RELATION, text)
    sides = split_top(text, "=")
    if len(sides) > 1:
        return Shape(Kind.EQUATION, text, tuple(sides))
    matrix = _MATRIX.fullmatch(text)
    if matrix:
        rows = [row for row in matrix.group(2).split("\\\\") if row.strip()]
        cells = tuple(cell.strip() for row in rows for cell in row.split("&"))
        return Shape(Kind.MATRIX, text, cells, f"{matrix.group(1)} {len(rows)}")
    return _bracketed(text)


def _bracketed(text: str) -> Shape | None:
    if text.startswith("\\{") and text.endswith("\\}"):
        inside = text[2:-2]
        opens_again = inside.find("\\}") < inside.find("\\{")  # \{1\},\{2\} is not one set
        return None if opens_again else Shape(Kind.SET, text, _split(inside))
    if len(text) < 3 or text[0] not in "([{" or text[-1] not in ")]}":
        return None
    if not _closes_at_end(text):
        return None
    parts = _split(text[1:-1])
    if text[0] == "{":
        return read_shape(text[1:-1]) if text[-1] == "}" else None
    if len(parts) > 1 or text[0] == "[":
        return Shape(Kind.TUPLE, text, parts, text[0] + text[-1])
    return read_shape(text[1:-1]) if text[0] == "(" and text[-1] == ")" else None


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return i == len(text) - 1
    return False


def _atom(text: str) -> Shape:
    base = _BASE.fullmatch(text)
    if base:
        return Shape(Kind.BASE, text, (base.group(1).lstrip("0") or "0",), base.group(2))
    if _RATIO.fullmatch(text):
        return Shape(Kind.RATIO, text, tuple(text.split(":")))
    if words_of(text):
        return Shape(Kind.WORDS, text)
    return Shape(Kind.EXPRESSION, text)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in split_top(text, ",;") if part.strip())


def _signed(text: str, sign: str) -> str:
    before, _, after = text.partition("\\pm")
    after = after.lstrip()
    alone = not before or before[-1] in "=({,"
    return before + after if alone and sign == "+" else before + sign + after


_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_WORDS = re.compile(r"[A-Za-z][A-Za-z' .\-]*")


def words_of(text: str) -> str:
    r"""The words of a text that is nothing but words, in lower case, else the empty string.

    Words stand in ``\text{}``, or are bare and have four letters or more: ``abc`` may be a
    product.
    """
    plain = _TEXT.sub(r"\1", text)
    if not _WORDS.fullmatch(plain):
        return ""
    if plain == text and max((len(word) for word in plain.split()), default=0) < 4:
        return ""
    return " ".join(plain.lower().strip(" .").split())


def ratio_value(shape: Shape) -> Fraction | None:
    """The value of a ratio; ``None`` for a time of day such as 10:30, and for three terms."""
    if len(shape.parts) != 2 or len(shape.parts[1]) == 2 or int(shape.parts[1]) == 0:
        return None
    return Fraction(int(shape.parts[0]), int(shape.parts[1]))


_ORDER = re.compile(r"(<|>|\\[lg]e(?![A-Za-z]))")
_VARIABLE = re.compile(r"[A-Za-z](?:_\{?\w\}?)?|\\(?:alpha|beta|theta|phi|lambda|mu)")


def as_interval(text: str) -> Shape | None:
    r"""An inequality in one variable as the interval that it describes.

    ``x>3`` is ``(3,\infty)`` and ``5\ge x>-2`` is ``(-2,5]``; ``None`` for the rest.
    """
    pieces = [piece.strip() for piece in _ORDER.split(text)]
    if len(pieces) not in {3, 5} or "=" in text:
        return None
    if {sign in {">", "\\ge"} for sign in pieces[1::2]} == {True}:  # from the least to the greatest
        turned = {">": "<", "\\ge": "\\le"}
        pieces = [turned.get(piece, piece) for piece in reversed(pieces)]
    if any(sign in {">", "\\ge"} for sign in pieces[1::2]):
        return None
    if len(pieces) == 3 and _VARIABLE.fullmatch(pieces[0]):
        pieces = ["-\\infty", "<", *pieces]
    elif len(pieces) == 3:
        pieces = [*pieces, "<", "\\infty"]
    low, opens, name, closes, high = pieces
    if not _VARIABLE.fullmatch(name) or not low or not high or name in low or name in high:
        return None
    mark = ("(" if opens == "<" else "[") + (")" if closes == "<" else "]")
    return Shape(Kind.TUPLE, text, (low, high), mark)
