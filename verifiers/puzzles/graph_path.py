"""Paths in graphs: does one lead along edges from the start to the goal?"""

from __future__ import annotations

import re
from typing import Any

from ..validation import safe_repr
from .graph import (
    check_graph,
    check_name,
    lightest_path,
    missing_edge,
    neighbours_of,
    vertices_of,
    weight_of,
)
from .puzzle import BadReference, ShortestVerifier
from .reading import items, names, repeated

_TO = re.compile(r"(?<=\s)to(?=\s)")


class GraphPath(ShortestVerifier):
    r"""Accept any path along edges from the start to the goal.

    The path names its vertices from first to last, ``A -> B -> D``, ``A, B, D``,
    ``["A", "B", "D"]`` or the like, and visits none twice. Case matters only if two vertices
    differ in nothing else.

    Reference: ``{"edges": [["A", "B", 2], ["B", "D", 1]], "start": "A", "goal": "D"}``. Names are
    words or integers; an edge without a weight weighs 1. With ``"directed": true`` edges lead
    one way; with ``"shortest": true`` only a path of the least weight passes.

    Args:
        shortest: only paths of the least weight win, whatever the reference says.
    """

    def check(self, reference: Any) -> None:
        """Check that another vertex can be reached from the start."""
        check_graph(reference, "start", "goal", weighted=True, flags=("shortest",))
        known, ends = vertices_of(reference), [reference["start"], reference["goal"]]
        for name in ends:
            check_name(name)
            if str(name) not in known:
                raise BadReference(
                    f"start and goal must be vertices of an edge, got {safe_repr(name, 60)}"
                )
        if str(ends[0]) == str(ends[1]):
            raise BadReference("start and goal must differ, or nothing is to be done")
        if self.oracle_reply(reference) is None:
            raise BadReference("the goal cannot be reached")

    def oracle_reply(self, reference: Any) -> str | None:
        ends = str(reference["start"]), str(reference["goal"])
        path = lightest_path(neighbours_of(reference), *ends)
        return " -> ".join(path) if path else None

    def fault(self, text: str, reference: Any) -> str | None:
        graph = neighbours_of(reference)
        start, goal = str(reference["start"]), str(reference["goal"])
        text = text if any("to" in name.split() for name in graph) else _TO.sub("→", text)
        path = names(items(text), list(graph), run=True)
        if (path[0], path[-1]) != (start, goal):
            return f"leads from {path[0]} to {path[-1]}, not from {start} to {goal}"
        if (twice := repeated(path)) is not None:
            return f"visits {twice} twice"
        if (fault := missing_edge(graph, path)) is not None:
            return fault
        if self.demands("shortest", reference):
            least = weight_of(graph, lightest_path(graph, start, goal) or [])
            if (weight := weight_of(graph, path)) > least:
                return f"weighs {weight}, {least} suffices"
        return None
