"""Runs untrusted programs, and says how they ended."""

from __future__ import annotations

from .errors import ImageUnavailable, SandboxError, SandboxUnavailable
from .limits import Limits
from .result import Check, Result, RunStatus

__all__ = [
    "Check",
    "ImageUnavailable",
    "Limits",
    "Result",
    "RunStatus",
    "SandboxError",
    "SandboxUnavailable",
]
