"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .cluster import RayVerifier
from .exact import Exact
from .families.colouring import Colouring
from .families.countdown import Countdown
from .families.graph_path import GraphPath
from .families.hanoi import Hanoi
from .families.maze import Maze
from .families.sorting import Sorting
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
    "Colouring",
    "Countdown",
    "Exact",
    "Format",
    "FunctionVerifier",
    "GraphPath",
    "Hanoi",
    "Math",
    "Maze",
    "RayVerifier",
    "Rubric",
    "Sorting",
    "Status",
    "Verdict",
    "Verifier",
    "given_as",
    "read_number",
]
