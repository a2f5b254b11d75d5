"""Spanning trees: do the edges join all vertices, at the least weight?"""

from __future__ import annotations

import re
from typing import Any

from .exact_number import Number
from .graph import check_graph, neighbours_of
from .puzzle import BadReference, PuzzleVerifier
from .reading import ARROW, consists_of, items, names, unbracketed, unquoted

_EDGE = re.compile(
    rf"[\[({{]?\s{{0,3}}(\w{{1,30}})\s{{0,3}}(?:{ARROW}|[-–—]{{1,2}}|↔|[,\s])\s{{0,3}}(\w{{1,30}})"
    r"(?:\s{0,3},\s{0,3}\d+(?:\.\d+)?(?=\s{0,3}[\])}]))?"  # its weight
    r"(?:\s{0,3}[\])}])?(?:\s{0,3}\((?:weight:?\s{1,3})?\d+(?:\.\d+)?\))?"
)
_BETWEEN = re.compile(r"[\s,;]+(?:and\s{1,3})?")


class SpanningTree(PuzzleVerifier):
    r"""Accept any edges that join all vertices and weigh the least that such edges can.

    The answer names the edges of the tree, ``A-B, B-C``, ``(A, B), (B, C)``,
    ``[["A", "B"], ["B", "C"]]`` or one on each line, each once and either way round; its weight
    may follow, ``(A, B, 2)`` or ``A-B (2)``, and is not read. Case matters only if two vertices
    differ in nothing else.

    Reference: ``{"edges": [["A", "B", 2], ["B", "C", 1], ["A", "C", 3]]}``; an edge without a
    weight weighs 1. A graph that falls apart is refused, and so is one that is a tree itself.
    """

    def check(self, reference: Any) -> None:
        """Check that the graph is connected and has an edge to leave out."""
        check_graph(reference, weighted=True)
        if reference.get("directed", False):
            raise BadReference("directed must be false: a spanning tree has no direction")
        graph = neighbours_of(reference)
        if len(_least(reference)) != len(graph) - 1:
            raise BadReference("the graph must be connected")
        if sum(map(len, graph.values())) // 2 == len(graph) - 1:
            raise BadReference("the graph must not be a tree, or nothing is to be chosen")

    def oracle_reply(self, reference: Any) -> str | None:
        return ", ".join(f"{a}-{b}" for _, a, b in _least(reference))

    def fault(self, text: str, reference: Any) -> str | None:
        graph = neighbours_of(reference)
        given = _edges(text)
        if all(len(name) == 1 for name in graph) and re.fullmatch(r"(?:\w\w[\s,;]{0,4})+", text):
            given = [(pair[0], pair[1]) for pair in items(text)]  # AB, BC
        ends = names([name for edge in given for name in edge], list(graph))
        group = _Groups()
        weight: Number = 0
        for a, b in zip(ends[::2], ends[1::2], strict=True):
            if b not in graph[a]:
                return f"there is no edge between {a} and {b}"
            if not group.join(a, b):
                return f"{a}-{b} is there twice or closes a circle"
            weight += graph[a][b]
        if len(given) < len(graph) - 1:
            return f"{len(given)} edges do not join {len(graph)} vertices"
        least = sum(w for w, _, _ in _least(reference))
        return f"weighs {weight}, {least} suffices" if weight > least else None


def _edges(text: str) -> list[tuple[str, ...]]:
    text = unquoted(text)
    if text.startswith(("[[", "[(", "{(", "([", "{{")):
        text = unbracketed(text) if unbracketed(text)[:1] in ("[", "(", "{") else text[1:-1]
    return consists_of(_EDGE, _BETWEEN, text, "edges such as A-B")


class _Groups:
    """Joined vertices: a forest with halved paths (Tarjan and van Leeuwen, 1984)."""

    def __init__(self) -> None:
        self.above: dict[str, str] = {}

    def join(self, a: str, b: str) -> bool:
        """Join two vertices, and return True if they were apart."""
        a, b = self._top(a), self._top(b)
        self.above[a] = b
        return a != b

    def _top(self, name: str) -> str:
        while (up := self.above.get(name, name)) != name:
            self.above[name] = name = self.above.get(up, up)
        return name


def _least(reference: Any) -> list[tuple[Number, str, str]]:
    """Return weight and ends of the edges of a lightest tree, or forest: Kruskal (1956)."""
    graph, group = neighbours_of(reference), _Groups()
    edges = sorted((w, a, b) for a in graph for b, w in graph[a].items() if a < b)
    return [(w, a, b) for w, a, b in edges if group.join(a, b)]
