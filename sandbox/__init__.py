"""Runs untrusted programs, and says how they ended."""

from __future__ import annotations

from .errors import ImageUnavailable, LanguageUnavailable, SandboxError, SandboxUnavailable
from .image import build_image, registry_fault
from .image_description import PINNED, ImageDescription, describe
from .language import COMPILE_LIMITS, LANGUAGES, Language, find_language, language_of_file
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
    "ImageDescription",
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
    "describe",
    "find_language",
    "language_of_file",
    "registry_fault",
]
