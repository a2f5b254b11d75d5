"""Audit an environment or a verifier: try to be paid for what is no answer, and to do harm."""

from .report import AuditFailed, AuditReport, Failure, Finding, shortened
from .run import CHECKS, audit
from .subject import Sample

__all__ = [
    "CHECKS", "AuditFailed", "AuditReport", "Failure", "Finding", "Sample", "audit", "shortened",
]  # fmt: skip
