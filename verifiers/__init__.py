"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .exact import Exact
from .format import Format
from .maths import Math
from .program import Code
from .rubric import Rubric
from .verdict import Status, Verdict
from .verifier import FunctionVerifier, Verifier

__all__ = [
    "Code",
    "Exact",
    "Format",
    "FunctionVerifier",
    "Math",
    "Rubric",
    "Status",
    "Verdict",
    "Verifier",
]
