"""Runs untrusted programs, and says how they ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import ImageUnavailable, SandboxError, SandboxUnavailable
from .image import PINNED, build_image, registry_fault
from .limits import Limits
from .result import Check, Result, RunStatus
from .sandbox import Sandbox
from .selfcheck import Finding

if TYPE_CHECKING:
    from .ray_sandbox import RaySandbox

__all__ = [
    "PINNED",
    "Check",
    "Finding",
    "ImageUnavailable",
    "Limits",
    "RaySandbox",
    "Result",
    "RunStatus",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "build_image",
    "registry_fault",
]


def __getattr__(name: str) -> Any:
    """``RaySandbox`` where it is asked for: few need it."""
    if name != "RaySandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .ray_sandbox import RaySandbox

    return RaySandbox
