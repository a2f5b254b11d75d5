"""Graph colouring: give each vertex a colour, neighbours different ones."""

from __future__ import annotations

from string import ascii_uppercase

import numpy as np

from ...verifiers.puzzles import colouring as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((5, 3, 6), (7, 3, 10), (10, 3, 17), (14, 3, 26), (18, 4, 50))
"""Vertices, colours, edges."""
_COLOURS = ("red", "green", "blue", "yellow")


class Colouring(PuzzleEnv):
    """Colour the vertices so that no edge joins two of one colour.

    Observation: the edges and the colours. Action: the reply.
    Reward: 1.0 for any colouring that does it. End: after one step.
    Levels have 5, 7, 10, 14 and 18 vertices, three colours, four in the last.
    """

    verifier = rules.Colouring

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw edges between vertices of different colours in a hidden colouring."""
        size, number, most = _LEVELS[level - 1]
        names, colours = [*ascii_uppercase[:size]], [*_COLOURS[:number]]
        placed = [names[place] for place in rng.permutation(size).tolist()]
        pairs = [(a, b) for b in range(size) for a in range(b) if (b - a) % number]
        edges = [
            sorted(placed[place] for place in pairs[drawn])  # the order of places would reveal it
            for drawn in rng.permutation(len(pairs))[:most].tolist()
        ]
        hidden = sorted(f"{name}: {colours[n % number]}" for n, name in enumerate(placed))
        return Puzzle(
            f"Colour the vertices {', '.join(names)} of a graph with the colours "
            f"{', '.join(colours)}, so that no edge joins two vertices of one colour. "
            f"The edges are {', '.join(map('-'.join, edges))}.\n"
            "Give every vertex and its colour, as in vertex: colour, parted by commas.",
            {"vertices": names, "edges": edges, "colours": colours},
            ", ".join(hidden),
        )
