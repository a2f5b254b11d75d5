"""Runs untrusted programs, and says how they ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .compare import same_lines, same_output
from .errors import (
    BadTests,
    ImageUnavailable,
    LanguageUnavailable,
    SandboxError,
    SandboxUnavailable,
)
from .finding import Finding
from .image import build_image, registry_fault
from .image_description import PINNED, ImageDescription, describe
from .language import COMPILE_LIMITS, LANGUAGES, Language, find_language, language_of_file
from .limits import Limits
from .problem import problem_fault
from .result import Check, Result, RunStatus
from .rows import (
    problem_from_apps,
    problem_from_humaneval,
    problem_from_livecodebench,
    problem_from_mbpp,
    problem_from_row,
)
from .sandbox import Sandbox
from .survey import survey

if TYPE_CHECKING:
    from .ray_sandbox import RaySandbox

__all__ = [
    "COMPILE_LIMITS",
    "LANGUAGES",
    "PINNED",
    "BadTests",
    "Check",
    "Finding",
    "ImageDescription",
    "ImageUnavailable",
    "Language",
    "LanguageUnavailable",
    "Limits",
    "RaySandbox",
    "Result",
    "RunStatus",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "build_image",
    "describe",
    "find_language",
    "language_of_file",
    "problem_fault",
    "problem_from_apps",
    "problem_from_humaneval",
    "problem_from_livecodebench",
    "problem_from_mbpp",
    "problem_from_row",
    "registry_fault",
    "same_lines",
    "same_output",
    "survey",
]


def __getattr__(name: str) -> Any:
    """``RaySandbox`` where it is asked for: few need it."""
    if name != "RaySandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .ray_sandbox import RaySandbox

    return RaySandbox
