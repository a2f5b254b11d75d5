"""Runs untrusted programs, and says how they ended."""

from __future__ import annotations

from .compare import same_lines, same_output
from .errors import ImageUnavailable, SandboxError, SandboxUnavailable
from .image import PINNED, build_image, registry_fault
from .limits import Limits
from .result import Check, Result, RunStatus
from .sandbox import Sandbox
from .selfcheck import Finding

__all__ = [
    "PINNED",
    "Check",
    "Finding",
    "ImageUnavailable",
    "Limits",
    "Result",
    "RunStatus",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "build_image",
    "registry_fault",
    "same_lines",
    "same_output",
]
