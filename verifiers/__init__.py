"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .cluster import RayVerifier
from .exact import Exact
from .families.countdown import Countdown
from .families.integral import Integral
from .families.knights import KnightsAndKnaves
from .families.multiple_choice import MultipleChoice
from .families.queens import Queens
from .families.short_answer import ShortAnswer
from .families.sudoku import Sudoku
from .families.zebra import Zebra
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
    "Countdown",
    "Exact",
    "Format",
    "FunctionVerifier",
    "Integral",
    "KnightsAndKnaves",
    "Math",
    "MultipleChoice",
    "Queens",
    "RayVerifier",
    "Rubric",
    "ShortAnswer",
    "Status",
    "Sudoku",
    "Verdict",
    "Verifier",
    "Zebra",
    "given_as",
    "read_number",
]
