"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .cluster import RayVerifier
from .exact import Exact
from .families.coin_change import CoinChange
from .families.colouring import Colouring
from .families.countdown import Countdown
from .families.graph_path import GraphPath
from .families.hamiltonian_path import HamiltonianPath
from .families.hanoi import Hanoi
from .families.integral import Integral
from .families.knapsack import Knapsack
from .families.knight_path import KnightPath
from .families.lights_out import LightsOut
from .families.magic_square import MagicSquare
from .families.maze import Maze
from .families.multiple_choice import MultipleChoice
from .families.short_answer import ShortAnswer
from .families.sliding_tiles import SlidingTiles
from .families.sorting import Sorting
from .families.spanning_tree import SpanningTree
from .families.subset_sum import SubsetSum
from .families.topological_order import TopologicalOrder
from .families.water_jugs import WaterJugs
from .families.word_ladder import WordLadder
from .form.format import Format
from .maths.maths import Math
from .maths.number import read_number
from .program import Code
from .rubric import Rubric
from .verdict import Status, Verdict
from .verifier import FunctionVerifier, Verifier
from .winning import given_as

__all__ = [
    "Code",
    "CoinChange",
    "Colouring",
    "Countdown",
    "Exact",
    "Format",
    "FunctionVerifier",
    "GraphPath",
    "HamiltonianPath",
    "Hanoi",
    "Integral",
    "Knapsack",
    "KnightPath",
    "LightsOut",
    "MagicSquare",
    "Math",
    "Maze",
    "MultipleChoice",
    "RayVerifier",
    "Rubric",
    "ShortAnswer",
    "SlidingTiles",
    "Sorting",
    "SpanningTree",
    "Status",
    "SubsetSum",
    "TopologicalOrder",
    "Verdict",
    "Verifier",
    "WaterJugs",
    "WordLadder",
    "given_as",
    "read_number",
]
