"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .cluster import RayVerifier
from .exact import Exact
from .families.countdown import Countdown
from .families.integral import Integral
from .families.multiple_choice import MultipleChoice
from .families.short_answer import ShortAnswer
from .form.citations import Citations
from .form.commitment import Commits
from .form.compression import Compression
from .form.cosine import CosineLength
from .form.format import Format
from .form.language import Language
from .form.length import Length
from .form.overlong import SoftOverlong
from .form.repetition import Repetition
from .maths.maths import Math
from .maths.number import read_number
from .program import Code
from .rubric import Rubric
from .verdict import Status, Verdict
from .verifier import FunctionVerifier, Verifier
from .winning import given_as

__all__ = [
    "Citations",
    "Code",
    "Commits",
    "Compression",
    "CosineLength",
    "Countdown",
    "Exact",
    "Format",
    "FunctionVerifier",
    "Integral",
    "Language",
    "Length",
    "Math",
    "MultipleChoice",
    "RayVerifier",
    "Repetition",
    "Rubric",
    "ShortAnswer",
    "SoftOverlong",
    "Status",
    "Verdict",
    "Verifier",
    "given_as",
    "read_number",
]
