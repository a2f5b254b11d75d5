"""What a look at the isolation finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing looked at.

    Attributes:
        name: what should be the case.
        ok: whether it is, at least so far that hostile programs are held.
        detail: what was seen.
        remedy: what to do about what is missing; empty where nothing is.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""

    @property
    def level(self) -> Literal["ok", "warning", "no"]:
        """``warning``: it holds, but not as well as it could."""
        if not self.ok:
            return "no"
        return "warning" if self.remedy else "ok"
