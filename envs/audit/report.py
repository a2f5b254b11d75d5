"""What an audit found: one finding for each promise, with the inputs that broke it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

SHOWN = 20
"""Failing inputs kept for each promise; the rest are counted."""


class AuditFailed(AssertionError):
    """A promise is broken. The message names each one, and the first input that broke it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One input that broke a promise.

    Attributes:
        task: id of the task.
        what: what kind of input it is, in a few words.
        reply: the reply, whole; empty where the fault is not in a reply.
        found: what came of it.
    """

    task: str
    what: str
    reply: str
    found: str

    def __str__(self) -> str:
        """One line for people."""
        shown = f" {shortened(self.reply)}" if self.reply else ""
        return f"{self.what}:{shown} {self.found}" + (f" (task {self.task})" if self.task else "")


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check.

    Attributes:
        check: its name.
        promise: what it holds the subject to.
        holds: ``None`` where it could not be checked.
        cases: how many were tried.
        failed: how many of them broke the promise.
        failures: the first of those.
        note: why it was not checked, or what else is worth knowing.
        remedy: what to do where it fails.
        measured: seconds and MiB. Left out of equality: they differ from run to run.
    """

    check: str
    promise: str
    holds: bool | None
    cases: int = 0
    failed: int = 0
    failures: tuple[Failure, ...] = ()
    note: str = ""
    remedy: str = ""
    measured: Mapping[str, float] = field(default_factory=dict, compare=False)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The inverse of :func:`dataclasses.asdict`."""
        return cls(**{**row, "failures": tuple(Failure(**f) for f in row["failures"])})


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All findings about one environment or verifier.

    Attributes:
        subject: what was audited.
        seed: what chose tasks and made replies; the same seed tries the same.
        tasks: how many tasks were sampled.
        findings: in the panel's order.
        note: what none of the checks tries.
    """

    subject: str
    seed: int
    tasks: int
    findings: tuple[Finding, ...]
    note: str = ""

    @property
    def failing(self) -> list[str]:
        """Names of the checks that fail."""
        return [f.check for f in self.findings if f.holds is False]

    @property
    def unchecked(self) -> list[str]:
        """Names of the checks that could not be made."""
        return [f.check for f in self.findings if f.holds is None]

    def raise_for_failures(self) -> None:
        """For a test of one's own: fail where a promise is broken.

        Raises:
            AuditFailed: one is, or none could be tried.
        """
        if not any(f.holds for f in self.findings) and not self.failing:
            notes = sorted({f.note for f in self.findings})
            raise AuditFailed(f"nothing could be checked of {self.subject}: {'; '.join(notes)}")
        if not self.failing:
            return
        lines = [f"{self.subject} breaks {len(self.failing)} of {len(self.findings)} promises"]
        for finding in self.findings:
            if finding.holds is False:
                lines.append(f"  {finding.check}: {finding.failed} of {finding.cases} cases")
                lines += [f"    {failure}" for failure in finding.failures[:3]]
        raise AuditFailed("\n".join(lines))

    def to_json(self) -> dict[str, Any]:
        """A dict of plain JSON values, failing inputs whole."""
        return {
            "subject": self.subject,
            "seed": self.seed,
            "tasks": self.tasks,
            "note": self.note,
            "failing": self.failing,
            "unchecked": self.unchecked,
            "findings": [asdict(finding) for finding in self.findings],
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
        findings = tuple(Finding.from_json(f) for f in row["findings"])
        return cls(row["subject"], row["seed"], row["tasks"], findings, row.get("note", ""))


def shortened(text: str, most: int = 60) -> str:
    """A text as Python writes it, its middle left out where it is long, and its length told."""
    if len(text) <= most:
        return repr(text)
    half = most // 2 - 2
    return f"{text[:half]!r}..{text[-half:]!r} ({len(text):,} characters)"


def write_json(path: str | Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        # ASCII: a reply may hold half a surrogate pair, which no encoding writes
        partial.write_text(json.dumps(value, indent=1) + "\n", encoding="ascii")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
