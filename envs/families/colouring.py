"""Graph colouring: give each vertex a colour, neighbours different ones."""

from __future__ import annotations

import numpy as np

from ...verifiers import Colouring as ColouringVerifier
from .family import Family, Puzzle

_LEVELS = ((5, 3, 6), (7, 3, 10), (10, 3, 17), (14, 3, 26), (18, 4, 50))
"""Vertices, colours, edges."""
_COLOURS = ("red", "green", "blue", "yellow")


class Colouring(Family):
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
        colours = _COLOURS[:number]
        names = [chr(ord("A") + n) for n in range(size)]
        hidden = [int(n) for n in rng.permutation(np.arange(size) % number)]
        pairs = [(a, b) for a in range(size) for b in range(a + 1, size) if hidden[a] != hidden[b]]
        chosen = [pairs[int(n)] for n in rng.permutation(len(pairs))[:most]]
        edges = [[names[a], names[b]] for a, b in chosen]
        told = ", ".join(f"{a}-{b}" for a, b in edges)
        return Puzzle(
            f"Colour the vertices {', '.join(names)} of a graph with the colours "
            f"{', '.join(colours)}, so that no edge joins two vertices of one colour. "
            f"The edges are {told}.\n"
            "Give every vertex and its colour, as in vertex: colour, parted by commas.",
            {"vertices": names, "edges": edges, "colours": list(colours)},
            ", ".join(f"{name}: {colours[c]}" for name, c in zip(names, hidden, strict=True)),
        )
