"""Run untrusted programs, and report how they ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .diagnostics.survey import survey
from .errors import (
    BadTests,
    ImageUnavailable,
    LanguageUnavailable,
    SandboxError,
    SandboxUnavailable,
)
from .grading.compare import same_lines, same_output
from .grading.problem import problem_fault
from .grading.rows import (
    problem_from_apps,
    problem_from_humaneval,
    problem_from_livecodebench,
    problem_from_mbpp,
    problem_from_row,
)
from .images.build import build_image, registry_fault
from .images.description import PINNED, ImageDescription, describe
from .images.dockerfile import base_fault, build_folder
from .languages.language import (
    COMPILE_LIMITS,
    LANGUAGES,
    ProgrammingLanguage,
    find_language,
    language_of_file,
)
from .limits import Limits
from .result import Check, CheckResult, Result, RunStatus
from .sandbox import Sandbox
from .sessions.limits import SessionLimits
from .sessions.network import Allowlist, Forward
from .sessions.session import ExecResult, Process, Session, SessionEnded, Shell

if TYPE_CHECKING:
    from .ray_sandbox import RaySandbox

__all__ = [
    "COMPILE_LIMITS",
    "LANGUAGES",
    "PINNED",
    "Allowlist",
    "BadTests",
    "Check",
    "CheckResult",
    "ExecResult",
    "Forward",
    "ImageDescription",
    "ImageUnavailable",
    "LanguageUnavailable",
    "Limits",
    "Process",
    "ProgrammingLanguage",
    "RaySandbox",
    "Result",
    "RunStatus",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "Session",
    "SessionEnded",
    "SessionLimits",
    "Shell",
    "base_fault",
    "build_folder",
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
    """Import ``RaySandbox`` only if it is used."""
    if name != "RaySandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .ray_sandbox import RaySandbox

    return RaySandbox
