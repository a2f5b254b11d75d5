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
from .families.knights import KnightsAndKnaves
from .families.lights_out import LightsOut
from .families.magic_square import MagicSquare
from .families.maze import Maze
from .families.multiple_choice import MultipleChoice
from .families.queens import Queens
from .families.regex_synthesis import RegexSynthesis
from .families.satisfiability import Satisfiability
from .families.short_answer import ShortAnswer
from .families.sliding_tiles import SlidingTiles
from .families.sorting import Sorting
from .families.spanning_tree import SpanningTree
from .families.sql import SQL
from .families.subset_sum import SubsetSum
from .families.sudoku import Sudoku
from .families.topological_order import TopologicalOrder
from .families.water_jugs import WaterJugs
from .families.word_ladder import WordLadder
from .families.zebra import Zebra
from .form.boxed import Boxed
from .form.citations import Citations
from .form.commitment import Commits
from .form.compression import Compression
from .form.cosine import CosineLength
from .form.format import Format
from .form.json_fields import JsonFields
from .form.json_schema import JsonSchema
from .form.json_value import Json
from .form.language import Language
from .form.length import Length
from .form.markdown import MarkdownStructure
from .form.overlong import SoftOverlong
from .form.pattern import Pattern
from .form.repetition import Repetition
from .form.tool_call import ToolCall
from .form.xml import XmlStructure
from .instructions.instructions import Instructions
from .judges.judge import Judge
from .judges.pairwise import PairwiseJudge
from .judges.reward_model import RewardModel
from .maths.maths import Math
from .maths.number import read_number
from .program import Code
from .rubric import Rubric
from .verdict import Status, Verdict
from .verifier import FunctionVerifier, Verifier
from .winning import given_as

__all__ = [
    "SQL",
    "Boxed",
    "Citations",
    "Code",
    "CoinChange",
    "Colouring",
    "Commits",
    "Compression",
    "CosineLength",
    "Countdown",
    "Exact",
    "Format",
    "FunctionVerifier",
    "GraphPath",
    "HamiltonianPath",
    "Hanoi",
    "Instructions",
    "Integral",
    "Json",
    "JsonFields",
    "JsonSchema",
    "Judge",
    "Knapsack",
    "KnightPath",
    "KnightsAndKnaves",
    "Language",
    "Length",
    "LightsOut",
    "MagicSquare",
    "MarkdownStructure",
    "Math",
    "Maze",
    "MultipleChoice",
    "PairwiseJudge",
    "Pattern",
    "Queens",
    "RayVerifier",
    "RegexSynthesis",
    "Repetition",
    "RewardModel",
    "Rubric",
    "Satisfiability",
    "ShortAnswer",
    "SlidingTiles",
    "SoftOverlong",
    "Sorting",
    "SpanningTree",
    "Status",
    "SubsetSum",
    "Sudoku",
    "ToolCall",
    "TopologicalOrder",
    "Verdict",
    "Verifier",
    "WaterJugs",
    "WordLadder",
    "XmlStructure",
    "Zebra",
    "given_as",
    "read_number",
]
