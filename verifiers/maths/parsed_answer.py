r"""The kind of an answer: a number, a list, an interval, an equation, words, ...

Only the outermost structure is read; the parts stay text. Texts are respelled and squeezed.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from enum import Enum, auto

from ..text.markup import blank_text, unwrap_text
from .date_time import DateTime, read_clock, read_date_time
from .expression import read_expression
from .latex import split_top
from .number import Number, read_respelled, without_unit
from .variables import renamed
from .wording import is_word, read_compound, read_count, words_and_values


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
    CONGRUENCE = auto()
    MOMENT = auto()
    INFINITE = auto()
    EMPTY = auto()
    WORDS = auto()
    PROSE = auto()
    EXPRESSION = auto()


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer by its outermost structure.

    Attributes:
        kind: what it is.
        text: all of it.
        parts: its elements, sides or cells.
        mark: what distinguishes two of a kind: brackets, the matrix and its rows, a base.
        number: its value, if it is a number.
        moment: the date or time that it is.
    """

    kind: Kind
    text: str
    parts: tuple[str, ...] = ()
    mark: str = ""
    number: Number | None = None
    moment: DateTime | None = None


_RELATION = re.compile(r"[<>]|\\(?:le|ge|ne|equiv)(?![A-Za-z])")
_UNION_NAMED = re.compile(r"[A-Z](?:\\c[au]p ?[A-Z]){1,3}=")
_ENCLOSED = re.compile(r"\([^()]*\)")
_MATRIX = re.compile(
    r"(?P<factor>[^=<>,]{0,80}?)\\begin\{(?P<kind>[pv]matrix)\}(?P<cells>.*)\\end\{(?P=kind)\}"
    r"(?P<turned>\^\{?(?:T|\\top|\\intercal)\}?)?",
    re.DOTALL,
)
_EXCLUDED = re.compile(r"[a-z]\\ne(?![A-Za-z])")
_CONGRUENCE = re.compile(
    r"(?:(?P<left>[^=]+?)\\equiv)?(?P<right>[^=]+?)(?:,?\(?\\mod|,?\(?mod) ?"
    r"\{?(?P<modulus>\d{1,18})\}?\)?"
)
_BASE = re.compile(r"([0-9][0-9A-Z]*|[A-Z][0-9A-Z]+|\([0-9][0-9A-Z]*\))_\{?(\d{1,2})\}?")
MEMBER = re.compile(r"(?:[a-z](?:_\{?\w\}?)?|\([a-z](?:,[a-z])+\))\\in ?(?![A-Za-z])")
_TURNED_ROW = re.compile(r"([(\[].*[)\]])\^\{?(?:T|\\top|\\intercal)\}?", re.DOTALL)
_FACTOR = re.compile(  # of a tuple
    r"([-+]?(?:\\(?:frac|sqrt)(?![A-Za-z])|[\d.{}/])*)(?<!\A) ?(?:\\cdot|\\times)? ?(?=\()"
)
_NOTHING = frozenset((
    "\\emptyset", "\\{\\}", "no solution", "no solutions", "no real solution",
    "no real solutions", "empty set", "the empty set", "there is no solution",
    "there are no solutions", "no such solution", "no roots", "no real roots", "none",
    "no solution exists", "no solutions exist",
))  # fmt: skip
_MOST_SIGNS, _DEEPEST = 4, 20
_REALS = re.compile(
    r"\\mathbb\{R\}(?:[\^_]\{?(?P<sign>[-+]|[<>]0|\\ge ?0)\}?)?"
    r"|(?:set of )?(?:all )?(?:the )?(?:(?P<word>positive|negative|non-?negative) )?"
    r"real(?:s| numbers)"
)
_OF_SIGN = {
    **dict.fromkeys(("+", ">0", "positive"), ("0", "\\infty", "()")),
    **dict.fromkeys(("-", "<0", "negative"), ("-\\infty", "0", "()")),
    **dict.fromkeys(("\\ge0", "\\ge 0", "nonnegative", "non-negative"), ("0", "\\infty", "[)")),
    "": ("-\\infty", "\\infty", "()"),
}
_SET_OF = re.compile(r"\\\{(?P<name>[a-z])(?:\\in ?\\mathbb\{R\})?[|:](?P<rule>[^{}|]+)\\\}")
_INFINITE = {
    "\\infty": "+", "+\\infty": "+", "-\\infty": "-", "infinity": "+", "\\text{infinity}": "+",
    "-infinity": "-", "\\text{-infinity}": "-", "\\text{negative infinity}": "-",
}  # fmt: skip


