r"""Parts of the real line: ``(-\infty, 2]``, ``[0,1]\cup\{3\}``, ``2x > 6``, ``x \ne 0``.

Each is read as the points between its ends, and merged if pieces touch, so two that are the
same set are the same however they are written.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .evaluate import real_value
from .expression import read_expression
from .formula import difference, is_polynomial, names
from .identity import constant_value, ratio, value_of
from .parsed_answer import Kind, ParsedAnswer, parse_answer

_MAX_PIECES = 40
_CLOSE, _NOISE = 1e-50, 1e-5
_PROBES = (0, 1, 2, 12345.5, -987.25, 0.375)
"""Where an inequality is looked at: what is quadratic at six points is quadratic."""
_ORDER = re.compile(r"(<|>|\\(?:le|ge|ne)(?![A-Za-z]))")
_WITHOUT = re.compile(r"(.{1,80}?)(?:\\setminus|(?<=\}|\))-(?=\\\{|\[)) ?(.{1,200})")
_MIRRORED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le", "\\ne": "\\ne"}
_INFINITE = {"\\infty": float("inf"), "+\\infty": float("inf"), "-\\infty": -float("inf")}


@dataclass(frozen=True, slots=True)
class Interval:
    """The points between two ends, of which each belongs to it or not."""

    low: Any
    has_low: bool
    high: Any
    has_high: bool

    @property
    def empty(self) -> bool:
        """Whether no point is in it."""
        return self.low > self.high or (
            same_end(self.low, self.high) and not (self.has_low and self.has_high)
        )


@dataclass(frozen=True, slots=True)
class IntervalSet:
    """Pieces from left to right that do not touch, and the variable they are said of, if any."""

    pieces: tuple[Interval, ...]
    variable: str = ""


_INTEGERS = re.compile(
    r"\\\{(?P<name>[a-z])\\in ?\\mathbb\{(?P<of>[ZN])\}(?P<sign>[\^_]\{?[+*]\}?)?"
    r"[|:,](?P<rule>[^{}|]+)\\\}"
)
_MOST_MEMBERS = 200
_LINE = IntervalSet((Interval(-float("inf"), False, float("inf"), False),))


def same_intervals(left: IntervalSet, right: IntervalSet) -> bool:
    """Return whether two regions have the same points, of the same variable if both name one."""
    if left.variable and right.variable and left.variable != right.variable:
        return False
    return len(left.pieces) == len(right.pieces) and all(
        same_end(a.low, b.low)
        and same_end(a.high, b.high)
        and (a.has_low, a.has_high) == (b.has_low, b.has_high)
        for a, b in zip(left.pieces, right.pieces, strict=True)
    )


def read_intervals(shape: ParsedAnswer) -> IntervalSet | None:
    """Read the region that an answer describes, or ``None`` if it describes none."""
    without = _WITHOUT.fullmatch(shape.text)
    if without:
        whole, taken = (read_intervals(parse_answer(part)) for part in without.groups())
        return None if whole is None or taken is None else _both(whole, _minus(taken))
    readers: dict[Kind, Callable[[ParsedAnswer], IntervalSet | None]] = {
        Kind.TUPLE: _interval,
        Kind.SET: _points,
        Kind.UNION: _union,
        Kind.RELATION: _relation,
        Kind.LIST: _cases,
    }
    reader = readers.get(shape.kind)
    return None if reader is None else reader(shape)


def finite_set(text: str) -> str:
    r"""Return ``\{x\in\mathbb{Z}: 1\le x\le3\}`` as ``\{1,2,3\}``; empty if it is no such set.

    One without a greatest member is ``\{4,\dots\}``. One of natural numbers to which 0 may belong
    is no such set.
    """
    found = _INTEGERS.fullmatch(text) if "\\in" in text else None
    region = read_intervals(parse_answer(found["rule"])) if found else None
    if found is None or region is None or not region.pieces or region.variable != found["name"]:
        return ""
    least = 1 if found["sign"] else 0 if found["of"] == "N" else -math.inf
    low, high = max(least, region.pieces[0].low), region.pieces[-1].high
    endless = math.isinf(high) and len(region.pieces) == 1
    high = low + 1 if endless else high
    if math.isinf(low) or math.isinf(high) or high - low > _MOST_MEMBERS:
        return ""
    members = [
        n
        for n in range(math.floor(low), math.ceil(high) + 1)
        if n >= least and any(_holds(piece, n) for piece in region.pieces)
    ]
    listed = [*map(str, members[:1]), "\\dots"] if endless else map(str, members)
    return "" if 0 in members and least == 0 else f"\\{{{','.join(listed)}\\}}"


def _holds(piece: Interval, n: int) -> bool:
    inside = piece.low < n < piece.high
    at_end = (piece.has_low and n == piece.low) or (piece.has_high and n == piece.high)
    return inside or at_end


def same_end(a: Any, b: Any) -> bool:
    """Return whether two ends are equal, up to the last of their 60 digits."""
    if math.isinf(a) or math.isinf(b):
        return bool(a == b)
    return bool(abs(a - b) <= _CLOSE * max(abs(a), abs(b), _NOISE))


def _interval(shape: ParsedAnswer) -> IntervalSet | None:
    if len(shape.parts) != 2 or shape.mark not in {"()", "[]", "(]", "[)"}:
        return None
    low, high = (_end(part) for part in shape.parts)
    if low is None or high is None or not low <= high:
        return None
    return IntervalSet((Interval(low, shape.mark[0] == "[", high, shape.mark[1] == "]"),))


def _end(text: str) -> Any | None:
    if text in _INFINITE:
        return _INFINITE[text]
    return real_value(value_of(text))


def _points(shape: ParsedAnswer) -> IntervalSet | None:
    ends = [_end(part) for part in shape.parts]
    if None in ends or not ends:
        return None
    return _merged([Interval(end, True, end, True) for end in ends])


def _union(shape: ParsedAnswer) -> IntervalSet | None:
    regions = [read_intervals(parse_answer(part)) for part in shape.parts]
    if len(regions) > _MAX_PIECES or any(region is None for region in regions):
        return None
    return _merged([piece for region in regions if region is not None for piece in region.pieces])


# -- inequalities ------------------------------------------------------------------------------


def _relation(shape: ParsedAnswer) -> IntervalSet | None:
    r"""Parse a chain such as ``-2 < x \le 5``: each link is linear or quadratic in one variable."""
    pieces = _ORDER.split(shape.text)
    if not 3 <= len(pieces) <= 5 or "=" in shape.text:
        return None
    found: IntervalSet | None = None
    for left, sign, right in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
        link = _link(left.strip(), sign, right.strip())
        if link is None or (found is not None and found.variable != link.variable):
            return None
        found = link if found is None else _both(found, link)
    return found


def _link(left: str, sign: str, right: str) -> IntervalSet | None:
    if left[:1] == "|" == left[-1:] and "|" not in left[1:-1]:  # |x| < 2: -2 < x < 2
        if (right_end := _end(right)) is None or right_end < 0:
            return None
        low = _link(left[1:-1], _MIRRORED[sign], f"-({right})")
        high = _link(left[1:-1], sign, right)
        if low is None or high is None or low.variable != high.variable:
            return None
        if sign in {"<", "\\le", "\\ne"}:
            return _both(low, high)
        return IntervalSet(_merged([*low.pieces, *high.pieces]).pieces, low.variable)
    if right[:1] == "|" == right[-1:] and "|" not in right[1:-1]:
        return _link(right, _MIRRORED[sign], left)
    a, b = read_expression(left), read_expression(right)
    if a is None or b is None:
        return None
    gap = difference(a, b)
    if len(names(gap)) != 1 or not is_polynomial(gap):
        return None
    (variable,) = names(gap)
    at: list[Any] = [real_value(constant_value(gap, {variable: x})) for x in _PROBES]
    if None in at:
        return None
    square = (at[2] - 2 * at[1] + at[0]) / 2
    slope = at[1] - at[0] - square
    if not all(
        same_end((square * x + slope) * x + at[0], y) for x, y in zip(_PROBES, at, strict=True)
    ):
        return None  # of a higher degree: where it changes its sign is for algebra to find
    noise = _CLOSE * max(map(abs, at[:3]))
    if abs(square) <= noise:
        if abs(slope) <= noise:
            return None
        roots, rising = [-at[0] / slope], slope > 0
    else:
        roots, rising = _roots(square, slope, at[0]), square > 0
    if sign == "\\ne":
        return IntervalSet(
            _minus(_merged([Interval(x, True, x, True) for x in roots])).pieces, variable
        )
    return IntervalSet(_signed(roots, sign, rising), variable)


def _roots(square: Any, slope: Any, constant: Any) -> list[Any]:
    """Return the real roots of a quadratic polynomial from left to right, a double one twice."""
    inner = slope**2 - 4 * square * constant
    if abs(inner) <= _CLOSE * max(slope**2, abs(square * constant)):
        return [-slope / (2 * square)] * 2
    if inner < 0:
        return []
    ends = [(-slope + side * inner**0.5) / (2 * square) for side in (-1, 1)]
    return sorted(ends)


def _signed(roots: list[Any], sign: str, rising: bool) -> tuple[Interval, ...]:
    """Return where a polynomial with these roots has a sign, if ``rising`` at the far right."""
    closed = sign in {"\\le", "\\ge"}
    wanted = (sign in {">", "\\ge"}) == rising  # at the far right
    ends = [-float("inf"), *roots, float("inf")]
    pieces = []
    for k in range(len(ends) - 1, 0, -1):
        if wanted:
            low, high = ends[k - 1], ends[k]
            pieces.append(Interval(low, closed and k > 1, high, closed and k < len(ends) - 1))
        wanted = not wanted
    return _merged(pieces).pieces


def same_inequality(gold: str, answer: str) -> bool | None:
    r"""Return whether ``a \le b+c`` says what ``a-b \le c`` does; ``None`` if undecided."""
    gaps, signs = [], []
    for text in (gold, answer):
        left, sign, right, *more = [*_ORDER.split(text), "", ""]
        low, high = (left, right) if sign in {"<", "\\le"} else (right, left)
        sides = read_expression(low.strip()), read_expression(high.strip())
        if sides[0] is None or sides[1] is None or any(more):
            return None
        gaps.append(difference(sides[1], sides[0]))
        signs.append(sign if sign in {"<", "\\le", "\\ne"} else _MIRRORED[sign])
    times = ratio(gaps[0], gaps[1])
    if times is None:
        return None
    return signs[0] == signs[1] and (times > 0 or signs[0] == "\\ne")


def impossible(shape: ParsedAnswer) -> bool:
    """Return whether two of several conditions on a variable exclude each other."""
    return any(not _both(a, b).pieces for a, b in itertools.combinations(_conditions(shape), 2))


def overlapping(shape: ParsedAnswer) -> bool:
    """Return whether two of several conditions on a variable can hold together."""
    return any(_both(a, b).pieces for a, b in itertools.combinations(_conditions(shape), 2))


def _conditions(shape: ParsedAnswer) -> list[IntervalSet]:
    """Return what each part of a list of inequalities and equations allows; empty for the rest."""
    parts = [parse_answer(part) for part in shape.parts] if shape.kind is Kind.LIST else []
    if len(parts) > _MAX_PIECES or all(part.kind is not Kind.RELATION for part in parts):
        return []
    found = [_relation(part) if part.kind is Kind.RELATION else _value(part) for part in parts]
    regions = [region for region in found if region is not None]
    alike = len(regions) == len(found) and len({region.variable for region in regions}) == 1
    return regions if alike else []


def _cases(shape: ParsedAnswer) -> IntervalSet | None:
    """Parse inequalities separated by commas: both hold if both can, else either."""
    found = _conditions(shape)
    if not found:
        return None
    pieces = [piece for region in found for piece in region.pieces]
    whole = IntervalSet(_merged(pieces).pieces, found[0].variable)
    if not overlapping(shape):
        return whole
    # x > 1, x > 3: nobody can say which was meant
    return _both(*found) if len(found) == 2 and same_intervals(whole, _LINE) else None


def _value(shape: ParsedAnswer) -> IntervalSet | None:
    """Return the one point of ``x = 1``."""
    if shape.kind is not Kind.EQUATION or len(shape.parts) != 2 or len(shape.parts[0]) != 1:
        return None
    end = _end(shape.parts[1])
    return None if end is None else IntervalSet((Interval(end, True, end, True),), shape.parts[0])


# -- sets of points ----------------------------------------------------------------------------


def _merged(pieces: Sequence[Interval]) -> IntervalSet:
    kept: list[Interval] = []
    for piece in sorted((p for p in pieces if not p.empty), key=lambda p: (p.low, not p.has_low)):
        last = kept[-1] if kept else None
        if last is None or not _touch(last, piece):
            kept.append(piece)
            continue
        ahead = piece.high > last.high and not same_end(piece.high, last.high)
        if ahead:
            kept[-1] = Interval(last.low, last.has_low, piece.high, piece.has_high)
        elif same_end(piece.high, last.high):
            ends = last.has_high or piece.has_high
            kept[-1] = Interval(last.low, last.has_low, last.high, ends)
    return IntervalSet(tuple(kept))


def _touch(left: Interval, right: Interval) -> bool:
    if same_end(left.high, right.low):
        return left.has_high or right.has_low
    return bool(right.low < left.high)


def _minus(taken: IntervalSet) -> IntervalSet:
    """Return the complement of a region."""
    ends = [(-float("inf"), False), *((p.high, not p.has_high) for p in taken.pieces)]
    starts = [*((p.low, not p.has_low) for p in taken.pieces), (float("inf"), False)]
    pieces = [Interval(*low, *high) for low, high in zip(ends, starts, strict=True)]
    return _merged(pieces)


def _both(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    found = []
    for p in a.pieces:
        for q in b.pieces:
            low = p if p.low > q.low or (same_end(p.low, q.low) and not p.has_low) else q
            high = p if p.high < q.high or (same_end(p.high, q.high) and not p.has_high) else q
            found.append(Interval(low.low, low.has_low, high.high, high.has_high))
    return IntervalSet(tuple(piece for piece in found if not piece.empty), a.variable)
