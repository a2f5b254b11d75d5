"""Graph colouring: has every vertex a colour, and no edge twice the same?"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from operator import eq
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from ..verdict import Status, Verdict
from .any_answer import ARROW, AnyAnswer, unbracketed
from .graph import Neighbours, graph_fault, neighbours_of, resolved, vertices_of

MAX_VERTICES = 200
_SEARCH = 500
"""Steps of the search, beside two for each vertex."""

_COLOUR = re.compile(r"\w{1,30}")


class Colouring(AnyAnswer):
    r"""Accept any colouring of all vertices in which no edge joins two of one colour.

    The colouring is pairs, ``A: red, B: blue``, a JSON object, or one pair on each line; ``=``,
    ``-``, ``->`` and ``is`` stand for the colon, or brackets: ``A (red)``. A vertex that has two
    colours loses, and so does a colour that is not given. Case matters only where two vertices
    differ in nothing else.

    Reference: ``{"edges": [["A", "B"], ["B", "C"]], "colours": ["red", "green", "blue"]}``, or a
    number of colours, which are then called ``1``, ``2`` and so on; ``"vertices"`` names those
    without an edge.

    Example:
        >>> graph = {"edges": [["A", "B"], ["B", "C"]], "colours": ["red", "blue"]}
        >>> Colouring().verify("A: blue, B: red, C: blue", graph).score
        1.0
        >>> Colouring().verify('{"A": "blue", "B": "red", "C": "red"}', graph).reason
        'B and C are both red'
    """

    def check_reference(self, reference: Any) -> str | None:
        """A graph that is not known to need more colours than there are."""
        return _malformed(reference) or _unsolvable(reference)

    def _check_first(self, reference: Any) -> str | None:
        """Not whether there is a colouring: a right reply shows that by itself."""
        return _malformed(reference)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply; where it is wrong, look whether one could be right."""
        verdict = super().judge(reply, reference)
        fault = None if verdict.status is Status.CORRECT else _unsolvable(reference)
        return verdict if fault is None else Verdict.fault(Status.BAD_GOLD, fault)

    def winning_reply(self, reference: Any) -> str | None:
        """A colouring, where a search finds one soon."""
        found = _solved(reference)
        if not found:
            return None
        colours = _colours(reference)
        pairs = zip(vertices_of(reference), found, strict=True)
        return ", ".join(f"{vertex}: {colours[number]}" for vertex, number in pairs)

    def fault(self, text: str, reference: Any) -> str | None:
        """Hold the colours to the edges."""
        every, colours = vertices_of(reference), _colours(reference)
        colour = _plainly(text)
        if colour.keys() != set(every) or not set(colours).issuperset(colour.values()):
            colour, fault = _coloured(_pairs(text), every, colours)
            if fault is not None:
                return fault
        ends = [colour[name] for name in map(str, chain.from_iterable(reference["edges"]))]
        if any(map(eq, ends[::2], ends[1::2])):
            return _clash(neighbours_of(reference), colour)
        return None


def _plainly(text: str) -> dict[str, str]:
    """The colours of vertices as tasks ask for them; empty where they are written otherwise."""
    pairs = [part.split(": ") for part in text.split(", ")]
    if set(map(len, pairs)) != {2}:
        return {}
    colour: dict[str, str] = dict(pairs)
    return colour if len(colour) == len(pairs) else {}


def _coloured(
    pairs: list[tuple[str, str]], every: list[str], colours: list[str]
) -> tuple[dict[str, str], str | None]:
    """The colour of each vertex, and what is wrong with it."""
    colour: dict[str, str] = {}
    named = {name.casefold(): name for name in colours}
    vertices = resolved([left for left, _ in pairs], every)
    for vertex, (_, right) in zip(vertices, pairs, strict=True):
        given = named.get(right.casefold())
        if given is None:
            return colour, f"{shown(right, 40)} is not one of {', '.join(colours)}"
        if colour.setdefault(vertex, given) != given:
            return colour, f"{vertex} has two colours"
    if missing := set(every) - colour.keys():
        return colour, f"{min(missing)} has no colour"
    return colour, None


def _malformed(reference: Any) -> str | None:
    fault = graph_fault(reference, "colours") or _colours_fault(reference["colours"])
    if fault is not None:
        return fault
    named = len(reference.get("vertices", ())) + 2 * len(reference["edges"])
    if named > MAX_VERTICES and len(vertices_of(reference)) > MAX_VERTICES:
        return f"the graph must have at most {MAX_VERTICES} vertices"
    return None


