"""Hamiltonian paths: does one visit every vertex once?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .graph import check_graph, missing_edge, neighbours_of, numbered, vertices_of
from .puzzle import BadReference, PuzzleVerifier
from .reading import items, names, repeated

MAX_VERTICES = 100
_SEARCH = 20_000
"""Steps of the search for a path."""


class HamiltonianPath(PuzzleVerifier):
    r"""Accept any path along edges that visits every vertex exactly once.

    The path names its vertices from first to last, ``A -> B -> C``, ``A, B, C`` or the like; a
    cycle may name its first vertex again at the end. Case matters only if two vertices differ
    in nothing else.

    Reference: ``{"edges": [["A", "B"], ["B", "C"]]}``. With ``"directed": true`` edges lead one
    way; with ``"cycle": true`` an edge must lead from the last vertex to the first. A graph that
    is known to have no such path is refused; for a large one that may stay unknown.
    """

    def check(self, reference: Any) -> None:
        """Check that the graph is not known to have no such path."""
        check_graph(reference, flags=("cycle",))
        size = len(vertices_of(reference))
        if not 3 <= size <= MAX_VERTICES:
            raise BadReference(f"the graph must have 3 to {MAX_VERTICES} vertices, got {size}")
        if _solved(reference) == ():
            kind = "cycle" if reference.get("cycle", False) else "path"
            raise BadReference(f"no {kind} visits every vertex once")

    def oracle_reply(self, reference: Any) -> str | None:
        found, vertices = _solved(reference), vertices_of(reference)
        return " -> ".join(vertices[number] for number in found) if found else None

    def fault(self, text: str, reference: Any) -> str | None:
        graph = neighbours_of(reference)
        path = names(items(text), list(graph), run=True)
        if cycle := reference.get("cycle", False):
            path = path if len(path) > 1 and path[0] == path[-1] else [*path, path[0]]
        once = path[:-1] if cycle else path
        if (twice := repeated(once)) is not None:
            return f"visits {twice} twice"
        if missing := graph.keys() - set(once):
            return f"does not visit {min(missing)}"
        return missing_edge(graph, path)


def _solved(reference: Any) -> tuple[int, ...] | None:
    return hamiltonian(numbered(neighbours_of(reference)), cycle=reference.get("cycle", False))


@lru_cache(maxsize=256)
def hamiltonian(near: tuple[tuple[int, ...], ...], *, cycle: bool) -> tuple[int, ...] | None:
    """Return a path through all vertices, ``()`` if there is none, ``None`` if it stays unknown.

    The neighbour with the fewest ways on is tried first: Warnsdorff (1823).

    Args:
        near: the neighbours of each vertex.
        cycle: an edge must lead from the last to the first.
    """
    size, steps = len(near), 0

    def choices(path: list[int]) -> list[int]:
        """Return the neighbours of the last vertex that are not used yet, the best one last."""
        used = set(path)
        free = [n for n in near[path[-1]] if n not in used]
        return sorted(free, key=lambda n: -sum(m not in used for m in near[n]))

    for start in range(1 if cycle else size):
        path, left = [start], [choices([start])]
        while left:
            steps += 1
            if steps > _SEARCH:
                return None
            if len(path) == size and (not cycle or path[0] in near[path[-1]]):
                return tuple(path)
            if left[-1]:
                path.append(left[-1].pop())
                left.append(choices(path))
            else:
                left.pop()
                path.pop()
    return ()
