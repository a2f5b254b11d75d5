"""Graphs as references tell them: what is checked, and how their vertices are read in a reply."""

from __future__ import annotations

import heapq
import math
import re
from itertools import chain, pairwise
from operator import eq
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from .exact_number import Number, to_exact

Neighbours = dict[str, dict[str, Number]]
"""For each vertex, where its edges lead and the least weight of each."""

MAX_EDGES = 5_000
LONGEST_NAME = 30
_NAME = re.compile(rf"\w{{1,{LONGEST_NAME}}}")


def name_fault(name: Any) -> str | None:
    """What is wrong with the name of a vertex."""
    if type(name) is int and 0 <= name < 10**9:
        return None
    if type(name) is str and _NAME.fullmatch(name):
        return None
    return (
        "a vertex must be a whole number from 0 or a word of letters, digits and '_', "
        f"got {shown(name, 60)}"
    )


def graph_fault(reference: Any, *needs: str, weighted: bool = False) -> str | None:
    """What is wrong with ``edges``, ``vertices`` and ``directed``, and which names are missing.

    Edges are ``[a, b]``, or where ``weighted`` also ``[a, b, weight]``; ``vertices`` may name
    those without an edge. Names that differ as JSON but not as text are one vertex.
    """
    if not isinstance(reference, dict) or {"edges", *needs} - set(reference):
        return f"expected {', '.join(('edges', *needs))}, got {shown(reference)}"
    if type(reference.get("directed", False)) is not bool:
        return f"directed must be true or false, got {shown(reference['directed'])}"
    edges, vertices = reference["edges"], reference.get("vertices", [])
    if not isinstance(edges, list) or not 1 <= len(edges) <= MAX_EDGES:
        return f"edges must be a list of 1 to {MAX_EDGES} edges, got {shown(edges)}"
    if not isinstance(vertices, list) or len(vertices) > 2 * MAX_EDGES:
        return f"vertices must be a list of at most {2 * MAX_EDGES} names, got {shown(vertices)}"
    if _plain(edges, vertices):
        return None
    for edge in edges:
        if not isinstance(edge, list) or len(edge) not in ((2, 3) if weighted else (2,)):
            third = " or [a, b, weight]" if weighted else ""
            return f"an edge must be [a, b]{third}, got {shown(edge)}"
        fault = name_fault(edge[0]) or name_fault(edge[1]) or _weight_fault(edge[2:])
        if fault is not None:
            return fault
        if str(edge[0]) == str(edge[1]):
            return f"an edge must join two vertices, got {shown(edge)}"
    return next((fault for name in vertices if (fault := name_fault(name))), None)


def _plain(edges: list[Any], vertices: list[Any]) -> bool:
    """Whether all is pairs of words and words: nearly always, and sooner told than one by one."""
    if set(map(type, edges)) != {list} or set(map(len, edges)) != {2}:
        return False
    ends = list(chain.from_iterable(edges))
    if set(map(type, ends)) != {str} or not {str}.issuperset(map(type, vertices)):
        return False
    names = {*vertices, *ends}
    return (
        "" not in names
        and "".join(names).isalnum()
        and max(map(len, names)) <= LONGEST_NAME
        and not any(map(eq, ends[::2], ends[1::2]))
    )


def _weight_fault(weights: list[Any]) -> str | None:
    for weight in weights:
        if type(weight) not in (int, float) or not 0 <= weight <= 10**12:  # NaN is not either
            return f"a weight must be a number from 0 to 10**12, got {shown(weight, 60)}"
    return None


def vertices_of(reference: Any) -> list[str]:
    """All vertices, in the order in which the reference names them."""
    edges = reference["edges"]
    pairs = edges if max(map(len, edges)) == 2 else [edge[:2] for edge in edges]
    names = dict.fromkeys(chain(reference.get("vertices", ()), *pairs))
    return list(names if {str}.issuperset(map(type, names)) else dict.fromkeys(map(str, names)))


def neighbours_of(reference: Any) -> Neighbours:
    """Where each vertex leads; an edge without a weight weighs 1, 0.1 weighs a tenth exactly."""
    found: Neighbours = {name: {} for name in vertices_of(reference)}
    one_way = reference.get("directed", False)
    for a, b, *weights in reference["edges"]:
        weight = to_exact(weights[0]) if weights else 1
        ends = str(a), str(b)
        for left, right in (ends,) if one_way else (ends, ends[::-1]):
            if weight < found[left].get(right, math.inf):
                found[left][right] = weight
    return found


def resolved(given: list[str], vertices: list[str], *, run: bool = False) -> list[str]:
    """Names as a reply writes them, as vertices; case matters only where it tells two apart.

    Args:
        given: the names as they are written.
        vertices: all that there are.
        run: ``ABD`` alone is ``A, B, D`` where all vertices are single characters.

    Raises:
        Unreadable: there is none, or one that is no vertex.
    """
    if given and set(vertices).issuperset(given):  # as they are called
        return given
    known = {name: name for name in vertices}
    folded = {name.casefold(): name for name in vertices}
    if len(folded) == len(known):
        known = folded | known
    if (
        run
        and len(given) == 1
        and given[0] not in known
        and all(len(name) == 1 for name in vertices)
    ):
        given = list(given[0])
    if not given:
        raise Unreadable("there is no vertex")
    found = []
    for name in given:
        vertex = known.get(name) or known.get(name.casefold())
        if vertex is None:
            raise Unreadable(f"{shown(name, 40)} is no vertex")
        found.append(vertex)
    return found


def repeated(names: list[str]) -> str | None:
    """The first name that was there before."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def lightest_path(graph: Neighbours, start: str, goal: str) -> list[str] | None:
    """A path of the least weight, or ``None`` where there is none; Dijkstra (1959)."""
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


def weight_of(graph: Neighbours, path: list[str]) -> Number:
    """The weight of a path that is there."""
    return sum(graph[a][b] for a, b in pairwise(path))