def _unsolvable(reference: Any) -> str | None:
    if _solved(reference) == ():
        return f"the graph cannot be coloured with {len(_colours(reference))} colours"
    return None


def _colours_fault(colours: Any) -> str | None:
    if type(colours) is int:
        return None if 2 <= colours <= 50 else f"colours must be from 2 to 50, got {shown(colours)}"
    if not isinstance(colours, list) or not 2 <= len(colours) <= 50:
        return f"colours must be a number or a list of 2 to 50 names, got {shown(colours)}"
    for name in colours:
        if type(name) is not str or not _COLOUR.fullmatch(name):
            return f"a colour must be a word, got {shown(name, 60)}"
    if len({name.casefold() for name in colours}) < len(colours):
        return f"colours must differ, got {shown(colours)}"
    return None


def _colours(reference: Any) -> list[str]:
    colours = reference["colours"]
    return [str(n + 1) for n in range(colours)] if type(colours) is int else list(colours)


def _clash(graph: Neighbours, colour: dict[str, str]) -> str:
    """The first neighbours that are of one colour, in words."""
    a, b = next((a, b) for a in graph for b in graph[a] if colour[a] == colour[b])
    return f"{a} and {b} are both {colour[a]}"


_PAIR = re.compile(
    rf"(\w{{1,30}})\s{{0,3}}(?:(?::|{ARROW}|=|[-–—]|\bis\b)\s{{0,3}}(\w{{1,30}})|\((\w{{1,30}})\))"
)
_BETWEEN = re.compile(r"[\s,;.]+(?:and\s{1,3})?")


def _pairs(text: str) -> list[tuple[str, str]]:
    """Vertices and colours as they are written."""
    text = unbracketed(text).translate(_NO_QUOTES)
    pairs, at = [], 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            raise Unreadable(f"expected a vertex and its colour, got {text[at : at + 40]!r}")
        pairs.append((found.group(1), found.group(2) or found.group(3)))
        between = _BETWEEN.match(text, found.end())
        at = between.end() if between else found.end()
        if between is None and at < len(text):
            raise Unreadable(f"unexpected {text[at : at + 40]!r}")
    if not pairs:
        raise Unreadable("there are no colours")
    return pairs


_NO_QUOTES = str.maketrans("", "", "\"'“”‘’")


def _solved(reference: Any) -> tuple[int, ...] | None:
    vertices = vertices_of(reference)
    number = {name: i for i, name in enumerate(vertices)}
    near: list[set[int]] = [set() for _ in vertices]
    for a, b in reference["edges"]:
        left, right = number[str(a)], number[str(b)]
        near[left].add(right)
        near[right].add(left)
    return coloured(tuple(map(tuple, map(sorted, near))), len(_colours(reference)))


@lru_cache(maxsize=256)
def coloured(edges: tuple[tuple[int, ...], ...], colours: int) -> tuple[int, ...] | None:
    """A colouring, ``()`` where there is none, ``None`` where the search was too long to end.

    The vertex with the fewest colours left comes next: DSATUR, Brelaz (1979).

    Args:
        edges: for each vertex, its neighbours.
        colours: how many there are.
    """
    size = len(edges)
    colour, taken = [-1] * size, [0] * size  # taken: the colours of the neighbours, as bits
    rank = [len(near) * size + size - v for v, near in enumerate(edges)]
    steps, above = 0, size * size + 1

    def urgency(v: int) -> int:
        return taken[v].bit_count() * above + rank[v]

    def fill(left: set[int], used: int) -> bool | None:
        nonlocal steps
        if not left:
            return True
        steps += 1
        if steps > _SEARCH + 2 * size:
            return None
        at = max(left, key=urgency)
        left.discard(at)
        for choice in range(min(used + 1, colours)):  # colours not used yet are all alike
            bit = 1 << choice
            if not taken[at] & bit:
                colour[at] = choice
                changed = [v for v in edges[at] if not taken[v] & bit]
                for v in changed:
                    taken[v] |= bit
                found = fill(left, max(used, choice + 1))
                if found is not False:
                    return found
                for v in changed:
                    taken[v] ^= bit
        left.add(at)
        return False

    found = fill(set(range(size)), 0)
    return tuple(colour) if found else None if found is None else ()
