"""Graph colouring: give each vertex a colour, neighbours different ones."""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle
from string import ascii_uppercase

import numpy as np

from ...verifiers import Colouring as ColouringVerifier
from .puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((5, 3, 6), (7, 3, 10), (10, 3, 17), (14, 3, 26), (18, 4, 50))
"""Vertices, colours, edges."""
_COLOURS = ("red", "green", "blue", "yellow")
_NAMES = tuple(ascii_uppercase[: max(_LEVELS)[0]])


class Colouring(PuzzleEnv):
    """Colour the vertices so that no edge joins two of one colour.

    Observation: the edges and the colours. Action: the reply.
    Reward: 1.0 for any colouring that does it. End: after one step.
    Levels have 5, 7, 10, 14 and 18 vertices, three colours, four in the last.
    """

    verifier = ColouringVerifier

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Edges between vertices that a hidden colouring tells apart."""
        size, number, most = _LEVELS[level - 1]
        names, colours = _NAMES[:size], _COLOURS[:number]
        placed = [names[place] for place in rng.permutation(size).tolist()]
        pairs, edges = _pairs(size, number), []
        for drawn in rng.permutation(len(pairs))[:most].tolist():
            i, j = pairs[drawn]
            a, b = placed[i], placed[j]
            edges.append([a, b] if a < b else [b, a])  # the order of places would tell colours
        told = ", ".join(map("-".join, edges))
        hidden = sorted(map(": ".join, zip(placed, cycle(colours), strict=False)))
        return Puzzle(
            f"Colour the vertices {', '.join(names)} of a graph with the colours "
            f"{', '.join(colours)}, so that no edge joins two vertices of one colour. "
            f"The edges are {told}.\n"
            "Give every vertex and its colour, as in vertex: colour, parted by commas.",
            {"vertices": list(names), "edges": edges, "colours": list(colours)},
            ", ".join(hidden),
            own=True,
        )


@lru_cache
def _pairs(size: int, number: int) -> list[tuple[int, int]]:
    """The pairs of places whose colours differ, where colours take turns."""
    return [(a, b) for b in range(size) for a in range(b) if (b - a) % number]
