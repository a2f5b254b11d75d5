"""Judges replies: text and a reference in, a Verdict out."""

from __future__ import annotations

from .verdict import Status, Verdict
from .verifier import FunctionVerifier, Verifier

__all__ = ["FunctionVerifier", "Status", "Verdict", "Verifier"]
