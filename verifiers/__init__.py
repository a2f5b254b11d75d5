"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .maths import Math
from .verdict import Status, Verdict
from .verifier import FunctionVerifier, Verifier

__all__ = ["FunctionVerifier", "Math", "Status", "Verdict", "Verifier"]