# \text{ boys, } is a word and a comma, and so is \text{, remainder }
_INNER_COMMA = re.compile(r"\\text\{ ?(,?)([^{},]+)(,?) ?\}")


@functools.lru_cache(maxsize=4096)
def parse_answer(text: str) -> ParsedAnswer:
    """Read the outermost structure of a respelled, squeezed text."""
    if text.isdecimal() and (number := read_respelled(text)):
        return ParsedAnswer(Kind.NUMBER, text, number=number)
    if "," in text and "\\text" in text:
        text = _INNER_COMMA.sub(r"\1\\text{\2}\3", text)
    moment = read_date_time(text)
    if moment is not None:
        return ParsedAnswer(Kind.MOMENT, text, moment=moment)
    number = read_respelled(text) or read_compound(text) or _computed(text)
    if number is not None:
        return ParsedAnswer(Kind.NUMBER, text, number=number)
    if text.lower() in _INFINITE:
        return ParsedAnswer(Kind.INFINITE, text, mark=_INFINITE[text.lower()])
    text = MEMBER.sub("", text, count=1) if MEMBER.match(text) else text
    words = words_of(text)
    reals = _REALS.fullmatch(words or text)
    if reals:
        low, high, mark = _OF_SIGN[reals["sign"] or reals["word"] or ""]
        return ParsedAnswer(Kind.TUPLE, text, (low, high), mark)
    if words == "infinitely many":
        return ParsedAnswer(Kind.INFINITE, text, mark="+")
    if text in _NOTHING or words in _NOTHING:
        return ParsedAnswer(Kind.EMPTY, text)
    return _structure(text) or _atom(text)


def _computed(text: str) -> Number | None:
    """Return plain arithmetic, such as ``24+1``, by its exact value."""
    tree = read_expression(text) if "," not in text else None
    return Number(tree.value) if tree is not None and tree.kind == "number" else None


def _structure(text: str) -> ParsedAnswer | None:
    congruence = _CONGRUENCE.fullmatch(text) if "mod" in text else None
    if congruence and "mod" not in congruence["right"]:
        return _congruence(text, congruence)
    described = _SET_OF.fullmatch(text)
    if described and described["name"] in described["rule"]:
        rule = parse_answer(renamed(described["rule"], {described["name"]: "x"}))
        if _RELATION.search(described["rule"]) and rule.kind in {Kind.RELATION, Kind.LIST}:
            return replace(rule, mark="{}")  # {x | x < 3}
    members = [sign for part in _split(text) for sign in _signs(part)]
    if len(members) > 1 and (excluded := _EXCLUDED.match(members[0])):  # x \ne 0, 1
        bare = not any(_RELATION.search(member) or "=" in member for member in members[1:])
        members[1:] = [f"{excluded[0]} {m}" if bare else m for m in members[1:]]
    if len(members) > 1:
        return ParsedAnswer(Kind.LIST, text, tuple(members))
    pieces = text.split("\\cup")
    if len(pieces) > 1 and not _UNION_NAMED.match(text):
        return ParsedAnswer(Kind.UNION, text, tuple(pieces))
    if _RELATION.search(_ENCLOSED.sub("", text)):  # not P(X>2)=1
        links = [link.strip() for link in _ORDER.split(text)]
        if "\\text" in text and all(map(words_of, links[::2])):  # Ann < Bob < Carl
            forward = "<" in links or "\\le" in links
            turned = [_TURNED.get(link, link) for link in reversed(links)]
            return ParsedAnswer(Kind.PROSE, text, tuple(links if forward else turned))
        return ParsedAnswer(Kind.RELATION, text)
    sides = split_top(text, "=")
    if len(sides) > 1:
        return ParsedAnswer(Kind.EQUATION, text, tuple(sides))
    matrix = _MATRIX.fullmatch(text) if "matrix" in text else None
    return _matrix(matrix) if matrix else _bracketed(text)


def _congruence(text: str, found: re.Match[str]) -> ParsedAnswer:
    r"""Read a congruence; ``n\equiv1,5\mod{6}`` and ``n\equiv\pm1\mod{6}`` are two."""
    left, modulus = found["left"] or "", found["modulus"]
    rests = [sign for part in _split(found["right"]) for sign in _signs(part)]
    if left and len(rests) > 1 and "\\equiv" not in found["right"]:
        parts = tuple(f"{left}\\equiv {rest}\\mod{{{modulus}}}" for rest in rests)
        return ParsedAnswer(Kind.LIST, text, parts)
    return ParsedAnswer(Kind.CONGRUENCE, text, (left, found["right"]), modulus)


