"""Graph colouring: has every vertex a colour, and no edge twice the same?"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ..validation import safe_repr
from .graph import check_graph, neighbours_of, numbered, vertices_of
from .puzzle import BadReference, PuzzleVerifier, check_list, check_whole
from .reading import ARROW, consists_of, names, unbracketed, unquoted

MAX_VERTICES = 200
_SEARCH = 500
"""Steps of the search, beside two for each vertex."""

_COLOUR = re.compile(r"\w{1,30}")
_PAIR = re.compile(
    rf"(?:[Vv]ertex\s)?(\w{{1,30}})\s{{0,3}}(?:(?::|{ARROW}|=|[-–—]|\bis\b)\s{{0,3}}(\w{{1,30}})|\((\w{{1,30}})\))"
)
_BETWEEN = re.compile(r"[\s,;.]+(?:and\s{1,3})?")


class Colouring(PuzzleVerifier):
    r"""Accept any colouring of all vertices in which no edge joins two of one colour.

    The colouring is pairs, ``A: red, B: blue``, a JSON object, or one pair on each line; ``=``,
    ``-``, ``->`` and ``is`` stand for the colon, or brackets: ``A (red)``. A vertex that has two
    colours fails, and so does a colour that is not given. Case matters only if two vertices
    differ in nothing else.

    Reference: ``{"edges": [["A", "B"], ["B", "C"]], "colours": ["red", "green", "blue"]}``, or a
    number of colours, which are then called ``1``, ``2`` and so on; ``"vertices"`` names those
    without an edge.
    """

    def check(self, reference: Any) -> None:
        """Check that the graph is not known to need more colours than there are."""
        check_graph(reference, "colours")
        colours = reference["colours"]
        if type(colours) is int:
            check_whole("colours", colours, 2, 50)
        else:
            check_list("colours", colours, 2, 50, "names")
            for name in colours:
                if type(name) is not str or not _COLOUR.fullmatch(name):
                    raise BadReference(f"a colour must be a word, got {safe_repr(name, 60)}")
            if len({name.casefold() for name in colours}) < len(colours):
                raise BadReference(f"colours must differ, got {safe_repr(colours)}")
        if len(vertices_of(reference)) > MAX_VERTICES:
            raise BadReference(f"the graph must have at most {MAX_VERTICES} vertices")
        if _solved(reference) == ():
            raise BadReference(
                f"the graph cannot be coloured with {len(_colours(reference))} colours"
            )

    def oracle_reply(self, reference: Any) -> str | None:
        found = _solved(reference)
        if not found:
            return None
        colours = _colours(reference)
        pairs = zip(vertices_of(reference), found, strict=True)
        return ", ".join(f"{vertex}: {colours[number]}" for vertex, number in pairs)

    def fault(self, text: str, reference: Any) -> str | None:
        every, colours = vertices_of(reference), _colours(reference)
        pairs = consists_of(
            _PAIR, _BETWEEN, unquoted(unbracketed(text)), "vertices and their colours"
        )
        colour: dict[str, str] = {}
        named = {name.casefold(): name for name in colours}
        vertices = names([left for left, _ in pairs], every)
        for vertex, (_, right) in zip(vertices, pairs, strict=True):
            given = named.get(right.casefold())
            if given is None:
                return f"{safe_repr(right, 40)} is not one of {', '.join(colours)}"
            if colour.setdefault(vertex, given) != given:
                return f"{vertex} has two colours"
        if missing := set(every) - colour.keys():
            return f"{min(missing)} has no colour"
        for a, others in neighbours_of(reference).items():
            for b in others:
                if colour[a] == colour[b]:
                    return f"{a} and {b} are both {colour[a]}"
        return None


def _colours(reference: Any) -> list[str]:
    colours = reference["colours"]
    return [str(n + 1) for n in range(colours)] if type(colours) is int else list(colours)


def _solved(reference: Any) -> tuple[int, ...] | None:
    graph = neighbours_of({**reference, "directed": False})
    return coloured(numbered(graph), len(_colours(reference)))


@lru_cache(maxsize=256)
def coloured(near: tuple[tuple[int, ...], ...], colours: int) -> tuple[int, ...] | None:
    """Return a colouring, ``()`` if there is none, ``None`` if the search was too long to end.

    The vertex with the fewest colours left comes next: DSATUR, Brelaz (1979).
    """
    size = len(near)
    colour, taken = [-1] * size, [0] * size  # taken: the colours of the neighbours, as bits
    steps = 0

    def urgency(v: int) -> tuple[int, int, int]:
        return taken[v].bit_count(), len(near[v]), -v

    def fill(left: set[int], used: int) -> bool | None:
        nonlocal steps
        if not left:
            return True
        steps += 1
        if steps > _SEARCH + 2 * size:
            return None
        at = max(left, key=urgency)
        for choice in range(min(used + 1, colours)):  # colours not used yet are all alike
            bit = 1 << choice
            if not taken[at] & bit:
                colour[at] = choice
                changed = [v for v in near[at] if not taken[v] & bit]
                for v in changed:
                    taken[v] |= bit
                found = fill(left - {at}, max(used, choice + 1))
                if found is not False:
                    return found
                for v in changed:
                    taken[v] ^= bit
        return False

    found = fill(set(range(size)), 0)
    return tuple(colour) if found else None if found is None else ()
