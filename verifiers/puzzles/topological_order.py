"""Topological order: does everything come after what it needs?"""

from __future__ import annotations

from collections import deque
from typing import Any

from .any_answer import AnyAnswer, items
from .graph import graph_fault, neighbours_of, repeated, resolved, vertices_of


class TopologicalOrder(AnyAnswer):
    r"""Accept any order of all vertices in which each edge leads forward.

    The order names every vertex once, ``A, C, B``, ``A -> C -> B``, ``["A", "C", "B"]`` or the
    like. Case matters only where two vertices differ in nothing else.

    Reference: ``{"edges": [["A", "B"], ["C", "B"]]}``, where ``A`` comes before ``B``;
    ``"vertices"`` names those without an edge.

    Example:
        >>> tasks = {"edges": [["A", "B"], ["C", "B"]]}
        >>> [TopologicalOrder().verify(reply, tasks).score for reply in ("C, A, B", "A, B, C")]
        [1.0, 0.0]
    """

    def check_reference(self, reference: Any) -> str | None:
        """Edges without a cycle."""
        fault = graph_fault(reference)
        if fault is not None:
            return fault
        return None if _ordered(reference) else "the edges must not lead in a circle"

    def winning_reply(self, reference: Any) -> str | None:
        """One of the orders."""
        return ", ".join(_ordered(reference))

    def fault(self, text: str, reference: Any) -> str | None:
        """Look at each edge."""
        vertices = vertices_of(reference)
        order = resolved(items(text), vertices, run=True)
        if (twice := repeated(order)) is not None:
            return f"names {twice} twice"
        if len(order) < len(vertices):
            return f"leaves out {min(set(vertices) - set(order))}"
        place = {name: number for number, name in enumerate(order)}
        for a, b in reference["edges"]:
            if place[str(a)] > place[str(b)]:
                return f"{b} comes before {a}"
        return None


def _ordered(reference: Any) -> list[str]:
    """An order by Kahn (1962), empty where the edges lead in a circle."""
    graph = neighbours_of({**reference, "directed": True})
    waits = dict.fromkeys(graph, 0)
    for after in graph.values():
        for name in after:
            waits[name] += 1
    ready = deque(name for name, count in waits.items() if not count)
    order = []
    while ready:
        order.append(ready.popleft())
        for name in graph[order[-1]]:
            waits[name] -= 1
            if not waits[name]:
                ready.append(name)
    return order if len(order) == len(graph) else []