def _matrix(found: re.Match[str]) -> ParsedAnswer | None:
    if "\\begin" in found["cells"]:
        return None
    rows = [
        [cell.strip() for cell in row.split("&")]
        for row in found["cells"].split("\\\\")
        if row.strip()
    ]
    if found["turned"]:
        if len({len(row) for row in rows}) != 1:
            return None
        rows = [list(column) for column in zip(*rows, strict=True)]
    factor = found["factor"].removesuffix("\\cdot").removesuffix("\\times").removesuffix("*")
    if factor and found["kind"] != "pmatrix":
        return None
    if factor in {"-", "+"}:
        rows = [[f"{factor}({cell})" for cell in row] for row in rows]
    elif factor:
        if read_expression(factor) is None:
            return None
        rows = [[f"({factor})({cell})" for cell in row] for row in rows]
    cells = tuple(cell for row in rows for cell in row)
    return ParsedAnswer(Kind.MATRIX, found.string, cells, f"{found['kind']} {len(rows)}")


def _signs(text: str) -> list[str]:
    r"""Expand ``1 \pm x`` to both values, ``(\pm 1,\pm 2)`` to four; ``\mp`` follows ``\pm``."""
    if "\\pm" not in text:
        text = text.replace("\\mp", "\\pm")
    upper, lower = text.count("\\pm"), text.count("\\mp")
    if not 1 <= upper <= _MOST_SIGNS or lower > 1 or upper + lower > max(2, upper):
        return [text]
    if text.startswith("\\{"):
        return [text]
    plus, minus = _signed(text, "\\pm", "+"), _signed(text, "\\pm", "-")
    if upper > 1:
        return [*_signs(plus), *_signs(minus)]
    return [_signed(plus, "\\mp", "-"), _signed(minus, "\\mp", "+")] if lower else [plus, minus]


def _bracketed(text: str) -> ParsedAnswer | None:
    if text.startswith("\\{") and text.endswith("\\}"):
        inside = text[2:-2]
        opens_again = inside.find("\\}") < inside.find("\\{")  # \{1\},\{2\} is not one set
        members = tuple(sign for part in _split(inside) for sign in _signs(part))
        return None if opens_again else ParsedAnswer(Kind.SET, text, members)
    scaled = _FACTOR.match(text) if text.endswith(")") else None
    if scaled and (row := _bracketed(text[scaled.end() :])):  # -(1,2), \frac12(1,3)
        factor = f"{scaled[1]}1" if scaled[1] in {"-", "+"} else scaled[1]
        if row.kind is not Kind.TUPLE or row.mark != "()" or read_expression(factor) is None:
            return None
        return replace(row, text=text, parts=tuple(f"({factor})({part})" for part in row.parts))
    turned = _TURNED_ROW.fullmatch(text)
    if turned:  # a row on its side is a column
        row = _bracketed(turned[1])
        if row is None or row.kind is not Kind.TUPLE or row.mark not in {"()", "[]"}:
            return None
        return ParsedAnswer(Kind.MATRIX, text, row.parts, f"pmatrix {len(row.parts)}")
    if len(text) < 3 or text[0] not in "([{" or text[-1] not in ")]}":
        return None
    if len(text) - len(text.lstrip("([{")) > _DEEPEST:  # each pair reads all that is in it anew
        return None
    if not _closes_at_end(text):
        return None
    parts = _split(text[1:-1])
    if text[0] == "{":
        return parse_answer(text[1:-1]) if text[-1] == "}" else None
    if text.startswith("[[") and (rows := _rows(parts)):
        return ParsedAnswer(Kind.MATRIX, text, rows, f"pmatrix {len(parts)}")
    if len(parts) > 1 or text[0] == "[":
        return ParsedAnswer(Kind.TUPLE, text, parts, text[0] + text[-1])
    return parse_answer(text[1:-1]) if text[0] == "(" and text[-1] == ")" else None


