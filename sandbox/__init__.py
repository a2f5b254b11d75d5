"""Runs untrusted programs, and says how they ended."""

from __future__ import annotations

from .errors import ImageUnavailable, SandboxError, SandboxUnavailable
from .image import build_image
from .limits import Limits
from .result import Check, Result, RunStatus
from .sandbox import Sandbox

__all__ = [
    "Check",
    "ImageUnavailable",
    "Limits",
    "Result",
    "RunStatus",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "build_image",
]
