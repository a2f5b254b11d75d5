"""Hamiltonian paths: does one visit every vertex once?"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

from ..shown import shown
from .any_answer import AnyAnswer, items
from .graph import graph_fault, neighbours_of, repeated, resolved, vertices_of

MAX_VERTICES = 100
_SEARCH = 20_000
"""Steps of the search for a path."""


class HamiltonianPath(AnyAnswer):
    r"""Accept any path along edges that visits every vertex exactly once.

    The path names its vertices from first to last, ``A -> B -> C``, ``A, B, C`` or the like; a
    cycle may name its first vertex again at the end. Case matters only where two vertices differ
    in nothing else.

    Reference: ``{"edges": [["A", "B"], ["B", "C"]]}``. With ``"directed": true`` edges lead one
    way; with ``"cycle": true`` an edge must lead from the last vertex to the first. A graph that
    is known to have no such path is refused; for a large one that may stay unknown.

    Example:
        >>> graph = {"edges": [["A", "B"], ["B", "C"], ["B", "D"], ["C", "D"]]}
        >>> HamiltonianPath().verify("A -> B -> D -> C", graph).score
        1.0
    """

    def check_reference(self, reference: Any) -> str | None:
        """A graph that is not known to have no such path."""
        fault = graph_fault(reference)
        if fault is not None:
            return fault
        if type(reference.get("cycle", False)) is not bool:
            return f"cycle must be true or false, got {shown(reference['cycle'])}"
        size = len(vertices_of(reference))
        if not 3 <= size <= MAX_VERTICES:
            return f"the graph must have 3 to {MAX_VERTICES} vertices, got {size}"
        kind = "cycle" if reference.get("cycle", False) else "path"
        return f"no {kind} visits every vertex once" if _solved(reference) == () else None

    def winning_reply(self, reference: Any) -> str | None:
        """One such path, where a search finds it soon."""
        found = _solved(reference)
        vertices = vertices_of(reference)
        return " -> ".join(vertices[number] for number in found) if found else None

    def fault(self, text: str, reference: Any) -> str | None:
        """Follow the path edge by edge."""
        graph = neighbours_of(reference)
        path = resolved(items(text), list(graph), run=True)
        if reference.get("cycle", False):
            path = path if len(path) > 1 and path[0] == path[-1] else [*path, path[0]]
        steps = list(pairwise(path))
        once = path[:-1] if reference.get("cycle", False) else path
        if (twice := repeated(once)) is not None:
            return f"visits {twice} twice"
        if missing := graph.keys() - set(once):
            return f"does not visit {min(missing)}"
        for a, b in steps:
            if b not in graph[a]:
                return f"there is no edge from {a} to {b}"
        return None


def _solved(reference: Any) -> tuple[int, ...] | None:
    graph = neighbours_of(reference)
    number = {name: n for n, name in enumerate(graph)}
    near = tuple(tuple(number[b] for b in graph[a]) for a in graph)
    return hamiltonian(near, cycle=reference.get("cycle", False))


@lru_cache(maxsize=256)
def hamiltonian(near: tuple[tuple[int, ...], ...], *, cycle: bool) -> tuple[int, ...] | None:
    """A path through all vertices, ``()`` where there is none, ``None`` where it stays unknown.

    The neighbour with the fewest ways on is tried first: Warnsdorff (1823).

    Args:
        near: for each vertex, where its edges lead.
        cycle: an edge must lead from the last to the first.
    """
    size, steps = len(near), 0
    for start in range(1 if cycle else size):
        path, used = [start], {start}
        choices = [_by_ways_on(start, near, used)]
        while choices:
            steps += 1
            if steps > _SEARCH:
                return None
            if len(path) == size and (not cycle or path[0] in near[path[-1]]):
                return tuple(path)
            if choices[-1]:
                path.append(choices[-1].pop())
                used.add(path[-1])
                choices.append(_by_ways_on(path[-1], near, used))
            else:
                choices.pop()
                used.discard(path.pop())
    return ()


def _by_ways_on(at: int, near: tuple[tuple[int, ...], ...], used: set[int]) -> list[int]:
    """The neighbours not used yet, the most promising last."""
    free = [n for n in near[at] if n not in used]
    return sorted(free, key=lambda n: -sum(m not in used for m in near[n]))
