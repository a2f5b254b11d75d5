"""Hamiltonian paths: visit every vertex of a graph once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...verifiers.puzzles import hamiltonian_path as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((7, 3, False), (9, 5, False), (10, 8, True), (14, 14, True), (20, 22, True))
"""Vertices, edges beside those of the hidden path, and whether it must come back."""


class HamiltonianPath(PuzzleEnv):
    """Find a path that visits every vertex once; from level 3 on one that comes back.

    Observation: the edges. Action: the reply.
    Reward: 1.0 for any such path. End: after one step.
    Levels have 7, 9, 10, 14 and 20 vertices.
    """

    verifier = rules.HamiltonianPath

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw the edges of a hidden path, and others."""
        size, more, cycle = _LEVELS[level - 1]
        hidden = [chr(ord("A") + int(n)) for n in rng.permutation(size)]
        path = pairwise([*hidden, hidden[0]] if cycle else hidden)
        edges = {(min(pair), max(pair)) for pair in path}
        most = len(edges) + more
        while len(edges) < most:
            a, b = sorted(hidden[int(n)] for n in rng.choice(size, 2, replace=False))
            edges.add((a, b))
        back = " and from whose last vertex an edge leads back to the first" if cycle else ""
        return Puzzle(
            f"These are the edges of a graph: {', '.join(map('-'.join, sorted(edges)))}.\n"
            f"Find a path along edges that visits every vertex exactly once{back}. "
            "Give the vertices from first to last, parted by commas.",
            {"edges": sorted(edges), "cycle": cycle},
            ", ".join(hidden),
        )
