r"""Lines and planes with parameters: ``(1,2)+t(3,4)`` is ``(4,6)+s(6,8)`` and ``(1+3t,2+4t)``."""

from __future__ import annotations

import re
from typing import Any

from .expression import read_expression
from .formula import names
from .identity import constant_value
from .latex import split_terms
from .parsed_answer import Kind, ParsedAnswer, parse_answer

_TERM = re.compile(
    r"(?P<before>[^(),&]{0,12}?)\*?(?:\\cdot ?)?"
    r"(?P<vector>\(.+\)|\\begin\{pmatrix\}.+\\end\{pmatrix\})(?P<after>[a-z]?)",
    re.DOTALL,
)
_LEFT = re.compile(r"(?:[A-Za-z]|\\vec\{[a-z]\}|\(x,y(?:,z)?\))(?:\([a-z]\))?=")
_CLOSE = 1e-30

_Vector = list[Any]


def same_flat(gold: str, answer: str) -> bool | None:
    """Return whether a point plus multiples of vectors is the same line or plane as an answer.

    ``None`` if the reference is not written so, or the answer is not read.
    """
    left = _flat(_sum(gold))
    if left is None:
        return None
    right = _flat(_sum(answer) or _components(answer))
    if right is None or len(left[0]) != len(right[0]):
        return None
    (start, ways), (other, other_ways) = left, right
    between = [a - b for a, b in zip(start, other, strict=True)]
    rank = _rank(ways)
    return rank == _rank(other_ways) == _rank([*ways, *other_ways, between])


def is_flat(text: str) -> bool:
    """Return whether a text is a point plus multiples of vectors."""
    return _flat(_sum(text)) is not None


def _sum(text: str) -> list[str]:
    """Return the components of a sum of vectors with factors; empty if it is none."""
    found: list[list[str]] = []
    for term in split_terms(_LEFT.sub("", text, count=1)):
        factor = _TERM.fullmatch(term)
        vector = parse_answer(factor["vector"]) if factor else None
        if factor is None or vector is None or vector.mark not in {"()", _column(vector)}:
            return []
        before = factor["before"] + "1" * (factor["before"] in {"", "-"})
        found.append([f"({before}){factor['after']}({part})" for part in vector.parts])
    if len(found) < 2 or len({len(part) for part in found}) > 1:
        return []
    return ["+".join(parts) for parts in zip(*found, strict=True)]


def _components(text: str) -> list[str]:
    shape = parse_answer(text)
    if shape.kind is Kind.LIST:  # x=1+3t, y=2+4t
        named = all(part[:2] == f"{x}=" for x, part in zip("xyz", shape.parts, strict=False))
        return [part[2:] for part in shape.parts] if named else []
    shape = parse_answer(_LEFT.sub("", text, count=1))
    return list(shape.parts) if shape.mark in {"()", _column(shape)} else []


def _column(shape: ParsedAnswer) -> str:
    return f"pmatrix {len(shape.parts)}"


def _flat(parts: list[str]) -> tuple[_Vector, list[_Vector]] | None:
    """Return the point at which all parameters are 0, and the vector of each parameter."""
    trees = [tree for tree in map(read_expression, parts) if tree is not None]
    letters = sorted(frozenset().union(*map(names, trees)))
    if len(trees) < len(parts) or not 2 <= len(parts) <= 4 or not 1 <= len(letters) < len(parts):
        return None

    def at(values: tuple[int, ...]) -> _Vector:
        point = dict(zip(letters, values, strict=True))
        return [constant_value(tree, point) for tree in trees]

    units = [tuple(int(k == n) for k in range(len(letters))) for n in range(len(letters))]
    far = (7, 11, 13)[: len(letters)]
    start, end, ones = at((0,) * len(letters)), at(far), [at(unit) for unit in units]
    if any(value is None for vector in (start, end, *ones) for value in vector):
        return None
    ways = [[a - b for a, b in zip(one, start, strict=True)] for one in ones]
    for k, value in enumerate(end):
        linear = start[k] + sum(n * way[k] for n, way in zip(far, ways, strict=True))
        if abs(value - linear) > _CLOSE * (1 + abs(value)):
            return None
    return (start, ways) if _rank(ways) == len(ways) else None


def _rank(vectors: list[_Vector]) -> int:
    rows, rank = [list(vector) for vector in vectors], 0
    for column in range(len(rows[0])):
        pivot = max(range(rank, len(rows)), key=lambda k: abs(rows[k][column]), default=None)
        if pivot is None or abs(rows[pivot][column]) < _CLOSE:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for row in rows[rank + 1 :]:
            share = row[column] / rows[rank][column]
            row[:] = [a - share * b for a, b in zip(row, rows[rank], strict=True)]
        rank += 1
    return rank
