"""Topological order: does everything come after what it needs?"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any

from .graph import check_graph, vertices_of
from .puzzle import BadReference, PuzzleVerifier
from .reading import items, names, repeated


class TopologicalOrder(PuzzleVerifier):
    r"""Accept any order of all vertices in which each edge leads forward.

    The order names every vertex once, ``A, C, B``, ``A -> C -> B``, ``["A", "C", "B"]`` or the
    like. Case matters only if two vertices differ in nothing else.

    Reference: ``{"edges": [["A", "B"], ["C", "B"]]}``: ``A`` comes before ``B``;
    ``"vertices"`` names those without an edge.
    """

    def check(self, reference: Any) -> None:
        """Check that the edges have no cycle."""
        check_graph(reference)
        if self.oracle_reply(reference) is None:
            raise BadReference("the edges must not lead in a circle")

    def oracle_reply(self, reference: Any) -> str | None:
        needed = TopologicalSorter(dict.fromkeys(vertices_of(reference), ()))
        for a, b in reference["edges"]:
            needed.add(str(b), str(a))
        try:
            return ", ".join(needed.static_order())
        except CycleError:
            return None

    def fault(self, text: str, reference: Any) -> str | None:
        vertices = vertices_of(reference)
        order = names(items(text), vertices, run=True)
        if (twice := repeated(order)) is not None:
            return f"names {twice} twice"
        if len(order) < len(vertices):
            return f"leaves out {min(set(vertices) - set(order))}"
        place = {name: number for number, name in enumerate(order)}
        for a, b in reference["edges"]:
            if place[str(a)] > place[str(b)]:
                return f"{b} comes before {a}"
        return None
