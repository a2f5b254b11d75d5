"""Spanning trees: join all vertices of a graph at the least weight."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import spanning_tree as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((5, 7, 9), (7, 11, 9), (10, 18, 20), (14, 28, 50), (20, 45, 99))
"""Vertices, edges, and the largest weight."""


class SpanningTree(PuzzleEnv):
    """Choose edges that join all vertices and weigh the least together.

    Observation: the edges and their weights. Action: the reply.
    Reward: 1.0 for any lightest tree. End: after one step.
    Levels have 5, 7, 10, 14 and 20 vertices.
    """

    verifier = rules.SpanningTree

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a tree, so that all are joined, and other edges."""
        size, most, heaviest = _LEVELS[level - 1]
        names = [chr(ord("A") + n) for n in range(size)]
        pairs = {(int(rng.integers(n)), n) for n in range(1, size)}
        while len(pairs) < most:
            a, b = sorted(int(n) for n in rng.choice(size, 2, replace=False))
            pairs.add((a, b))
        weights = rng.integers(1, heaviest + 1, size=most).tolist()
        edges = [[names[a], names[b], w] for (a, b), w in zip(sorted(pairs), weights, strict=True)]
        listed = ", ".join(f"{a}-{b} ({w})" for a, b, w in edges)
        return Puzzle(
            f"These are the edges of a graph, with the weight of each in brackets: {listed}.\n"
            "Choose edges that join all vertices, directly or by way of others, and weigh the "
            "least together. Give them like X-Y, parted by commas.",
            {"edges": edges},
        )
