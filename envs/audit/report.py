"""Report of an audit: one finding for each check, with the inputs that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
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
        reply: the reply, whole; empty if the fault is not in a reply.
        found: what came of it.
    """

    task: str
    what: str
    reply: str
    found: str

    def __str__(self) -> str:
        """Return one line for people."""
        shown = f" {shortened(self.reply)}" if self.reply else ""
        return f"{self.what}:{shown} {self.found}" + (f" (task {self.task})" if self.task else "")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: its name.
        promise: what it holds the subject to.
        holds: ``None`` if it could not be checked.
        cases: how many were tried.
        failed: how many of them broke the promise.
        failures: the first of those.
        note: why it was not checked, or what else is worth knowing.
        remedy: what to do if it fails.
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


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All findings about one environment or verifier.

    Attributes:
        subject: what was audited.
        seed: what chose tasks and made replies; the same seed tries the same.
        tasks: how many tasks were sampled.
        findings: in the order of :data:`~assay.envs.CHECKS`.
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
        """Names of the checks that were not possible."""
        return [f.check for f in self.findings if f.holds is None]

    def raise_for_failures(self) -> None:
        """Fail if a promise is broken: for a test of one's own.

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
        """Return a dict of plain JSON values, failing inputs whole."""
        return {**asdict(self), "failing": self.failing, "unchecked": self.unchecked}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the report that :meth:`to_json` describes."""
        findings = tuple(
            Finding(**{**f, "failures": tuple(Failure(**one) for one in f["failures"])})
            for f in row["findings"]
        )
        return cls(row["subject"], row["seed"], row["tasks"], findings, row.get("note", ""))


def shortened(text: str, most: int = 60) -> str:
    """Return a text as Python writes it, the middle of a long one left out and its length added."""
    if len(text) <= most:
        return repr(text)
    half = most // 2 - 2
    return f"{text[:half]!r}..{text[-half:]!r} ({len(text):,} characters)"
