"""The context of a comparison: the conventions, and which of them were used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from .conventions import Conventions

MAX_DEPTH = 5
_MAX_WORK = 20_000
"""Comparisons of one part with another, within one pair of answers."""


@dataclass(slots=True)
class Comparison:
    """One comparison of an answer with a reference.

    Attributes:
        how: the conventions.
        part: compares two parts of the answers at some depth: True, False or ``None``.
        notes: the conventions that made two different texts the same.
        work: comparisons made so far.
    """

    how: Conventions
    part: Callable[[str, str, Comparison, int], bool | None]
    notes: list[str] = field(default_factory=list)
    work: int = 0

    def same(self, gold: str, answer: str, depth: int) -> bool | None:
        """Compare two parts, as long as that is not too deep or too much."""
        self.work += 1
        if depth > MAX_DEPTH or self.work > _MAX_WORK:
            return None
        return self.part(gold, answer, self, depth)

    def all_same(self, golds: Sequence[str], answers: Sequence[str], depth: int) -> bool | None:
        """Compare parts one by one, one level deeper; False if there are not equally many."""
        if len(golds) != len(answers):
            return False
        return all_of(self.same(x, y, depth + 1) for x, y in zip(golds, answers, strict=True))

    def by_value(self) -> Comparison:
        """Return the same conventions with calculations evaluated."""
        if not self.how.worked_out:
            return self
        return replace(self, how=replace(self.how, worked_out=False))

    def without_tolerance(self) -> Comparison:
        """Return the same conventions without tolerance."""
        if not (self.how.tolerance or self.how.relative_tolerance):
            return self
        how = replace(self.how, tolerance=0.0, relative_tolerance=0.0)
        return replace(self, how=how)

    def note(self, text: str) -> bool:
        """Say which convention was used; returns True, for what it made the same."""
        if text not in self.notes:
            self.notes.append(text)
        return True

    def noted(self, found: bool | None, text: str) -> bool | None:
        """Say which convention was used if it made the two the same; return what was found."""
        return self.note(text) if found else found


def all_of(findings: Iterable[bool | None]) -> bool | None:
    """Return False if one is False, else ``None`` if one is ``None``, else True."""
    unknown = False
    for finding in findings:
        if finding is False:
            return False
        unknown |= finding is None
    return None if unknown else True


def any_of(findings: Iterable[bool | None]) -> bool | None:
    """Return True if one is True, else ``None`` if one is ``None``, else False."""
    unknown = False
    for finding in findings:
        if finding:
            return True
        unknown |= finding is None
    return None if unknown else False
