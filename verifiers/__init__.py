"""Judges replies: text and a reference in, a Verdict out.

Each name that is imported here is public: ``X as X`` says so to type checkers.
"""

from types import ModuleType as _Module

from .cluster import RayVerifier as RayVerifier
from .exact import Exact as Exact
from .form.boxed import Boxed as Boxed
from .form.citations import Citations as Citations
from .form.commitment import Commits as Commits
from .form.compression import Compression as Compression
from .form.cosine import CosineLength as CosineLength
from .form.format import Format as Format
from .form.json_fields import JsonFields as JsonFields
from .form.json_schema import JsonSchema as JsonSchema
from .form.json_value import Json as Json
from .form.language import Language as Language
from .form.length import Length as Length
from .form.markdown import MarkdownStructure as MarkdownStructure
from .form.overlong import SoftOverlong as SoftOverlong
from .form.pattern import Pattern as Pattern
from .form.repetition import Repetition as Repetition
from .form.tool_call import ToolCall as ToolCall
from .form.xml import XmlStructure as XmlStructure
from .instructions.instructions import Instructions as Instructions
from .judges.judge import Judge as Judge
from .judges.pairwise import PairwiseJudge as PairwiseJudge
from .judges.reward_model import RewardModel as RewardModel
from .maths.maths import Math as Math
from .maths.number import read_number as read_number
from .multiple_choice import MultipleChoice as MultipleChoice
from .program import Code as Code
from .puzzles.coin_change import CoinChange as CoinChange
from .puzzles.colouring import Colouring as Colouring
from .puzzles.countdown import Countdown as Countdown
from .puzzles.graph_path import GraphPath as GraphPath
from .puzzles.hamiltonian_path import HamiltonianPath as HamiltonianPath
from .puzzles.hanoi import Hanoi as Hanoi
from .puzzles.integral import Integral as Integral
from .puzzles.knapsack import Knapsack as Knapsack
from .puzzles.knight_path import KnightPath as KnightPath
from .puzzles.knights import KnightsAndKnaves as KnightsAndKnaves
from .puzzles.lights_out import LightsOut as LightsOut
from .puzzles.magic_square import MagicSquare as MagicSquare
from .puzzles.maze import Maze as Maze
from .puzzles.queens import Queens as Queens
from .puzzles.regex_synthesis import RegexSynthesis as RegexSynthesis
from .puzzles.satisfiability import Satisfiability as Satisfiability
from .puzzles.sliding_tiles import SlidingTiles as SlidingTiles
from .puzzles.sorting import Sorting as Sorting
from .puzzles.spanning_tree import SpanningTree as SpanningTree
from .puzzles.sql import SQL as SQL
from .puzzles.subset_sum import SubsetSum as SubsetSum
from .puzzles.sudoku import Sudoku as Sudoku
from .puzzles.topological_order import TopologicalOrder as TopologicalOrder
from .puzzles.water_jugs import WaterJugs as WaterJugs
from .puzzles.word_ladder import WordLadder as WordLadder
from .puzzles.zebra import Zebra as Zebra
from .rubric import Rubric as Rubric
from .short_answer import ShortAnswer as ShortAnswer
from .text.extract import format_answer as format_answer
from .verdict import Status as Status
from .verdict import Verdict as Verdict
from .verifier import FunctionVerifier as FunctionVerifier
from .verifier import Verifier as Verifier
from .verifier import warn_former as _warn_former

__all__ = sorted(n for n, v in globals().items() if n[0] != "_" and not isinstance(v, _Module))


def __getattr__(name: str) -> object:
    """Find a name of 0.2 under its present one."""
    if name != "given_as":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _warn_former(name, "format_answer")
    return format_answer
