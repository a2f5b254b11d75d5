"""Graphs: check references, read edges, find the lightest path."""

from __future__ import annotations

import heapq
import math
import re
from itertools import chain, pairwise
from typing import Any

from ..validation import safe_repr
from .exact_number import Number, to_exact
from .puzzle import BadReference, check_list, fields

Neighbours = dict[str, dict[str, Number]]
"""For each vertex, where its edges lead and the least weight of each."""

MAX_EDGES = 5_000
_NAME = re.compile(r"\w{1,30}")


def check_name(name: Any) -> None:
    """Raise BadReference unless a value can be the name of a vertex."""
    whole = type(name) is int and 0 <= name < 10**9
    if not whole and not (type(name) is str and _NAME.fullmatch(name)):
        raise BadReference(
            "a name must be a whole number from 0 or a word of letters, digits and '_', "
            f"got {safe_repr(name, 60)}"
        )


def check_graph(
    reference: Any, *needs: str, weighted: bool = False, flags: tuple[str, ...] = ()
) -> None:
    """Check ``edges``, ``vertices``, ``directed``, flags, and that the named values are there.

    Edges are ``[a, b]``, or if ``weighted`` also ``[a, b, weight]``; ``vertices`` may name
    those without an edge. Names that differ as JSON but not as text are one vertex.

    Raises:
        BadReference: something is missing or of another form.
    """
    edges, *_ = fields(reference, "edges", *needs, flags=("directed", *flags))
    vertices = reference.get("vertices", [])
    check_list("edges", edges, 1, MAX_EDGES, "edges")
    check_list("vertices", vertices, 0, 2 * MAX_EDGES, "names")
    for edge in edges:
        if not isinstance(edge, list) or len(edge) not in ((2, 3) if weighted else (2,)):
            third = " or [a, b, weight]" if weighted else ""
            raise BadReference(f"an edge must be [a, b]{third}, got {safe_repr(edge)}")
        for name in edge[:2]:
            check_name(name)
        for weight in edge[2:]:
            if type(weight) not in (int, float) or not 0 <= weight <= 10**12:  # NaN is not either
                raise BadReference(
                    f"a weight must be a number from 0 to 10**12, got {safe_repr(weight, 60)}"
                )
        if str(edge[0]) == str(edge[1]):
            raise BadReference(f"an edge must join two vertices, got {safe_repr(edge)}")
    for name in vertices:
        check_name(name)


def vertices_of(reference: Any) -> list[str]:
    """Return all vertices, in the order in which the reference names them."""
    ends = (edge[:2] for edge in reference["edges"])
    return list(dict.fromkeys(map(str, chain(reference.get("vertices", ()), *ends))))


def neighbours_of(reference: Any) -> Neighbours:
    """Return the neighbours of each vertex; an edge without a weight weighs 1."""
    found: Neighbours = {name: {} for name in vertices_of(reference)}
    one_way = reference.get("directed", False)
    for a, b, *weights in reference["edges"]:
        weight = to_exact(weights[0]) if weights else 1
        ends = str(a), str(b)
        for left, right in (ends,) if one_way else (ends, ends[::-1]):
            if weight < found[left].get(right, math.inf):
                found[left][right] = weight
    return found


def lightest_path(graph: Neighbours, start: str, goal: str) -> list[str] | None:
    """Return a path of the least weight, ``None`` if there is none; Dijkstra (1959)."""
    distance: dict[str, Number] = {start: 0}
    came, queue = {start: start}, [(distance[start], start)]
    done: set[str] = set()
    while queue:
        far, at = heapq.heappop(queue)
        if at == goal:
            break
        if at in done:
            continue
        done.add(at)
        for after, weight in graph[at].items():
            if after not in distance or far + weight < distance[after]:
                distance[after], came[after] = far + weight, at
                heapq.heappush(queue, (far + weight, after))
    if goal not in came:
        return None
    path = [goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def numbered(graph: Neighbours) -> tuple[tuple[int, ...], ...]:
    """Return the neighbours of each vertex, all by their number in the graph."""
    number = {name: n for n, name in enumerate(graph)}
    return tuple(tuple(number[b] for b in others) for others in graph.values())


def missing_edge(graph: Neighbours, path: list[str]) -> str | None:
    """Return the first step of a path that follows no edge, in words."""
    step = next(((a, b) for a, b in pairwise(path) if b not in graph[a]), None)
    return step and f"there is no edge from {step[0]} to {step[1]}"


def weight_of(graph: Neighbours, path: list[str]) -> Number:
    """Return the weight of a path."""
    return sum(graph[a][b] for a, b in pairwise(path))
