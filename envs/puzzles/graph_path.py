"""Paths in graphs: find one from the start to the goal."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...verifiers.puzzles import graph_path as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = (
    (6, 1, False, False),
    (8, 1, False, True),
    (10, 9, False, True),
    (14, 20, True, True),
    (20, 50, True, True),
)
"""Vertices, the largest weight, whether edges lead one way, whether the path must be lightest."""


class GraphPath(PuzzleEnv):
    """Name the vertices of a path; from level 2 on of one with the least weight.

    Observation: the edges, with weights from level 3 on. Action: the reply.
    Reward: 1.0 for any such path. End: after one step.
    Levels have 6, 8, 10, 14 and 20 vertices; in the last two edges lead one way.
    """

    verifier = rules.GraphPath

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a path through some vertices, so that there is one, and further edges."""
        size, heaviest, directed, shortest = _LEVELS[level - 1]
        names = [chr(ord("A") + int(n)) for n in rng.permutation(size)]
        trail = names[: max(3, size // 2)]
        start, goal = trail[0], trail[-1]
        pairs = set(pairwise(trail))
        while len(pairs) < 2 * size - (level == 1) * size // 2:
            a, b = (names[int(n)] for n in rng.choice(size, 2, replace=False))
            if (a, b) != (start, goal) and (b, a) not in pairs:
                pairs.add((a, b))
        weighted = heaviest > 1
        edges: list[list[str | int]] = [
            [a, b, *([int(rng.integers(1, heaviest + 1))] if weighted else [])]
            for a, b in sorted(pairs)
        ]
        edges = [edges[int(n)] for n in rng.permutation(len(edges))]
        sign, kind = ("->", "directed graph") if directed else ("-", "graph")
        listed = ", ".join(f"{a}{sign}{b}" + "".join(f" ({n})" for n in w) for a, b, *w in edges)
        weights = ", with the weight of each in brackets" if weighted else ""
        least = ("of the least total weight " if weighted else "with the fewest edges ") * shortest
        return Puzzle(
            f"These are the edges of a {kind}{weights}: {listed}.\n"
            f"Find a path {least}from {start} to {goal} that visits no vertex "
            "twice. Give its vertices from first to last, parted by commas.",
            {
                "edges": edges,
                "start": start,
                "goal": goal,
                "directed": directed,
                "shortest": shortest,
            },
        )
