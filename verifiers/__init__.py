"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .cluster import RayVerifier
from .countdown import Countdown
from .exact import Exact
from .format import Format
from .maths import Math
from .number import read_number
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
    "Math",
    "RayVerifier",
    "Rubric",
    "Status",
    "Verdict",
    "Verifier",
    "given_as",
    "read_number",
]
