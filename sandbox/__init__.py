"""Runs untrusted programs, and says how they ended."""

from __future__ import annotations

from .errors import ImageUnavailable, LanguageUnavailable, SandboxError, SandboxUnavailable
from .image import PINNED, build_image, registry_fault
from .language import COMPILE_LIMITS, LANGUAGES, Language
from .limits import Limits
from .result import Check, Result, RunStatus
from .sandbox import Sandbox
from .selfcheck import Finding

__all__ = [
    "COMPILE_LIMITS",
    "LANGUAGES",
    "PINNED",
    "Check",
    "Finding",
    "ImageUnavailable",
    "Language",
    "LanguageUnavailable",
    "Limits",
    "Result",
    "RunStatus",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "build_image",
    "registry_fault",
]
