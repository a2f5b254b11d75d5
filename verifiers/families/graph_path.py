"""Paths in graphs: does one lead along edges from the start to the goal?"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from ..shown import shown
from .any_answer import AnyAnswer, items
from .graph import (
    graph_fault,
    lightest_path,
    name_fault,
    neighbours_of,
    repeated,
    resolved,
    vertices_of,
    weight_of,
)

_TO = re.compile(r"\s+to\s+")


class GraphPath(AnyAnswer):
    r"""Accept any path along edges from the start to the goal.

    The path names its vertices from first to last, ``A -> B -> D``, ``A, B, D``,
    ``["A", "B", "D"]`` or the like, and visits none twice. Case matters only where two vertices
    differ in nothing else.

    Reference: ``{"edges": [["A", "B", 2], ["B", "D", 1]], "start": "A", "goal": "D"}``. Names are
    words or whole numbers; an edge without a weight weighs 1. With ``"directed": true`` edges lead
    one way; with ``"shortest": true`` only a path of the least weight wins.

    Args:
        shortest: only paths of the least weight win, whatever the reference says.

    Example:
        >>> graph = {"edges": [["A", "B"], ["B", "D"], ["A", "D"]], "start": "A", "goal": "D"}
        >>> GraphPath().verify("A -> B -> D", graph).score
        1.0
        >>> GraphPath(shortest=True).verify("A -> B -> D", graph).reason
        'weighs 2 where 1 is enough'
    """

    def __init__(self, *, shortest: bool = False) -> None:
        self.shortest = shortest

    def check_reference(self, reference: Any) -> str | None:
        """A graph with a start and another vertex that can be reached from it."""
        fault = graph_fault(reference, "start", "goal", weighted=True)
        if fault is not None:
            return fault
        if type(reference.get("shortest", False)) is not bool:
            return f"shortest must be true or false, got {shown(reference['shortest'])}"
        known, ends = set(vertices_of(reference)), [reference["start"], reference["goal"]]
        for name in ends:
            if (fault := name_fault(name)) is not None:
                return fault
            if str(name) not in known:
                return f"start and goal must be vertices of an edge, got {shown(name, 60)}"
        if str(ends[0]) == str(ends[1]):
            return "start and goal must differ, or nothing is to be done"
        return None if self.winning_reply(reference) else "the goal cannot be reached"

    def winning_reply(self, reference: Any) -> str | None:
        """A path of the least weight."""
        ends = str(reference["start"]), str(reference["goal"])
        path = lightest_path(neighbours_of(reference), *ends)
        return " -> ".join(path) if path else None

    def fault(self, text: str, reference: Any) -> str | None:
        """Follow the path edge by edge."""
        graph = neighbours_of(reference)
        start, goal = str(reference["start"]), str(reference["goal"])
        text = text if "to" in graph else _TO.sub(" → ", text)
        path = resolved(items(text), list(graph), run=True)
        if (path[0], path[-1]) != (start, goal):
            return f"leads from {path[0]} to {path[-1]}, not from {start} to {goal}"
        if (twice := repeated(path)) is not None:
            return f"visits {twice} twice"
        for a, b in pairwise(path):
            if b not in graph[a]:
                return f"there is no edge from {a} to {b}"
        if self.shortest or reference.get("shortest", False):
            least = weight_of(graph, lightest_path(graph, start, goal) or [])
            if (weight := weight_of(graph, path)) > least:
                return f"weighs {weight} where {least} is enough"
        return None