def _rows(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the cells of ``[[1,2],[3,4]]``, as programs print a matrix; none if it is none."""
    rows = [_bracketed(part) for part in parts]
    alike = {(row.kind, row.mark, len(row.parts)) if row else None for row in rows}
    if len(alike) != 1 or None in alike or (rows[0] and rows[0].mark != "[]"):
        return ()
    return tuple(cell for row in rows if row for cell in row.parts)


def as_list(shape: ParsedAnswer) -> ParsedAnswer:
    """Return a number whose commas may separate a list as that list."""
    parts = _split(shape.text)
    grouped = len(parts) < 2 or ",0" in shape.text  # 1,000 is no 1 and 0
    return shape if grouped else ParsedAnswer(Kind.LIST, shape.text, parts)


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return i == len(text) - 1
    return False


def _atom(text: str) -> ParsedAnswer:
    number = read_count(text)
    if number is not None:
        return ParsedAnswer(Kind.NUMBER, text, number=number)
    words = words_of(text)
    if not words and words_and_values(without_unit(text)[0]) and not _readable_vectors(text):
        return ParsedAnswer(Kind.PROSE, text, words_and_values(text))
    base = _BASE.fullmatch(text)
    if base:
        return ParsedAnswer(
            Kind.BASE, text, (base.group(1).strip("()").lstrip("0") or "0",), base.group(2)
        )
    if ":" in text:
        terms = tuple(split_top(text, ":"))
        if all(read_expression(term) is not None for term in terms):
            return ParsedAnswer(Kind.RATIO, text, terms, moment=read_clock(text))
    return ParsedAnswer(Kind.WORDS if words else Kind.EXPRESSION, text)


def _readable_vectors(text: str) -> bool:
    return "\\overrightarrow" in text and read_expression(text) is not None


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in split_top(text, ",;") if part.strip())


def _signed(text: str, mark: str, sign: str) -> str:
    before, found, after = text.partition(mark)
    if not found:
        return text
    after = after.lstrip()
    alone = not before or before[-1] in "=({,"
    return before + after if alone and sign == "+" else before + sign + after


_RUN = re.compile("[A-Za-z]+")
_LETTER = re.compile("(?<![A-Za-z])[A-Za-z](?![A-Za-z])")
_WORDS = re.compile(r"[^\W\d_](?:[^\W\d_]|[' .。\-])*")  # of any script


def words_of(text: str) -> str:
    r"""Return the words of a text that has only words, in lower case, else the empty string.

    Words stand in ``\text{}`` or are bare; ``abc`` is a product (see :func:`is_word`), and no
    script but the Latin one writes products. Capitals keep their case: ``HHT``, ``IV``. An article
    at the start is left out.
    """
    plain = unwrap_text(text)
    if not _WORDS.fullmatch(plain) or (plain != text and _LETTER.search(blank_text(text))):
        return ""
    words = plain.strip(" .。").split()
    if plain == text and text.isascii():
        runs = _RUN.findall(text)
        if not (is_word(runs[0]) if len(runs) == 1 else max(map(len, runs)) > 3):
            return ""
    while len(words) > 1 and words[0].lower() in {"a", "an", "the", "on", "all"}:
        words = words[1:]
    if len(words) == 1 and words[0].isupper() and len(words[0]) < 4:
        return _SAID.get(words[0], words[0])
    said = _SUBJECT.sub("", " ".join(words).lower())
    return _SAID.get(said, said)


_SUBJECT = re.compile(
    r"^(?:it|limit|series|sequence|integral|sum|slope|value|expression|function) (?:is )?"
    r"(?=(?:diverge|converge|undefined|not defined|does not exist))"
    r"|^there (?:is|are) (?=infinite|no )"
)
_SAID = {
    **{word: word.lower() for word in ("YES", "NO", "ODD", "ALL", "ONE", "TWO", "SIX")},
    **dict.fromkeys(("DNE", "dne", "does not exist", "doesn't exist", "not defined"), "undefined"),
    **dict.fromkeys(
        (
            "infinite",
            "infinitely many solutions",
            "infinite solutions",
            "infinite number of solutions",
        ),
        "infinitely many",
    ),
    "true": "yes",
    "false": "no",
    "divergent": "diverges",
    "convergent": "converges",
}
"""Words that say the same as others."""


_ORDER = re.compile(r"(<|>|\\[lg]e(?![A-Za-z]))")
_TURNED = {">": "<", "\\ge": "\\le"}
_VARIABLE = re.compile(r"[A-Za-z](?:_\{?\w\}?)?(?:\([a-z]\))?|\\(?:alpha|beta|theta|phi|lambda|mu)")


def as_interval(text: str) -> ParsedAnswer | None:
    r"""Return an inequality in one variable as the interval that it describes.

    ``x>3`` is ``(3,\infty)`` and ``5\ge x>-2`` is ``(-2,5]``; ``None`` for the rest.
    """
    pieces = [piece.strip() for piece in _ORDER.split(text)]
    if len(pieces) not in {3, 5} or "=" in text:
        return None
    if {sign in {">", "\\ge"} for sign in pieces[1::2]} == {True}:  # from the least to the greatest
        pieces = [_TURNED.get(piece, piece) for piece in reversed(pieces)]
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
    return ParsedAnswer(Kind.TUPLE, text, (low, high), mark)
